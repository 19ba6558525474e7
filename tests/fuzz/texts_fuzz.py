"""Fuzz the lexers of text profiles, which are Cython (libfuzzer.py).

The first bytes of an input choose the format and how the rest is read.  Two window and batch sizes give the same rows,
counts and losses, or the same error.
"""

from __future__ import annotations

from tests.fuzz import libfuzzer  # isort: skip  before the modules that it counts in

from fastprof.core import source
from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from fastprof.core.streams import compression_of_bytes
from tests.support.stackdump import dump

FORMATS = ("tracer-stacks", "rprof", "luajit", "ghc-prof", "instruments", "pprof-raw")
WORDS = (
    rb"@[\x0a ]:\x205\x0a ,\x20 \x20\x20\x20\x20f+0x1\x20[m]\x0a (7) [7] -- unix`f \x0a\x20\x205\x0a"
    rb' sample.interval=7\x0a #File\x201:\x20a\x0a 1#2 "f"\x20 :1:2:3:4:'
    rb" 50%\x20\x20f\x0a \x20\x20<-\x20 \x20<\x20 \x20>\x20 C\x20code"
)
CHUNKS = (1, 2, 7, 100)
ROWS = 64  # of a batch
source.WINDOW = 1 << 13


def outcome(data: bytes, format_: str, options: Options, chunk: int | None, capacity: int) -> object:
    try:
        found = dump(data, format_, chunk=chunk, capacity=capacity, options=options)
    except FastprofError as error:
        return str(error)
    return found.rows, found.log.repairs, found.log.losses, found.log.not_representable


def check(data: bytes) -> None:
    if len(data) < 2 or compression_of_bytes(data[2:]):
        return
    how, sizes, data = data[0], data[1], data[2:]
    format_, options = FORMATS[(how >> 1) % len(FORMATS)], Options(lenient=bool(how & 1))
    few = outcome(data, format_, options, CHUNKS[sizes % 4], 1 + sizes // 4)
    assert few == outcome(data, format_, options, None, ROWS)


def seeds() -> dict[str, bytes]:
    """The corpus as inputs."""
    found = {}
    for i, format_ in enumerate(FORMATS):
        for path in sorted(libfuzzer.CORPUS.glob(f"{format_}/[gb]*/*.*")):
            if path.suffix != ".tsv":
                for lenient in (0, 1):
                    how = bytes([i << 1 | lenient, 7])
                    found[f"{format_}-{path.parts[-2]}-{path.name}-{lenient}"] = how + path.read_bytes()
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS.split())
