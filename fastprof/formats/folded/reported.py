"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_folded_write_stats",
    shared=("unreadable-lines",),
    repairs={
        "blank-lines": ("blank line", "blank lines"),
        "blanks-after-counts": ("line with blanks after the count", "lines with blanks after the count"),
        "carriage-returns": ("line that ends in a carriage return", "lines that end in a carriage return"),
        "empty-frames": ("unnamed frame, shown as [unknown]", "unnamed frames, shown as [unknown]"),
        "inclusive-values": (
            "time of llvm-xray, without that of callees",
            "times of llvm-xray, without those of callees",
        ),
        "no-frames": ("count without a stack", "counts without a stack"),
        "open-end": ("file that does not end in a newline", "files that do not end in a newline"),
        "rounded-counts": ("fractional count, rounded", "fractional counts, rounded"),
        "trailing-empty-frames": (
            "stack whose trailing empty frames are dropped",
            "stacks whose trailing empty frames are dropped",
        ),
    },
    not_representable={
        "comments": ("comment", "comments"),
        "kinds-of-code": (
            "name without its suffix _[j], _[1] or _[0]",
            "names without their suffix _[j], _[1] or _[0]",
        ),
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
