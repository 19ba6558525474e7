"""Recordings of heaptrack, KDE's heap profiler.  See docs/formats/heaptrack.md."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import NO, SURE, Format


def sniff(head: bytes) -> int:
    return SURE if re.match(rb"v [0-9a-f]+(?: [0-9a-f]+)?\n(?:(?:[IAS#][^\n]*)?\n)*X ", head) else NO


FORMATS = (
    Format(
        name="heaptrack",
        view="stacks",
        title="recording of heaptrack, file versions 1 to 3",
        suffixes=(".heaptrack",),
        prefixes=("heaptrack.",),
        sniff=sniff,
        reader="read:HeaptrackReader",
    ),
)
