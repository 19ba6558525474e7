"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_folded_write_stats",
    shared=("unreadable-lines",),
    repairs={
        "blank-lines": "blank line(s)",
        "blanks-after-counts": "line(s) with blanks after the count",
        "carriage-returns": "line(s) that (ends|end) in a carriage return",
        "empty-frames": "unnamed frame(s), shown as [unknown]",
        "inclusive-values": "time(s) of llvm-xray, without (that|those) of callees",
        "no-frames": "count(s) without a stack",
        "open-end": "file(s) that (does|do) not end in a newline",
        "rounded-counts": "fractional count(s), rounded",
        "trailing-empty-frames": "stack(s) whose trailing empty frames are dropped",
    },
    not_representable={
        "comments": "comment(s)",
        "kinds-of-code": "name(s) without (its|their) suffix _[j], _[1] or _[0]",
    },
    warnings={
        "fractions": (
            "{file}: line {line}: a fractional count; such counts are rounded to the nearest whole number, "
            "{--decimals} keeps decimal places"
        ),
        "maybe-inclusive": (
            "{file}: written by llvm-xray, whose values may include those of callees; here only some can, and all "
            "are read as self costs"
        ),
        "maybe-cut-off": "{file}: does not end in a newline: it may be truncated",
        "missing-cost": "{share} of the cost is dropped: stacks with negative values, or rounded to 0",
        "two-counts": (
            "{file}: its first lines end in two numbers each, read as the counts before and after; "
            "{--counts:=}1 reads the first one as part of the name"
        ),
    },
)
