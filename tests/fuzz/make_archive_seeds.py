"""Write the seeds of archive_fuzz.c: contents of archive sections.  python -m tests.fuzz.make_archive_seeds"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import fastprof
from fastprof.formats.archive.sections import FILE_HEADER_NBYTES, ROWS, TABLES, Codec, Section, scan

# The first byte, which selects the kind of the rest; rows come in batches of eight
AS_TABLES, AS_ROWS, AS_DIFFERENCE, AS_TABLES_DIFFERENCE = 1, 2, 3, 7


def jittering_clock() -> bytes:
    """An archive of calls whose times are multiples of 10.0187, rounded: a clock that was converted to nanoseconds.

    Three functions have distinct step sizes, so that each gets its own table.  After a pause the clock is set.
    """
    steps, late, events = 0, 0, []
    for i in range(600):
        if i % 100 == 99:
            steps, late = steps + 5000, late + 5
        for kind in "BE":
            steps += (1, 3, 40)[i % 3] + i * i % 2
            time = round(steps * 10.0187) + late
            events.append({"ph": kind, "name": "fgh"[i % 3], "pid": 1, "tid": 1, "ts": time / 1000})
    with TemporaryDirectory() as folder:
        path = Path(folder, "clock.fpa")
        fastprof.convert(json.dumps(events).encode(), path, from_="trace-event")
        return path.read_bytes()


def graphs() -> bytes:
    """Two graphs of one program, each with other lines, and the rows of each."""
    found = []
    one = "1 10\n2 20\ncalls=1 5\n2 30\njcnd=1/2 4\n3\n4 40\n"
    two = "1 11\ncalls=2 5\n2 30\nfi=b\n7 50\nfe=a\n4 40\n"
    for calls in (one, two):
        text = f"events: Ir\nfl=a\nfn=f\ncfn=g\n{calls}fn=g\n5 60\n6 70\n"
        with TemporaryDirectory() as folder:
            path = Path(folder, "graph.fpa")
            fastprof.convert(text.encode(), path, from_="callgrind")
            found.append(next(raw for type_, raw in payloads(path.read_bytes()) if type_ == ROWS))
    return len(found[0]).to_bytes(2, "little") + found[0] + found[1]


def payloads(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and payload of the sections of tables and rows."""
    codec = Codec()
    for section in scan(lambda at, n: data[at : at + n], FILE_HEADER_NBYTES, len(data)):
        if isinstance(section, Section) and section.type in (TABLES, ROWS):
            yield section.type, codec.unpack(section, data[section.offset + 24 : section.offset + section.nbytes])


def main() -> None:
    tests = Path(__file__).parents[1]
    (tests / "fuzz" / "seeds" / "archive-graphs-difference").write_bytes(bytes([AS_DIFFERENCE]) + graphs())
    archives = {path.stem: path.read_bytes() for path in sorted((tests / "corpus" / "archive" / "good").iterdir())}
    archives["clock"] = jittering_clock()
    for stem, data in archives.items():
        found: dict[int, list[bytes]] = {TABLES: [], ROWS: []}
        for type_, raw in payloads(data):
            found[type_].append(raw)
        rows = found[ROWS][0]
        inputs = {"tables": (AS_TABLES, found[TABLES][0])}
        inputs |= {f"rows-{i}": (AS_ROWS, raw) for i, raw in enumerate(found[ROWS])}
        inputs["difference"] = (AS_DIFFERENCE, len(rows).to_bytes(2, "little") + rows + rows)
        tables = found[TABLES][0]
        inputs["tables-difference"] = (AS_TABLES_DIFFERENCE, len(tables).to_bytes(2, "little") + tables + tables)
        for name, (kind, raw) in inputs.items():
            (tests / "fuzz" / "seeds" / f"archive-{stem}-{name}").write_bytes(bytes([kind]) + raw)


main()
