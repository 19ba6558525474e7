"""Recordings of Python 3.15's sampling profiler (Tachyon).  See docs/formats/tachyon.md."""

from fastprof.core.engine import NO, SURE, Format


def sniff(head: bytes) -> int:
    """The magic number in either byte order, and a version."""
    order = {b"HCAT": "little", b"TACH": "big"}.get(head[:4])
    return SURE if order and 0 < int.from_bytes(head[4:8], "little" if order == "little" else "big") < 256 else NO


FORMATS = (
    Format(
        name="tachyon",
        view="stacks",
        title="recording of Python 3.15's profiling.sampling (--binary)",
        suffixes=(".tachyon",),
        sniff=sniff,
        reader="read:TachyonReader",
    ),
)
