"""Captures of memray, Bloomberg's memory profiler for Python.  See docs/formats/memray.md."""

from fastprof.core.engine import NO, SURE, Format
from fastprof.symbols import DEBUG_DIRS, DEMANGLE, FORCE_SYMBOLS, SYMBOLIZE, SYMBOLS, SYSROOT


def sniff(head: bytes) -> int:
    return SURE if head.startswith(b"memray\0") else NO


FORMATS = (
    Format(
        name="memray",
        view="stacks",
        title="capture of memray 1.11 to 1.20: all allocations or aggregated",
        suffixes=(".memray", ".memray.bin"),
        prefixes=("memray-",),
        sniff=sniff,
        reader="read:MemrayReader",
        reads=(SYMBOLS, SYMBOLIZE, SYSROOT, DEBUG_DIRS, DEMANGLE, FORCE_SYMBOLS),
    ),
)
