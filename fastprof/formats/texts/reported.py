"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines",),
    repairs={
        "blank-lines": ("blank line", "blank lines"),
        "carriage-returns": ("line that ends in a carriage return", "lines that end in a carriage return"),
    },
    losses={"stacks-without-value": ("stack without a value", "stacks without a value")},
    not_representable={
        "maps-without-stacks": ("value of a map without stacks", "values of maps without stacks"),
        "memory-figures": ("sample with the sizes of R's heap", "samples with the sizes of R's heap"),
        "other-lines": ("line that is not part of a stack", "lines that are not part of a stack"),
    },
    warnings={
        "rounded-shares": "{file}: shares are rounded to 0.1 %, and so are times and bytes; "
        "`+RTS -P` writes them exactly",
    },
)
