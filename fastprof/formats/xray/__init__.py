"""LLVM XRay logs: flight data recorder (FDR), basic and profiling mode.  See docs/formats/xray.md."""

from fastprof.core.engine import MAYBE, NO, SURE, Capabilities, Format
from fastprof.core.options import Option, Text
from fastprof.symbols import DEMANGLE, SYMBOLS

PROGRAM = Option(
    "program",
    Text("NAME"),
    "",
    format="xray",
    flag="--program",
    help="program that wrote the log, if --symbols is a map",
)

_PROFILE_MAGIC = (b"forpyarx", b"xrayprof")


def sniff(head: bytes) -> int:
    if head[:8] in _PROFILE_MAGIC:
        return SURE
    if len(head) >= 4:
        for big in (False, True):
            version, type_ = _number(head, 0, 2, big), _number(head, 2, 2, big)
            if (type_ == 1 and 1 <= version <= 5) or (type_ == 0 and 1 <= version <= 3):
                return MAYBE if _is_header(head[:32], big) else NO
    return MAYBE if _sniff_bare_profile(head) else NO


def _number(head: bytes, at: int, nbytes: int, big: bool) -> int:
    return int.from_bytes(head[at : at + nbytes], "big" if big else "little")  # importing struct would take longer


def _is_header(head: bytes, big: bool) -> bool:
    """Check the clock, because fonts also begin with 00 01 00 00, and no clock ticks 2^40 times a second.  The flags
    are useless: basic mode leaves unused ones uninitialized."""
    return _number(head.ljust(16, b"\0"), 8, 8, big) < 1 << 40  # ticks per second


def _sniff_bare_profile(head: bytes) -> bool:
    """A profile without its magic number: a block header and a plausible call path."""
    if len(head) < 40:
        return False
    big = _number(head, 8, 8, False) >= 1 << 32
    size, number, tid = _number(head, 0, 4, big), _number(head, 4, 4, big), _number(head, 8, 8, big)
    if not (40 <= size < 1 << 24 and number < 1 << 20 and 0 < tid < 1 << 32):
        return False
    for at in range(16, len(head) - 19, 4):
        function = _number(head, at, 4, big)
        if function == 0:
            calls, ticks = _number(head, at + 4, 8, big), _number(head, at + 12, 8, big)
            return at > 16 and calls < 1 << 48 and ticks < 1 << 56
        if function >= 1 << 28:
            return False
    return False


FORMATS = (
    Format(
        name="xray",
        view="timeline",
        reads_also="stacks",
        title="LLVM XRay log: FDR v1-5, basic v1-3; profiling mode, which is stacks",
        suffixes=(".xray",),
        sniff=sniff,
        reader="read:XRayReader",
        writer="write:XRayWriter",
        holds=Capabilities(
            names=False,
            lacks=frozenset({"build-ids", "thread-names"}),  # names and places of functions are in the program, by id
            header=frozenset(),
        ),
        reads=(SYMBOLS, DEMANGLE, PROGRAM),
        row_bytes=8,  # a function record of FDR
    ),
)
