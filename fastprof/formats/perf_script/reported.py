"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_perf_script_counts",
    shared=("unreadable-lines",),
    repairs={
        "carriage-returns": ("line that ends in a carriage return", "lines that end in a carriage return"),
        "messages": ("line that perf wrote to stderr", "lines that perf wrote to stderr"),
        "open-end": ("file that does not end in a newline", "files that do not end in a newline"),
        "without-period": ("sample without a period, counted as 1", "samples without a period, counted as 1"),
    },
    not_representable={
        "comments": ("comment", "comments"),
        "cpu-numbers": ("sample with a CPU number", "samples with a CPU number"),
        "fields": ("sample with tracepoint fields", "samples with tracepoint fields"),
        "registers-and-branches": (
            "line of registers, branches or source code",
            "lines of registers, branches or source code",
        ),
        "side-records": ("record that is not a sample", "records that are not samples"),
        "unknown-source-lines": (
            "address in place of a source line",
            "addresses in place of source lines",
        ),
    },
    warnings={
        "maybe-cut-off": "{file}: does not end in a newline: it may be truncated",
    },
)
