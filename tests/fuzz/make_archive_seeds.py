"""Writes the seeds of archive_fuzz.c: what the sections of archives hold.  python -m tests.fuzz.make_archive_seeds"""

from __future__ import annotations

from pathlib import Path

from fastprof.formats.archive.sections import FILE_HEADER_NBYTES, ROWS, TABLES, Codec, Section, scan

# The first byte, which says what the rest is; rows come in batches of eight
AS_TABLES, AS_ROWS, AS_DIFFERENCE = 1, 2, 3


def main() -> None:
    tests = Path(__file__).parents[1]
    for path in sorted((tests / "corpus" / "archive" / "good").iterdir()):
        data, codec = path.read_bytes(), Codec()
        found: dict[int, list[bytes]] = {TABLES: [], ROWS: []}
        for section in scan(lambda at, n, data=data: data[at : at + n], FILE_HEADER_NBYTES, len(data)):
            if isinstance(section, Section) and section.type in found:
                raw = codec.unpack(section, data[section.offset + 24 : section.offset + section.nbytes])
                found[section.type].append(raw)
        rows = found[ROWS][0]
        inputs = {"tables": (AS_TABLES, found[TABLES][0])}
        inputs |= {f"rows-{i}": (AS_ROWS, raw) for i, raw in enumerate(found[ROWS])}
        inputs["difference"] = (AS_DIFFERENCE, len(rows).to_bytes(2, "little") + rows + rows)
        for name, (kind, raw) in inputs.items():
            (tests / "fuzz" / "seeds" / f"archive-{path.stem}-{name}").write_bytes(bytes([kind]) + raw)


main()
