"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines",),
    repairs={
        "carriage-returns": ("line that ends in a carriage return", "lines that end in a carriage return"),
        "open-end": ("file that does not end in a newline", "files that do not end in a newline"),
        "unreadable-mapped-objects": ("line that names no mapped object", "lines that name no mapped object"),
    },
    not_representable={
        "comments": ("comment", "comments"),
        "thread-names": ("name of a thread", "names of threads"),
        "unreadable-labels": ("set of labels that is not JSON", "sets of labels that are not JSON"),
    },
    warnings={
        "maybe-cut-off": "{file}: does not end in a newline: it may be truncated",
    },
)
