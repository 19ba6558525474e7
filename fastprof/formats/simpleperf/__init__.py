"""Samples of Android's simpleperf, as `report-sample --protobuf` writes them.  See docs/formats/simpleperf.md."""

from fastprof.core.engine import NO, SURE, Format


def sniff(head: bytes) -> int:
    return SURE if head.startswith(b"SIMPLEPERF") and len(head) > 11 else NO


FORMATS = (
    Format(
        name="simpleperf",
        view="stacks",
        title="samples of simpleperf (report-sample --protobuf)",
        suffixes=(".simpleperf.trace",),
        sniff=sniff,
        reader="read:SimpleperfReader",
    ),
)
