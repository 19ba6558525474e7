"""gperftools CPU profiles.  See docs/formats/gperftools.md."""

from __future__ import annotations

from fastprof.core.engine import Format

SYMBOLIZED = b"--- symbol"


def sniff(head: bytes) -> bool:
    from fastprof.core._c import ffi, lib

    return bool(lib.fp_gperf_sniff(head, len(head), ffi.new("int *"))) or head.startswith(SYMBOLIZED)


FORMATS = (
    Format(
        name="gperftools",
        view="stacks",
        title="gperftools CPU profile: 32/64 bit, both byte orders, symbolized form",
        suffixes=(".prof",),
        sniff=sniff,
        reader="read:GperftoolsReader",
        writer="write:GperftoolsWriter",
        reads=("period_us", "keep_signal_frames"),
        writes=("period_us",),
    ),
)
