"""perf.data, the recordings of Linux's `perf record`: files, pipes and directories.  See docs/formats/perf.md."""

import os

from fastprof.core.branches import BRANCHES
from fastprof.core.engine import NO, SURE, Format
from fastprof.core.options import MAX_MEMORY, Option
from fastprof.symbols import DEBUG_DIRS, FORCE_SYMBOLS, SYMBOLIZE, SYMBOLS, SYSROOT

CPUS = Option.switch(
    "cpus",
    format="perf",
    flag="--cpus",
    help="label samples with their CPU",
)

MAGICS = (b"PERFILE2", b"2ELIFREP", b"PERFFILE")


def sniff(head: bytes) -> int:
    return SURE if head.startswith(MAGICS) else NO


def claims(path: str) -> bool:
    """Is it a directory of `perf record --threads`, with `data` and `data.0`?"""
    try:
        if not os.path.isfile(os.path.join(path, "data.0")):
            return False
        with open(os.path.join(path, "data"), "rb") as file:
            return file.read(8).startswith(MAGICS)
    except OSError:
        return False


FORMATS = (
    Format(
        name="perf",
        view="stacks",
        title="perf.data of Linux's perf record: file, pipe and directory mode, both byte orders",
        suffixes=(".data",),
        sniff=sniff,
        claims=claims,
        reader="read:PerfReader",
        reads=(CPUS, BRANCHES, MAX_MEMORY, SYMBOLS, SYMBOLIZE, SYSROOT, DEBUG_DIRS, FORCE_SYMBOLS),
        prefixes=("perf.data",),
    ),
)
