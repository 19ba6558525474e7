"""The archive: it returns what was stored, and damage is located or reported."""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

import fastprof
from fastprof import formats
from fastprof.core._c import lib
from fastprof.core.engine import read, write
from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.formats.archive import _cbor as archive_cbor
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive import write as archive_write
from fastprof.formats.archive.dictionary import DICTIONARY
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.sections import HEADER_NBYTES, INDEX, ROWS, TABLES, Codec
from fastprof.formats.archive.write import ArchiveWriter
from fastprof.store import adding, compact
from fastprof.store import listing as archive_store
from tests.reference import archive as reference
from tests.support.archives import dump, graph, stacks, timeline, write_archive
from tests.support.chosen import cases
from tests.support.paths import CORPUS
from tests.support.product import timeline as timeline_of
from tests.support.xraylog import FdrLog

MAKERS = {"timeline": timeline, "stacks": stacks, "graph": graph}


def read_dump(data: bytes, **options: object) -> tuple[list[object], Log]:
    model, log = Model(), Log()
    reader = ArchiveReader(Source(data, "x.fpa"), model, Options(**options), log)  # type: ignore[arg-type]
    return dump(reader, model), log


def sections(data: bytes) -> list[archive_sections.Section]:
    found = list(archive_sections.scan(lambda at, n: data[at : at + n], archive_sections.FILE_HEADER_NBYTES, len(data)))
    assert all(isinstance(s, archive_sections.Section) for s in found)
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("view", MAKERS)
def test_round_trip(view: str) -> None:
    data, want = write_archive(MAKERS[view], rows=5000)
    got, log = read_dump(data)
    assert got == want
    assert not log.losses


@pytest.mark.parametrize("view", MAKERS)
def test_many_chunks(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_write, "CHUNK_ROWS", 700)
    data, want = write_archive(MAKERS[view], rows=5000)
    assert sum(s.type == ROWS for s in sections(data)) > 3
    assert read_dump(data)[0] == want


def test_any_level_says_the_same() -> None:
    wanted = write_archive(timeline, rows=300)[1]
    for level in (1, 7, 19, 22):
        assert read_dump(write_archive(timeline, rows=300, level=level)[0])[0] == wanted


def test_an_empty_profile() -> None:
    data, want = write_archive(timeline, rows=0)
    assert read_dump(data)[0] == want


def test_a_jittering_clock_costs_little() -> None:
    """Multiples of 10.0187 rounded down: steps of 5 or 6 cost a bit or so a row."""
    model = Model()
    model.add_part(Part())
    thread = lib.fp_model_thread(model.c, 0, 1, 1)
    f = model.function("f")
    n = 20000
    steps = [5 + (i * 7919 % 97 < 40) for i in range(n)]
    batch = Batch("timeline", n)
    total, times = 0, []
    for i in range(n):
        total += steps[i]
        times.append(1_800_000_000_000_000_000 + int(total * 10.0187))
        batch.c.time[i], batch.c.thread[i], batch.c.function[i], batch.c.op[i] = times[-1], thread, f, i % 2
    batch.c.n = n
    out = io.BytesIO()
    write([batch], ArchiveWriter(model, Sink(out), Options(), Log()))
    assert len(out.getvalue()) < n * 1.6 / 8 + 1500
    copy = Model()
    got = [t for b in read(ArchiveReader(Source(out.getvalue()), copy, Options(), Log())) for t in b["time"]]
    assert got == times


# ---- damage ----------------------------------------------------------------


