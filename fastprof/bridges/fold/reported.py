"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_fold_stats",
    not_representable={
        "cpus": "call(s) whose CPU is dropped ({--labels:=}cpu keeps it in stacks)",
    },
    warnings={
        "different-clocks": "the inputs' clocks differ: times of later inputs are rounded to ticks of the first",
        "no-records": "the input has no records: the output is valid but empty",
    },
)
