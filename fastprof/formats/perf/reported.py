"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_perf_counts",
    repairs={
        "late-records": ("record older than those of an earlier round", "records older than those of an earlier round"),
        "unfinished-files": ("file that perf record did not finish", "files that perf record did not finish"),
    },
    not_representable={
        "data-addresses": ("sample with a data address", "samples with a data address"),
        "sample-branches": ("sample with branches", "samples with branches"),
        "raw-data": ("sample with fields of a tracepoint", "samples with fields of a tracepoint"),
        "sample-registers": ("sample with registers", "samples with registers"),
        "sample-weights": (
            "sample with a weight, data source or transaction",
            "samples with weights, data sources or transactions",
        ),
        "sample-traces": ("sample with a trace of the processor", "samples with traces of the processor"),
        "side-records": ("record that is not a sample", "records that are not samples"),
        "tracepoint-fields": (
            "field of a tracepoint that is neither number nor text",
            "fields of tracepoints that are neither numbers nor texts",
        ),
    },
    losses={
        "damaged-features": ("section of the header that is damaged", "sections of the header that are damaged"),
        "shortened-recordings": (
            "recording that ends before its records do",
            "recordings that end before their records do",
        ),
    },
    warnings={
        "code-of-another-clock": "{path}: ignored, its clock differs from the recording's; `perf record -k mono` "
        "records with the clock of JIT compilers",
        "stacks-that-end-early": "{file}: stacks were unwound, but {ends}",
        "own-kernel": "{file}: kernel names are this machine's: the recording has no build id of its kernel, but the "
        "same host, release and address",
        "missed-returns": "{file}: off-CPU time is incomplete: {missed:,} of {switches:,} switches have no recorded "
        "return; `perf record --switch-events` records them",
        "lost-records": "{file}: the kernel lost {lost:,} records: stacks and counts are incomplete",
    },
)