@pytest.mark.parametrize("view", cases(MAKERS, default=["stacks"]))
def test_cut_anywhere(view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_write, "CHUNK_ROWS", 64)
    data, want = write_archive(MAKERS[view], rows=200, batch=50)
    rows = [row for row in want if row[0] == "row"]
    chunks = [s for s in sections(data) if s.type == ROWS]
    index = sections(data)[-1]
    assert index.type == INDEX
    got, log = read_dump(data[: index.offset + index.nbytes], lenient=True)  # the trailer holds no data
    assert got == want and log.losses
    for cut in (*range(index.offset + index.nbytes), len(data) - 16, len(data) - 1):
        with pytest.raises(FormatError) as error:
            read_dump(data[:cut])
        assert error.value.offset is not None and error.value.offset <= cut
        try:
            got, log = read_dump(data[:cut], lenient=True)
        except FastprofError:
            assert cut < chunks[0].offset
            continue
        kept = [row for row in got if row[0] == "row"]
        assert kept == rows[: len(kept)]
        whole = sum(s.offset + s.nbytes <= cut for s in chunks)
        assert len(kept) >= min(whole * 50, len(rows))
        assert log.losses


@pytest.mark.parametrize("view", cases(MAKERS, default=["stacks"]))
def test_one_flipped_byte(view: str) -> None:
    data, want = write_archive(MAKERS[view], rows=12)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        try:
            assert read_dump(bytes(damaged))[0] == want
        except FormatError as error:
            assert error.offset is not None and error.offset <= len(data)
        with contextlib.suppress(FastprofError):
            read_dump(bytes(damaged), lenient=True)


def test_a_damaged_chunk_loses_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_write, "CHUNK_ROWS", 100)
    data, want = write_archive(timeline, rows=500, batch=100)
    victim = [s for s in sections(data) if s.type == ROWS][2]
    damaged = bytearray(data)
    damaged[victim.offset + HEADER_NBYTES + 5] ^= 1
    with pytest.raises(FormatError, match=f"at byte {victim.offset + HEADER_NBYTES}: section does not match its check"):
        read_dump(bytes(damaged))
    got, log = read_dump(bytes(damaged), lenient=True)
    rows = [row for row in want if row[0] == "row"]
    assert [row for row in got if row[0] == "row"] == rows[:200] + rows[300:]
    assert log.losses == {"archive-chunks": 1, "archive-rows": 100}
    assert "a chunk of 100 rows is lost, times" in log.warnings[0]


def test_without_an_index_it_is_rebuilt() -> None:
    data, want = write_archive(graph, rows=300)
    index = next(s for s in sections(data) if s.type == INDEX)
    got, log = read_dump(data[: index.offset], lenient=True)
    assert got == want
    assert log.losses == {"archive-indexes": 1}
    with pytest.raises(FormatError, match="lenient=True recovers"):
        read_dump(data[: index.offset])


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk that is truncated, missing, or whose damage only its rows reveal."""
    monkeypatch.setattr(archive_write, "CHUNK_ROWS", 500)
    data, want = write_archive(timeline, rows=2500, batch=500)
    times = [row[2]["time"] for row in want if row[0] == "row"]
    chunks = [s for s in sections(data) if s.type == ROWS]
    index = sections(data)[-1]

    _, log = read_dump(data[: chunks[3].offset + 100], lenient=True)
    nbytes = chunks[3].nbytes
    assert f"at byte {chunks[3].offset}: the file ends inside a chunk of rows of {nbytes} bytes" in log.warnings[1]
    assert f"the end of the profile is missing: 1,500 rows are left, the last at time {times[1499]}" in log.warnings[2]

    shorter = data[: chunks[1].offset] + data[chunks[2].offset :]
    got, log = read_dump(shorter, lenient=True)
    assert log.losses == {"archive-indexes": 1, "archive-rows": 500}
    assert "the profile has 2,500 rows, but 2,000 rows are left" in log.warnings[-1]

    damaged = bytearray(data[: index.offset])
    damaged[chunks[2].offset + HEADER_NBYTES + 9] ^= 1
    got, log = read_dump(bytes(damaged), lenient=True)
    assert log.losses == {"archive-indexes": 1, "archive-chunks": 1, "archive-rows": 500}
    assert f"a chunk of an unknown number of rows is lost, after time {times[999]}" in log.warnings[1]
    assert sum(row[0] == "row" for row in got) == 2000


def test_an_end_that_says_more_rows_than_there_are(tmp_path: Path) -> None:
    data, _ = write_archive(stacks, rows=50)
    end = next(s for s in sections(data) if s.type == archive_sections.END)
    with pytest.raises(FormatError, match="has 60 rows, but 50 rows are left") as error:
        read_dump(_with_end(data, {"kinds": [60]}))
    assert error.value.offset == end.offset


def with_entry(index: Any, place: int, change: Callable[[Any], Any]) -> Any:
    """The content of the INDEX of one profile, with a changed item of the profile's entry."""
    count, bases, (height, names, numbers, (entry,)) = index
    items = archive_cbor.loads(entry)
    items[place] = change(items[place])
    return [count, bases, [height, names, numbers, [archive_cbor.dumps(items)]]]


