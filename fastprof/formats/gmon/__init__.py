"""gprof's gmon.out, which programs compiled with -pg write, and what gprof prints.  See docs/formats of each."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import NO, SURE, Format
from fastprof.symbols import DEMANGLE, SYMBOLS


def sniff(head: bytes) -> int:
    return SURE if re.match(rb"gmon(?:\x01\0\0\0|\0\0\0\x01)\0{12}(?:[\0-\x02]|$)", head) else NO


def sniff_text(head: bytes) -> int:
    titles = rb"\s*(?:Flat profile:\s+(?:Each sample counts as |% +cumulative)|Call graph\b[^\n]*\s+granularity: each )"
    return SURE if re.match(titles, head) else NO


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
    Format(
        name="gprof",
        view="graph",
        title="text of gprof: flat profile and call graph",
        suffixes=(".gprof.txt",),
        sniff=sniff_text,
        reader="text:GprofTextReader",
    ),
)
