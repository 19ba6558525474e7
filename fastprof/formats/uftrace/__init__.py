"""Data directories of uftrace, which records calls of functions.  See docs/formats/uftrace.md."""

import os
import re

from fastprof.core.engine import NO, SURE, Format
from fastprof.symbols import DEMANGLE

MAGIC = b"Ftrace!\0"
_NAMES = re.compile(r"(?:.*/)?(?:info|task\.txt|default\.opts|(?:perf-cpu)?\d+\.dat|sid-\w+\.map|[^/]+\.(?:sym|dbg))")


def sniff(head: bytes) -> int:
    """A tar of such a directory."""
    if head[257:262] == b"ustar":
        from fastprof.core.tar import first_name

        return SURE if _NAMES.fullmatch(first_name(head)) else NO
    return NO


def claims(path: str) -> bool:
    try:
        with open(os.path.join(path, "info"), "rb") as file:
            return file.read(8) == MAGIC
    except OSError:
        return False


FORMATS = (
    Format(
        name="uftrace",
        view="timeline",
        title="data directory of uftrace, also in a tar",
        suffixes=(),
        sniff=sniff,
        claims=claims,
        reader="read:UftraceReader",
        reads=(DEMANGLE,),
    ),
)