def replaced(data: bytes, type_: int, change: Callable[[Any], Any]) -> bytes:
    """An archive of one profile in which the first metadata section of a type is replaced."""
    victim, index = (next(s for s in sections(data) if s.type == t) for t in (type_, INDEX))
    said, entries = (
        archive_cbor.loads(Codec().unpack(s, data[s.offset + HEADER_NBYTES : s.offset + s.nbytes]))
        for s in (victim, index)
    )
    if type_ == INDEX:
        return (
            data[: index.offset]
            + _repack(index, archive_cbor.dumps(change(said)))
            + data[-archive_sections.TRAILER.size :]
        )
    changed = _repack(victim, archive_cbor.dumps(change(said)))
    rank = [s.offset for s in sections(data)].index(victim.offset)
    entries = with_entry(entries, 3, lambda sizes: [*sizes[:rank], len(changed), *sizes[rank + 1 :]])
    before = data[: victim.offset] + changed + data[victim.offset + victim.nbytes : index.offset]
    return before + _repack(index, archive_cbor.dumps(entries)) + archive_sections.trailer(len(before))


@pytest.mark.parametrize("entry", [5, [], [0], [0, 5], [0, {}, 1], ["0", {}], [1.5, {}]])
def test_entries_of_parts_that_are_none_are_damage(entry: object) -> None:
    data, _ = write_archive(graph, rows=50)
    with pytest.raises(FormatError, match="parts: "):
        read_dump(replaced(data, archive_sections.PARTS, lambda said: [entry]))


def test_a_part_with_more_value_types_than_its_rows_have_values_is_damage() -> None:
    data, _ = write_archive(graph, rows=50)
    many = [ValueType(f"e{i}") for i in range(9)]
    whole = replaced(data, archive_sections.PARTS, lambda said: [[i, p | {"value_types": many}] for i, p in said])
    with pytest.raises(FormatError, match="the part has 9"):
        read_dump(whole)
    _, log = read_dump(whole, lenient=True)
    assert (log.losses["archive-chunks"], log.losses["archive-rows"]) == (1, 50)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        *(("count", v) for v in (20.0, -1, None, 1 << 63)),
        *(("bases", v) for v in (20.0, -1, None, 1 << 40)),
        *(("page", v) for v in ([], 5, [0, ["a"], [0]], [0, ["a"], [0], []], [0, ["b", "a"], [0, 1], [b"", b""]])),
        *(("page", v) for v in ([33, ["a"], [16], []], [1, ["a"], [16], [b""]], [1, ["a"], [1 << 40], []])),
        *(("number", v) for v in (float("inf"), -1, 1 << 32, True)),
        *(("name", v) for v in (5, None)),
        *((1, v) for v in (16.0, float("nan"), "16", 15, 1 << 40)),
        *((2, v) for v in (1 << 40, "x", [5], b"")),
        *((3, v) for v in ([1.5], 7, [])),
        *((4, v) for v in ([], [[1, [], [1], []]], [5], 5)),
        *((5, v) for v in ([], {"totals": 1}, {"format": b"x"}, {"values": [1]})),
    ],
)
def test_an_index_that_says_nonsense_is_an_error(place: int | str, value: object) -> None:
    data, _ = write_archive(timeline, rows=50)

    def change(said: list[Any]) -> list[Any]:
        count, bases, page = said
        if isinstance(place, int):
            return list(with_entry(said, place, lambda _: value))
        if place in ("number", "name"):
            names, numbers = ([value] if place == which else page[at] for at, which in ((1, "name"), (2, "number")))
            page = [page[0], names, numbers, page[3]]
        if place == "page":
            page = value
        return [value if place == "count" else count, value if place == "bases" else bases, page]

    whole = replaced(data, INDEX, change)
    with pytest.raises(FormatError, match="index: ") as error:
        read_dump(whole)
    assert error.value.offset == next(s.offset for s in sections(data) if s.type == INDEX)
    assert sum(read_dump(whole, lenient=True)[1].losses.values()) == 1  # the loss is its index


