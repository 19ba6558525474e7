"""Counts and warnings of this folder."""

from fastprof.chrome import reported as of_samples
from fastprof.core.reported import reported

REPORTED = of_samples.REPORTED | reported(
    "fp_perfetto_counts",
    "fp_perfetto",
    shared=("thread-numbers",),
    not_representable={
        "deep-calls": "call(s) (or|and) event(s) nested deeper than {depth}, dropped",
    },
    warnings={
        "no-times": "no row has a time: the trace is valid but empty",
    },
)
