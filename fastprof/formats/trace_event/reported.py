"""Counts and warnings of this folder."""

from fastprof.chrome import reported as of_samples
from fastprof.core.reported import reported

REPORTED = of_samples.REPORTED | reported(
    "fp_trace_event_counts",
    "fp_trace_event_write",
    shared=("thread-numbers",),
    not_representable={
        "deep-calls": "call(s) nested deeper than {depth}, dropped",
    },
    warnings={
        "shifted-times": "all times are reduced by {shift} ns, so that viewers can resolve nanoseconds",
    },
)
