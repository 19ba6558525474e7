"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-rest",),
    repairs={
        "overlapping-calls": "thread(s) added for overlapping calls",
        "shortened-calls": "call(s) cut because (it|they) (overlaps|overlap) too many others",
        "unnamed-calls": "name(s) of calls that (is|are) missing",
    },
    losses={"broken-rows": "row(s) that could not be read"},
    not_representable={"other-tables": "table(s) with times of others"},
)
