"""Fuzz the readers of gmon.out and of gprof's text, which are Python (libfuzzer.py).

Two window and batch sizes give the same rows."""

from __future__ import annotations

from tests.fuzz import libfuzzer  # isort: skip  before the modules that it counts in

from fastprof import formats
from fastprof.core.engine import read
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.core.streams import compression_of_bytes
from tests.support.stackdump import Dribble

WORDS = rb"Flat profile:\x0a/ time   seconds   seconds /index % time    self  children    called /1+1/<cycle 1>".split(
    b"/"
)
WORDS += rb"gmon\x01\x00\x00\x00 gmon\x00\x00\x00\x01 seconds \x00 \x01 \x02".split()


def outcome(data: bytes, options: Options, chunk: int | None, capacity: int) -> object:
    model, log, rows = Model(), Log(), []
    try:
        with Source(Dribble(data, chunk), name="test") as source:
            name = "gmon" if data[:1] == b"g" else "gprof"
            reader = formats.get(name).reader_class()(source, model, options, log)
            for batch in read(reader, capacity):
                columns = [list(batch[name]) for name in ("kind", "function", "callee", "line", "count")]
                rows += [*zip(*columns, batch.values(0), strict=True)]
    except FastprofError as error:
        return str(error)
    return rows, log.losses, log.facts


def check(data: bytes) -> None:
    if len(data) < 2 or compression_of_bytes(data[2:]):
        return
    options = Options(lenient=bool(data[0] & 1))
    assert outcome(data[2:], options, 1 + data[1] % 50, 1 + data[1] // 50) == outcome(data[2:], options, None, 64)


def seeds() -> dict[str, bytes]:
    """The corpus as inputs."""
    found = {}
    for path in sorted(libfuzzer.CORPUS.glob("g[mp]*/*/*.g*")):
        for how in (0, 1):
            found[f"{path.parts[-2]}-{path.name}-{how}"] = bytes([how, 7]) + path.read_bytes()
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS)
