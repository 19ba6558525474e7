"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_pprof_read_stats",
    "fp_pprof_write_stats",
    shared=("value-types",),
    not_representable={
        "duration": "duration(s) of more than 64 bits",
    },
)
