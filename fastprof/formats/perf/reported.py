"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_perf_counts",
    repairs={
        "late-records": "record(s) older than those of an earlier round",
        "unfinished-files": "file(s) that perf record did not finish",
    },
    not_representable={
        "data-addresses": "sample(s) with a data address",
        "sample-branches": "sample(s) with branches",
        "raw-data": "sample(s) with fields of a tracepoint",
        "sample-registers": "sample(s) with registers",
        "sample-weights": "sample(s) with (a weight,|weights,) data source(s) or transaction(s)",
        "sample-traces": "sample(s) with (a trace|traces) of the processor",
        "side-records": "record(s) that (is|are) not (a sample|samples)",
        "tracepoint-fields": "field(s) of (a tracepoint|tracepoints) that (is|are) neither number(s) nor text(s)",
    },
    losses={
        "damaged-features": "section(s) of the header that (is|are) damaged",
        "shortened-recordings": "recording(s) that (ends|end) before (its|their) records do",
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
