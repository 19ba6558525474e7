"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-rest",),
    repairs={
        "overlapping-calls": ("thread added for overlapping calls", "threads added for overlapping calls"),
        "shortened-calls": (
            "call cut because it overlaps too many others",
            "calls cut because they overlap too many others",
        ),
        "unnamed-calls": ("name of calls that is missing", "names of calls that are missing"),
    },
    losses={"broken-rows": ("row that could not be read", "rows that could not be read")},
    not_representable={"other-tables": ("table with times of others", "tables with times of others")},
)
