"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-lines",),
    repairs={
        "carriage-returns": "line(s) that (ends|end) in a carriage return",
        "open-end": "file(s) that (does|do) not end in a newline",
        "unreadable-mapped-objects": "line(s) that (names|name) no mapped object",
    },
    not_representable={
        "comments": "comment(s)",
        "thread-names": "name(s) of (a thread|threads)",
        "unreadable-labels": "set(s) of labels that (is|are) not JSON",
    },
    warnings={
        "maybe-cut-off": "{file}: does not end in a newline: it may be truncated",
    },
)
