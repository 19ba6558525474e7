"""Fuzz the lexer of Massif's snapshots, which is Cython (libfuzzer.py).

The first bytes of an input choose how the rest is read.  Two window and batch sizes give the same rows, counts and
losses, or the same error.
"""

from __future__ import annotations

from tests.fuzz import libfuzzer  # isort: skip  before the modules that it counts in

from fastprof.core import source
from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from fastprof.core.streams import compression_of_bytes
from tests.support.stackdump import dump

WORDS = (
    rb"\x0asnapshot=1\x0a time=2\x0a mem_heap_B=9\x0a mem_heap_extra_B=0\x0a mem_stacks_B=0\x0a heap_tree=peak\x0a"
    rb" #-\x0a n1:\x209\x20(heap)\x0a \x20n0:\x209\x200x1:\x20f\x20(a:1)\x0a 9223372036854775807"
    rb" 9223372036854775808 \x0d\x0a"
)
CHUNKS = (1, 2, 7, 100)
ROWS = 64  # of a batch
SNAPSHOTS = ("peak", "last", "all", "2")
source.WINDOW = 1 << 13


def outcome(data: bytes, options: Options, chunk: int | None, capacity: int) -> object:
    try:
        found = dump(data, "massif", chunk=chunk, capacity=capacity, options=options)
    except FastprofError as error:
        return str(error)
    return found.rows, found.log.repairs, found.log.losses, found.log.facts


def check(data: bytes) -> None:
    if len(data) < 2 or compression_of_bytes(data[2:]):
        return
    how, sizes, data = data[0], data[1], data[2:]
    options = Options(lenient=bool(how & 1), snapshot=SNAPSHOTS[how >> 1 & 3])
    assert outcome(data, options, CHUNKS[sizes % 4], 1 + sizes // 4) == outcome(data, options, None, ROWS)


def seeds() -> dict[str, bytes]:
    """The corpus as inputs."""
    found = {}
    for path in sorted(libfuzzer.CORPUS.glob("massif/*/*.massif")):
        for how in (0, 1, 5):
            found[f"{path.parts[-2]}-{path.name}-{how}"] = bytes([how, 7]) + path.read_bytes()
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS.split())
