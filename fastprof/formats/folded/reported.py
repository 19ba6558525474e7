"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines",),
    repairs={
        "blank-lines": ("line without text", "lines without text"),
        "blanks-behind-counts": ("line with blanks behind the count", "lines with blanks behind the count"),
        "byte-order-marks": ("byte order mark", "byte order marks"),
        "carriage-returns": ("line that ends in a carriage return", "lines that end in a carriage return"),
        "empty-frames": ("frame without a name, called [unknown]", "frames without a name, called [unknown]"),
        "no-frames": ("count without a stack", "counts without a stack"),
        "open-end": ("file that does not end in a newline", "files that do not end in a newline"),
        "rounded-counts": ("count with a fraction, rounded", "counts with a fraction, rounded"),
        "trailing-empty-frames": (
            "stack that ends in empty frames, left out",
            "stacks that end in empty frames, left out",
        ),
    },
    not_representable={
        "comments": ("comment", "comments"),
        "negative-values": ("stack of negative value", "stacks of negative value"),
        "no-stack": ("sample without stack, written as [no stack]", "samples without stack, written as [no stack]"),
        "renamed": (
            "name that would be read as something else, changed",
            "names that would be read as something else, changed",
        ),
        "rounded-times": ("time rounded to whole microseconds", "times rounded to whole microseconds"),
        "zero-values": ("stack of value 0", "stacks of value 0"),
    },
    warnings={
        "fractions": (
            "{file}: line {line}: a count with a fraction; such counts are taken as the nearest whole number, "
            "{--decimals} keeps digits behind the point"
        ),
        "maybe-cut-off": "{file}: does not end in a newline, so it may have been cut off",
        "missing-cost": "{share} of the cost is left out, in stacks of values below 0, or rounded to 0",
        "two-counts": (
            "{file}: its first lines end in two numbers each, which are taken for counts before and after; "
            "{--counts:=}1 takes the first for part of a name"
        ),
    },
)
