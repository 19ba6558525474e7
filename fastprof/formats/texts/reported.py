"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines",),
    repairs={
        "blank-lines": "blank line(s)",
        "carriage-returns": "line(s) that (ends|end) in a carriage return",
    },
    losses={"stacks-without-value": "stack(s) without a value"},
    not_representable={
        "maps-without-stacks": "value(s) of (a map|maps) without stacks",
        "memory-figures": "sample(s) with the sizes of R's heap",
        "other-lines": "line(s) that (is|are) not part of a stack",
    },
    warnings={
        "rounded-shares": "{file}: shares are rounded to 0.1 %, and so are times and bytes; "
        "`+RTS -P` writes them exactly",
    },
)
