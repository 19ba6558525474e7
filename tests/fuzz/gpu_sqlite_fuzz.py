"""Fuzz the reader of GPU profilers' databases, which is Python over SQLite (libfuzzer.py).

Two batch sizes give the same rows, or the same error."""

from __future__ import annotations

from tests.fuzz import libfuzzer  # isort: skip  before the modules that it counts in

import io

from fastprof import formats
from fastprof.core.engine import read
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.support.gpu_sqlite import NSYS, ROCPD, RPD, UUID, made

WORDS = [
    b"CUPTI_ACTIVITY_KIND_KERNEL", b"NVTX_EVENTS", b"StringIds", b"rocpd_api", b"rocpd_op", b"rocpd_string", b"start",
    b"end", b"streamId", b"globalTid", b"nameId", b"CREATE TABLE ", b"\\x00", b"\\x01", b"\\xff",
]  # fmt: skip


def outcome(data: bytes, options: Options, capacity: int) -> object:
    model, log, rows = Model(), Log(), []
    try:
        with Source(io.BytesIO(data), name="test") as source:
            reader = formats.get("gpu-sqlite").reader_class()(source, model, options, log)
            for batch in read(reader, capacity):
                columns = [list(batch[name]) for name in ("op", "function", "time", "thread")]
                rows += [*zip(*columns, strict=True)]
    except FastprofError as error:
        return str(error).partition(", in the temporary copy")[0]
    return rows, log.losses, log.repairs, log.not_representable


def check(data: bytes) -> None:
    if len(data) < 2 or not data[1:].startswith(b"SQLite format 3\0"):
        return
    options = Options(lenient=bool(data[0] & 1))
    assert outcome(data[1:], options, 1 + (data[0] >> 1) % 8) == outcome(data[1:], options, 64)


def seeds() -> dict[str, bytes]:
    """The corpus, and databases of one row with pages of 512 bytes."""
    found = {}
    for path in sorted(libfuzzer.CORPUS.glob("gpu-sqlite/*/*.*")):
        if path.suffix != ".tsv":
            for how in (0, 1):
                found[f"{path.parts[-2]}-{path.name}-{how}"] = bytes([how]) + path.read_bytes()
    for name, schema in (("nsys", NSYS), ("rocpd", ROCPD.format(id=UUID)), ("rpd", RPD)):
        found[f"empty-{name}"] = b"\1" + made(schema, {})
    return found


if __name__ == "__main__":
    libfuzzer.run(check, seeds(), WORDS)
