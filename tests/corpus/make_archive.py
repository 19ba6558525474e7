"""Make tests/corpus/archive: `python -m tests.corpus.make_archive`."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from fastprof.formats.archive import write as archive_write
from fastprof.formats.archive.sections import HEADER_NBYTES, ROWS, ZSTD, Section, scan
from tests.support.archives import graph, stacks, timeline, write_archive

HERE = Path(__file__).parent / "archive"


def main() -> None:
    archive_write.CHUNK_ROWS = 40
    for maker in (timeline, stacks, graph):
        good = HERE / "good" / f"{maker.__name__}.fpa"  # type: ignore[attr-defined]
        good.write_bytes(write_archive(maker, rows=90, batch=30)[0])
    data = write_archive(timeline, rows=90, batch=30)[0]
    sections = [s for s in scan(lambda at, n: data[at : at + n], 16, len(data)) if isinstance(s, Section)]
    chunk = [s for s in sections if s.type == ROWS][1]

    later = bytearray(data)
    struct.pack_into("<H", later, 8, 7)
    struct.pack_into("<I", later, 12, zlib.crc32(later[:12]))
    bomb = bytearray(data)
    bomb[chunk.offset + 3] = ZSTD
    struct.pack_into("<I", bomb, chunk.offset + 12, 0xFFFFFFF0)
    struct.pack_into("<I", bomb, chunk.offset + 20, zlib.crc32(bomb[chunk.offset : chunk.offset + 20]))
    flipped = bytearray(data)
    flipped[chunk.offset + HEADER_NBYTES + 3] ^= 4
    for name, content in (
        ("later_version", later),
        ("bomb", bomb),
        ("flipped_bit", flipped),
        ("cut_in_chunk", data[: chunk.offset + HEADER_NBYTES + 9]),
        ("header_only", data[:16]),
        ("cut_magic", data[:12]),
    ):
        (HERE / "bad" / f"{name}.fpa").write_bytes(content)


if __name__ == "__main__":
    main()
