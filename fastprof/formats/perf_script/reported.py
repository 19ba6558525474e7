"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_perf_script_counts",
    shared=("unreadable-lines",),
    repairs={
        "carriage-returns": "line(s) that (ends|end) in a carriage return",
        "messages": "line(s) that perf wrote to stderr",
        "open-end": "file(s) that (does|do) not end in a newline",
        "without-period": "sample(s) without a period, counted as 1",
    },
    not_representable={
        "comments": "comment(s)",
        "cpu-numbers": "sample(s) with a CPU number",
        "fields": "sample(s) with tracepoint fields",
        "registers-and-branches": "line(s) of registers, branches or source code",
        "side-records": "record(s) that (is|are) not (a sample|samples)",
        "unknown-source-lines": (
            "address in place of a source line",
            "addresses in place of source lines",
        ),
    },
    warnings={
        "maybe-cut-off": "{file}: does not end in a newline: it may be truncated",
    },
)
