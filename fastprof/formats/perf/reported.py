"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("damaged-records", "skipped-bytes"),
    repairs={
        "late-records": ("record older than those of an earlier round", "records older than those of an earlier round"),
        "messages": ("message of perf record in the recording", "messages of perf record in the recording"),
        "unfinished-files": ("file that perf record did not finish", "files that perf record did not finish"),
        "unmatched-user-stacks": (
            "sample whose user stack was never recorded, kept without it",
            "samples whose user stacks were never recorded, kept without them",
        ),
        "unwalked-chains": (
            "call chain with unknown markers, replaced by the address of its sample",
            "call chains with unknown markers, replaced by the addresses of their samples",
        ),
    },
    not_representable={
        "data-addresses": ("sample with a data address", "samples with a data address"),
        "sample-branches": ("sample with branches", "samples with branches"),
        "guest-samples": ("sample of a virtual machine", "samples of virtual machines"),
        "late-build-ids": (
            "build id that comes after samples of its object, which was found by path",
            "build ids that come after samples of their objects, which were found by path",
        ),
        "raw-data": ("sample with fields of a tracepoint", "samples with fields of a tracepoint"),
        "sample-registers": ("sample with registers", "samples with registers"),
        "sample-weights": (
            "sample with a weight, data source or transaction",
            "samples with weights, data sources or transactions",
        ),
        "sample-traces": ("sample with a trace of the processor", "samples with traces of the processor"),
        "side-records": ("record that is not a sample", "records that are not samples"),
        "stacks-not-unwound": (
            "sample with a copy of its stack, which is not unwound",
            "samples with copies of their stacks, which are not unwound",
        ),
        "tracepoint-fields": (
            "field of a tracepoint that is neither number nor text",
            "fields of tracepoints that are neither numbers nor texts",
        ),
        "trace-bytes": ("byte of processor traces or event formats", "bytes of processor traces or event formats"),
        "unended-waits": (
            "switch of a thread whose return is not recorded",
            "switches of threads whose return is not recorded",
        ),
    },
    losses={
        "damaged-features": ("section of the header that is damaged", "sections of the header that are damaged"),
        "records-of-unknown-events": ("record of an unknown event", "records of unknown events"),
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