@pytest.mark.parametrize(
    "changes",
    [{"facts": [1]}, {"repairs": {"a": "b"}}, {"losses": {1: 2}}, {"threads": [[1]]}, {"kinds": 5}, {"counts": [1.5]}],
)
def test_an_end_that_says_nonsense_is_damage(changes: dict[str, Any], tmp_path: Path) -> None:
    data, _ = write_archive(timeline, rows=50)
    whole = _with_end(data, changes)
    end = next(s for s in sections(whole) if s.type == archive_sections.END)
    with pytest.raises(FormatError, match="summary: ") as error:
        read_dump(whole)
    assert error.value.offset == end.offset
    assert read_dump(whole, lenient=True)[1].losses["archive-summaries"] == 1
    (tmp_path / "x.fpa").write_bytes(whole)
    assert archive_store.members(str(tmp_path / "x.fpa"))  # the index has what they list
    (wrong,) = compact.verify(str(tmp_path / "x.fpa"))
    assert "summary: " in wrong["error"]


def test_metadata_that_expands_beyond_measure_is_refused() -> None:
    """Metadata is much larger as Python objects than in bytes: 4 KB of a file must not become gigabytes."""
    from fastprof.formats.archive.sections import METADATA_FREE

    data, _ = write_archive(timeline, rows=50)
    index = next(s for s in sections(data) if s.type == INDEX)
    raw = archive_cbor.dumps([None, *([{}] * METADATA_FREE)])
    import zstandard

    bomb = _repack(index, zstandard.ZstdCompressor().compress(raw), flags=archive_sections.ZSTD, raw=len(raw))
    with pytest.raises(FormatError, match="more than it can expand to"):
        read_dump(data[: index.offset] + bomb + data[-archive_sections.TRAILER.size :])
    # our own output stays below that limit
    packed = Codec().pack(INDEX, 0, raw)
    section = archive_sections.parse_header(packed, 0)
    assert Codec().unpack(section, packed[HEADER_NBYTES:]) == raw


def _with_end(data: bytes, changes: dict[str, Any]) -> bytes:
    """An archive of one profile whose END is changed."""
    end, index = (next(s for s in sections(data) if s.type == type_) for type_ in (archive_sections.END, INDEX))
    said, entries = (
        archive_cbor.loads(Codec().unpack(s, data[s.offset + HEADER_NBYTES : s.offset + s.nbytes]))
        for s in (end, index)
    )
    changed = _repack(end, archive_cbor.dumps(said | changes))
    entries = with_entry(entries, 3, lambda sizes: [*sizes[:-1], len(changed)])
    trailer = archive_sections.trailer(end.offset + len(changed))
    return data[: end.offset] + changed + _repack(index, archive_cbor.dumps(entries)) + trailer


def _repack(section: archive_sections.Section, payload: bytes, **changes: int) -> bytes:
    fields = {"type": section.type, "flags": 0, "stored": len(payload), "raw": len(payload)} | changes
    head = archive_sections.HEADER.pack(
        archive_sections.SYNC, fields["type"], fields["flags"], section.member, fields["stored"], fields["raw"],
        zlib.crc32(payload),
    )  # fmt: skip
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def test_bombs_are_refused_before_allocation() -> None:
    data, _ = write_archive(timeline, rows=50)
    victim = next(s for s in sections(data) if s.type == ROWS)
    stored = data[victim.offset + HEADER_NBYTES : victim.offset + victim.nbytes]
    for raw in (0xFFFFFFFF, len(stored) * 70000):
        bomb = _repack(victim, stored, flags=archive_sections.ZSTD, raw=raw)
        with pytest.raises(FormatError, match="more than it can expand to"):
            read_dump(data[: victim.offset] + bomb + data[victim.offset + victim.nbytes :])
    import zstandard

    frame = zstandard.ZstdCompressor().compress(bytes(1 << 20))
    with pytest.raises(archive_sections.SectionError, match="claims 1048576 bytes"):
        header = _repack(victim, frame, flags=archive_sections.ZSTD, raw=100)
        Codec().unpack(archive_sections.parse_header(header, 0), frame)


