"""gprof's gmon.out, which programs compiled with -pg write.  See docs/formats/gmon.md."""

from __future__ import annotations

from re import match

from fastprof.core.engine import NO, SURE, Format
from fastprof.symbols import DEMANGLE, SYMBOLS


def sniff(head: bytes) -> int:
    return SURE if match(rb"gmon(?:\x01\0\0\0|\0\0\0\x01)\0{12}(?:[\0-\x02]|$)", head) else NO


FORMATS = (
    Format(
        name="gmon",
        view="graph",
        title="gmon.out of gprof (gcc -pg): times of functions and numbers of calls",
        suffixes=(".gmon",),
        prefixes=("gmon.out", "gmon.sum"),
        sniff=sniff,
        reader="read:GmonReader",
        reads=(SYMBOLS, DEMANGLE),
    ),
)
