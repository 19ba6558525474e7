"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("sample-labels", "sample-times"),
    not_representable={
        "labels-and-threads": "label(s) (or|and) thread(s) of (a sample|samples)",
        "calls-and-jumps": "call(s) (or|and) jump(s)",
    },
    warnings={
        "uncounted-calls": "call counts are those of {n:,} of {profiles}; the others do not count calls",
        "different-periods": "{differ}: the period is left out",
        "missing-values": "{name}: has no {types}, which are not compared ({--union} compares them with 0)",
        "in-use-alone": "{first} has no separate values of allocated objects: {name} is compared by objects in use",
    },
)