def test_later_versions() -> None:
    data, want = write_archive(timeline, rows=50)
    later = bytearray(data)
    struct.pack_into("<H", later, 8, 2)
    struct.pack_into("<I", later, 12, zlib.crc32(later[:12]))
    with pytest.raises(FormatError, match="archive version is 2, this fastprof reads version 1") as error:
        read_dump(bytes(later))
    assert error.value.code == lib.FP_E_VERSION
    # a section of an unknown type before the index, and an index that lists it
    index = next(s for s in sections(data) if s.type == INDEX)
    end = next(s for s in sections(data) if s.type == archive_sections.END)
    for flags, refused in ((archive_sections.OPTIONAL, False), (0, True)):
        unknown = _repack(end, b"whatever", type=99, flags=flags)
        stored = data[index.offset + HEADER_NBYTES : index.offset + index.nbytes]
        entries = archive_cbor.loads(Codec().unpack(index, stored))
        entries = with_entry(entries, 2, lambda types: types[:-1] + bytes((99, archive_sections.END)))
        two = [len(unknown), end.nbytes]
        entries = with_entry(entries, 3, lambda sizes, two=two: [*sizes[:-1], *two])
        changed = (
            data[: end.offset]
            + unknown
            + data[end.offset : end.offset + end.nbytes]
            + _repack(index, archive_cbor.dumps(entries))
            + archive_sections.trailer(index.offset + len(unknown))
        )
        if refused:
            with pytest.raises(FormatError, match="unknown type 99"):
                read_dump(changed)
        else:
            assert read_dump(changed)[0] == want


# ---- the index's statements ------------------------------------------------------


def _info(data: bytes, tmp_path: Path, lenient: bool = False) -> tuple[dict[str, object], Log]:
    path = tmp_path / "x.fpa"
    path.write_bytes(data)
    log = fastprof.info(str(path), lenient=lenient)
    return log.facts, log


@pytest.mark.parametrize("view", MAKERS)
def test_info_does_not_look_into_chunks(view: str, tmp_path: Path) -> None:
    data, _ = write_archive(MAKERS[view], rows=40)
    facts, log = _info(data, tmp_path)
    assert isinstance(facts["records"], int) and facts["records"] > 30
    blind = bytearray(data)
    for section in sections(data):
        if section.type in (ROWS, TABLES):
            blind[section.offset : section.offset + section.nbytes] = bytes(section.nbytes)
    assert _info(bytes(blind), tmp_path)[0] == facts
    assert not log.losses and not log.warnings
    decoded, log = _info(data, tmp_path, lenient=True)
    assert decoded == facts and not log.losses


@pytest.mark.parametrize("view", MAKERS)
def test_info_without_an_index_decodes(view: str, tmp_path: Path) -> None:
    data, _ = write_archive(MAKERS[view], rows=40)
    facts = _info(data, tmp_path)[0]
    index = sections(data)[-1]
    damaged = bytearray(data)
    damaged[index.offset + HEADER_NBYTES + 3] ^= 16
    with pytest.raises(FormatError, match="section does not match its checksum"):
        _info(bytes(damaged), tmp_path)
    found, log = _info(bytes(damaged), tmp_path, lenient=True)
    assert found == facts
    assert log.losses == {"archive-indexes": 1}


