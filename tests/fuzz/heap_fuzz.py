"""Fuzz the lexer of heap profiles' text, which is Cython (libfuzzer.py).

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
    rb"heap\x20profile:\x201:\x202\x20[3:\x204]\x20@\x20heap_v2/64 heap_v2/9 ---\x20mutex:"
    rb" ---\x20contentionz\x201\x20---"
    rb" ---\x20threadz\x201\x20--- \x0at*:\x201:\x202\x20[0:\x200] \x0a@\x200x1 \x20@\x200x1\x200x2"
    rb" \x0a#\x090x1\x09f+0x1"
    rb" \x0a#\x20labels:\x20{} format\x20=\x20java \x0aMAPPED_LIBRARIES:\x0a ---\x20Thread\x207f\x20(name:\x20a/1)"
    rb" 9223372036854775807 0xffffffffffffffff -1 \x0d\x0a [same\x20as\x20previous\x20thread] goroutine\x20profile:"
)
CHUNKS = (1, 2, 7, 100)
ROWS = 64  # of a batch
source.WINDOW = 1 << 13


def outcome(data: bytes, options: Options, chunk: int | None, capacity: int) -> object:
    try:
        found = dump(data, "heap", chunk=chunk, capacity=capacity, options=options)
    except FastprofError as error:
        return str(error)
    return found.rows, found.log.repairs, found.log.losses, found.log.not_representable


def check(data: bytes) -> None:
    if len(data) < 2 or compression_of_bytes(data[2:]):
        return
    how, sizes, data = data[0], data[1], data[2:]
    options = Options(lenient=bool(how & 1))
    assert outcome(data, options, CHUNKS[sizes % 4], 1 + sizes // 4) == outcome(data, options, None, ROWS)


def seeds() -> dict[str, bytes]:
    """The corpus as inputs."""
    found = {}
    for path in sorted(libfuzzer.CORPUS.glob("heap/*/*.heap")):
        for lenient in (0, 1):
            found[f"{path.parts[-2]}-{path.name}-{lenient}"] = bytes([lenient, 7]) + path.read_bytes()
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS.split())
