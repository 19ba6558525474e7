"""Fuzz the lexer of perf script's text, which is Cython (libfuzzer.py).

The first bytes of an input choose how the rest is read: in one window, where call chains are looked up whole, and in
small ones, where they are read line by line.  Both give the same rows, counts and losses, or the same error.
"""

from __future__ import annotations

from tests.fuzz import libfuzzer  # isort: skip  before the modules that it counts in

from fastprof.core import source
from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from fastprof.core.streams import compression_of_bytes
from tests.support.stackdump import dump

WORDS = rb"\x20 \x09 : / ( ) [001] 12 6598/6598 1593.383339:\x20 cycles:\x20 +0x25 (inlined) ([unknown]) PERF_RECORD_ #"
CHUNKS = (1, 2, 7, 100)
ROWS = 64  # of a batch
source.WINDOW = 1 << 13


def outcome(data: bytes, options: Options, chunk: int | None, capacity: int) -> object:
    try:
        found = dump(data, "perf-script", chunk=chunk, capacity=capacity, options=options)
    except FastprofError as error:
        return str(error)
    return found.rows, found.log.repairs, found.log.losses, found.log.not_representable


def check(data: bytes) -> None:
    if len(data) < 2 or compression_of_bytes(data[2:]):
        return
    how, sizes, data = data[0], data[1], data[2:]
    options = Options(lenient=bool(how & 1), comm_frames=bool(how & 2))
    assert outcome(data, options, CHUNKS[sizes % 4], 1 + sizes // 4) == outcome(data, options, None, ROWS)


def seeds() -> dict[str, bytes]:
    """The corpus as inputs."""
    found = {}
    for path in sorted(libfuzzer.CORPUS.glob("perf-script/*/*.perf")):
        for lenient in (0, 1):
            found[f"{path.parts[-2]}-{path.name}-{lenient}"] = bytes([lenient, 7]) + path.read_bytes()
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS.split())