def test_a_summary_that_says_nonsense_is_an_error(tmp_path: Path) -> None:
    data, _ = write_archive(graph, rows=50)
    end = next(s for s in sections(data) if s.type == archive_sections.END)
    for key, value in (("kinds", [1] * 9), ("kinds", [-1]), ("totals", [1 << 63]), ("counts", 3), ("threads", [[1]])):
        whole = _with_end(data, {key: value})
        with pytest.raises(FormatError, match="summary: ") as error:
            _info(whole, tmp_path)
        assert error.value.offset == end.offset


def test_ids_whose_names_are_the_same_stay_apart(tmp_path: Path) -> None:
    """XRay functions 3 and 4 are both named f, and the log is restored unchanged."""
    log = FdrLog(version=5, frequency=10**9)
    log.buffer(tid=7, pid=1).cpu(0, 1000).enter(3).enter(4).exit(4, 5).enter(5).exit(5, 1).exit(3, 25)
    map_ = tmp_path / "map.yaml"
    map_.write_text("".join(f"- {{ id: {i}, function: {i * 16}, function-name: f }}\n" for i in (3, 4)))
    first, stored, back = (str(tmp_path / name) for name in ("a.xray", "x.fpa", "b.xray"))
    Path(first).write_bytes(log.bytes())
    fastprof.convert([first], stored, symbols=[map_])
    assert not fastprof.convert([stored], back).not_representable
    assert timeline_of(Path(back))[0] == timeline_of(Path(first))[0]
    assert fastprof.info(first, symbols=[map_]).facts["functions"] == fastprof.info(stored).facts["functions"] == 2
    (profile,) = reference.read(Path(stored).read_bytes())
    assert sorted(profile.numbers.values()) == [3, 4]


# ---- random access -----------------------------------------------------------


def _chosen(data: bytes, **options: object) -> tuple[list[object], int]:
    """The rows, and the number of chunk bytes read for them."""
    model = Model()
    source = Source(data)
    reader = ArchiveReader(source, model, Options(**options), Log())  # type: ignore[arg-type]
    before = source.bytes_read
    rows = [row for row in dump(reader, model) if row[0] == "row"]
    return rows, source.bytes_read - before - sum(s.nbytes for s in sections(data) if s.type not in (ROWS, INDEX))


def test_time_range_reads_only_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_write, "CHUNK_ROWS", 500)
    data, want = write_archive(timeline, rows=20000, batch=500)
    times = [row[2]["time"] for row in want if row[0] == "row"]
    first, last = times[9000], times[9400]
    got, nbytes = _chosen(data, time_range=(first, last))
    assert [r[2:] for r in got] == [r[2:] for r in want if r[0] == "row" and first <= r[2]["time"] <= last]
    chunks = [s.nbytes for s in sections(data) if s.type == ROWS]
    assert len(chunks) == 40
    assert nbytes <= 3 * max(chunks)


def test_threads_read_only_their_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads in sequence, like the buffers of a log."""
    monkeypatch.setattr(archive_write, "CHUNK_ROWS", 100)

    def turns(model: Model, rows: int, size: int, changed: int) -> Iterator[Batch]:
        for n, batch in enumerate(timeline(model, rows, size, changed)):
            for i in range(len(batch)):
                batch.c.thread[i] = 1 + n // 5 % 3
            yield batch

    turns.__name__ = "timeline"
    data, want = write_archive(turns, rows=3000, batch=100)
    got, nbytes = _chosen(data, threads=(102,))
    rows = [row for row in want if row[0] == "row"]
    wanted = [row for row in rows if row[2]["thread"] == 2]
    assert 500 < len(wanted) < len(rows)
    assert [row[2:] for row in got] == [row[2:] for row in wanted]
    chunks = [s.nbytes for s in sections(data) if s.type == ROWS]
    assert nbytes <= sum(chunks[i] for i in range(len(chunks)) if rows[i * 100][2]["thread"] == 2)


def test_parts_read_only_their_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_write, "CHUNK_ROWS", 200)
    data, want = write_archive(graph, rows=4000, batch=200)
    got, nbytes = _chosen(data, part=2)
    assert got == [row for row in want if row[0] == "row" and row[1] == 1]
    chunks = [s.nbytes for s in sections(data) if s.type == ROWS]
    assert len(chunks) == 20
    assert nbytes <= sum(chunks[10:])


def test_threads_and_parts() -> None:
    data, want = write_archive(timeline, rows=2000)
    tids = {row[2]["thread"]: row for row in want if row[0] == "row"}
    assert len(tids) > 1
    model = Model()
    reader = ArchiveReader(Source(data), model, Options(threads=(102,)), Log())
    kept = [t for b in read(reader) for t in b["thread"]]
    assert kept and {model.row("threads", t)[2] for t in kept} == {102}
    data, want = write_archive(graph, rows=2000)
    got, _ = read_dump(data, part=2)
    assert [r for r in got if r[0] == "row"] == [r for r in want if r[0] == "row" and r[1] == 1]


# ---- metadata --------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, 23, 24, 255, 256, 1 << 32, (1 << 64) - 1, -1, -(1 << 63), 1.5, b"\xff", "ä\udc80",
     [1, (2, "x")], {"a": {"b": [None]}}, ValueType("Ir", "", "x", "a + b")],
)  # fmt: skip
def test_cbor(value: object) -> None:
    data = archive_cbor.dumps(value)
    assert archive_cbor.loads(data) == value
    for cut in range(len(data)):
        with pytest.raises(archive_cbor.CborError):
            archive_cbor.loads(data[:cut])


def test_cbor_refuses() -> None:
    deep: list[object] = []
    for _ in range(40):
        deep = [deep]
    for value in (object(), 1 << 64, {1, 2}, {(1,): 2}, deep):
        with pytest.raises(archive_cbor.CborError):
            archive_cbor.dumps(value)
    long_list, list_as_key = b"\x9b" + b"\xff" * 8, b"\xa1\x80\x00"
    for data in (b"\x1c", b"\x5f", b"\xc1\x00", b"\x81" * 40, long_list, list_as_key, b"\x61\xff", b"\x00\x00"):
        with pytest.raises(archive_cbor.CborError):
            archive_cbor.loads(data)


def test_registered() -> None:
    assert formats.get("archive").view == "any"
    assert formats.for_output("x.fpa").name == "archive"
    assert formats.detect(Source(write_archive(timeline, rows=3)[0], "unknown")).name == "archive"
    assert TABLES == 3


@pytest.mark.parametrize("target", ["trace-event", "firefox", "speedscope"])
def test_processes_are_not_called_as_the_archive(target: str, tmp_path: Path) -> None:
    log = CORPUS / "xray/good/basic1-swapped.xray"
    one, store = tmp_path / "one.fpa", tmp_path / "store.fpa"
    fastprof.convert(log, one)
    adding.add(str(store), [str(log)])
    for path, name in ((one, b""), (store, b"basic1-swapped.xray"), (f"{store}:{log.name}", b"basic1-swapped.xray")):
        out = io.BytesIO()
        fastprof.convert(path, out, to=target)
        assert name in out.getvalue() and b".fpa" not in out.getvalue()


def test_the_dictionary_is_the_documented_one() -> None:
    assert reference.metadata_dictionary() == DICTIONARY


def test_metadata_with_a_former_dictionary_is_read() -> None:
    """A former dictionary is the end of today's."""
    former = DICTIONARY[-754:]
    assert zlib.crc32(former) == 0x869290DF
    raw = archive_cbor.dumps({"view": "stacks", "name": "a", "creator": "fastprof 0.1.0"})
    dictionary = zstandard.ZstdCompressionDict(former, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    stored = zstandard.ZstdCompressor(dict_data=dictionary).compress(raw)
    how = archive_sections.ZSTD | archive_sections.METADATA
    head = archive_sections.Section(0, archive_sections.MEMBER, how, 0, len(stored), len(raw), 0)
    section = archive_sections.with_header(head, 0, stored)
    assert len(stored) < len(raw)
    assert Codec().unpack(archive_sections.parse_header(section, 0), stored) == raw
