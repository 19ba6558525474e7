"""Small profiles of a store: all sections of one are a bundle, compressed with another bundle as the dictionary."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from fastprof.core.errors import FastprofError, FormatError
from fastprof.core.source import Source
from fastprof.formats.archive import bundle as bundles
from fastprof.formats.archive import packing
from fastprof.formats.archive.dictionary import DICTIONARY
from fastprof.formats.archive.index import codec_of, payload
from fastprof.formats.archive.sections import (
    BASED,
    BUNDLE,
    DIFFERENCE,
    END,
    FORGET,
    METADATA,
    ROWS,
    SHARED,
    TABLES,
    WITHOUT_MAGIC,
    ZSTD,
    Codec,
    Section,
    SectionError,
    with_header,
)
from fastprof.store import adding, compact, listing, pieces
from tests.support.archives import graph, stacks, timeline, write_archive
from tests.support.chosen import cases
from tests.unit.test_archive import read_dump, sections
from tests.unit.test_archive_alike import callgrind, folded, gperftools, holds
from tests.unit.test_hostile_archives import Store, bundle

N = 6
KINDS: dict[str, Callable[[int], bytes]] = {
    "folded": folded,
    "gperftools": gperftools,
    "callgrind": callgrind,
    "graph": lambda i: write_archive(graph, rows=300, changed=i)[0],
    "stacks": lambda i: write_archive(stacks, rows=300, changed=i)[0],
    "timeline": lambda i: write_archive(timeline, rows=300, changed=i)[0],
}


def _add(store: Path, dumps: dict[str, bytes], one_by_one: bool = False) -> None:
    for part in [[name] for name in dumps] if one_by_one else [[*dumps]]:
        with adding.adding(str(store)) as session:
            for name in part:
                session.add(dumps[name], name)


def _rows(data: bytes, tmp_path: Path) -> list[object]:
    one = tmp_path / "alone.fpa"
    one.unlink(missing_ok=True)
    _add(one, {"x": data})
    return read_dump(one.read_bytes())[0]


def _bundles(store: Path) -> list[Section]:
    return [s for s in sections(store.read_bytes()) if s.type == BUNDLE]


def _dumps(make: Callable[[int], bytes], n: int = N) -> dict[str, bytes]:
    return {f"d{i}": make(i) for i in range(n)}


@pytest.mark.parametrize("kind", cases(KINDS, default=["stacks"]))
def test_bundles_have_what_sections_have(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = _dumps(KINDS[kind])
    want = {name: _rows(data, tmp_path) for name, data in dumps.items()}
    apart = tmp_path / "apart.fpa"
    with monkeypatch.context() as patch:
        patch.setattr(packing, "MOST_NBYTES", 0)
        _add(apart, dumps)
    sizes = [apart.stat().st_size]
    for one_by_one in (False, True):
        store = tmp_path / f"{one_by_one}.fpa"
        _add(store, dumps, one_by_one)
        found = _bundles(store)
        assert len(found) == N - 1
        holds(store.read_bytes(), want)
        assert [{**one, "stored_bytes": 0} for one in listing.members(str(store))] == [
            {**one, "stored_bytes": 0} for one in listing.members(str(apart))
        ]
        compact.compact(str(store))
        assert compact.verify(str(store)) == []
        sizes.append(store.stat().st_size)
    # such stacks have little in common
    assert sizes[1] < sizes[0] * (1.1 if kind == "stacks" else 1) and abs(sizes[2] - sizes[1]) < 250


def test_pieces_are_bundles(tmp_path: Path) -> None:
    """Those made at once know of no family; later ones are copied as they are."""
    dumps = _dumps(folded)
    want = {name: _rows(data, tmp_path) for name, data in dumps.items()}
    store = tmp_path / "s.fpa"
    with adding.adding(str(store)) as session:
        for part in ([*dumps][:4], [*dumps][4:]):
            base = json.loads(json.dumps(session.base()))
            for name in part:
                pieces.write_piece(f"{store}.{name}", base, dumps[name], name)
            for name in part:
                session.add_piece(f"{store}.{name}")
    assert len(_bundles(store)) == N - 1
    # tables that are shared begin another row of bundles
    shared = sum(s.type == SHARED for s in sections(store.read_bytes()))
    assert sum(not s.flags & BASED for s in _bundles(store)) == 1 + shared
    holds(store.read_bytes(), want)


GONE = [["d0", "d1"], ["d0", "d1", "d2", "d3", "d4"], ["d0"], ["d1"], ["d4"]]


# What is gone first does not depend on the kind
@pytest.mark.parametrize(
    ("kind", "gone"),
    [
        pytest.param(kind, gone, marks=[pytest.mark.exhaustive] * (kind != "stacks"))
        for kind in KINDS
        for gone in GONE[: None if kind == "stacks" else 2]
    ],
)
def test_compact(kind: str, gone: list[str], tmp_path: Path) -> None:
    """d0 is the base of the tables and rows of all, d1 the other bundle of most."""
    dumps = _dumps(KINDS[kind])
    store = tmp_path / "s.fpa"
    _add(store, dumps)
    before = store.stat().st_size
    compact.remove(str(store), gone)
    want = {name: _rows(data, tmp_path) for name, data in dumps.items() if name not in gone}
    holds(store.read_bytes(), want)
    compact.compact(str(store))
    assert compact.verify(str(store)) == [] and store.stat().st_size < before
    holds(store.read_bytes(), want)
    _add(store, {"new": KINDS[kind](N)})
    holds(store.read_bytes(), want | {"new": _rows(KINDS[kind](N), tmp_path)})
    assert len(_bundles(store)) == len(want)


def test_compact_copies_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one that others refer to is compressed again, because it says where its bases are."""
    store = tmp_path / "s.fpa"
    _add(store, _dumps(gperftools))
    gone = [s.member for s in _bundles(store) if s.flags & BASED][-1]
    compact.remove(str(store), [f"d{gone}"])
    packed = []
    pack = Codec.pack_bundle
    monkeypatch.setattr(Codec, "pack_bundle", lambda *args: packed.append(args) or pack(*args))
    compact.compact(str(store))
    assert len(packed) == sum(not s.flags & BASED for s in _bundles(store)) < N / 2


def test_bundles_after_shared_tables(tmp_path: Path) -> None:
    """They begin anew with another bundle, whose base these tables are."""
    store = tmp_path / "s.fpa"
    dumps = _dumps(folded, 16)
    want = {name: _rows(data, tmp_path) for name, data in dumps.items()}
    _add(store, dumps)
    found = [s.type if s.flags & BASED else -s.type for s in sections(store.read_bytes()) if s.type in (SHARED, BUNDLE)]
    at = found.index(-SHARED)
    assert found == [-BUNDLE, *[BUNDLE] * (at - 1), -SHARED, -BUNDLE, *[BUNDLE] * (len(found) - at - 2)]
    for gone in ("d0", f"d{at + 1}", "d1"):
        compact.remove(str(store), [gone])
        compact.compact(str(store))
        del want[gone]
        holds(store.read_bytes(), want)


def test_the_whole_profile_is_passed_over(tmp_path: Path) -> None:
    """--time-range and --part need no rows of a bundle outside of them."""
    store = tmp_path / "s.fpa"
    _add(store, _dumps(KINDS["timeline"], 3))
    whole = store.read_bytes()
    rows = [row for row in read_dump(whole, member="d2")[0] if row[0] == "row"]  # type: ignore[index]
    assert len(rows) == 300
    some, log = read_dump(whole, member="d2", time_range=(0, 5))
    assert not [row for row in some if row[0] == "row"]  # type: ignore[index]
    assert log.facts["chunks_passed_over"] == 1 and sum(log.left_out.values()) == 300


@pytest.mark.parametrize("lenient", [False, True])
def test_damage(lenient: bool, tmp_path: Path) -> None:
    """Each byte: the same rows, or an error, or a loss that is counted."""
    store = tmp_path / "s.fpa"
    _add(store, {name: data[:800].rpartition(b"\n")[0] for name, data in _dumps(folded, 3).items()})
    whole = store.read_bytes()
    want = read_dump(whole, member="d2")[0]
    first, last = _bundles(store)
    said = 0
    for section in (first, last):
        for at in range(section.offset, section.offset + section.nbytes):
            damaged = whole[:at] + bytes((whole[at] ^ 1 << at % 8,)) + whole[at + 1 :]
            try:
                got, log = read_dump(damaged, member="d2", lenient=lenient)
            except FastprofError:
                assert not lenient
                said += 1
                continue
            said += sum(log.losses.values()) > 0
            assert got == want or log.losses["archive-rows"] == sum(row[0] == "row" for row in want)  # type: ignore[index]
    assert said == first.nbytes + last.nbytes


def test_without_an_index(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    dumps = _dumps(folded, 3)
    _add(store, dumps)
    whole = store.read_bytes()[:-16]
    for name, data in dumps.items():
        assert read_dump(whole, member=name, lenient=True)[0] == _rows(data, tmp_path)
    second = _bundles(store)[1]
    damaged = bytearray(whole)
    damaged[second.offset + 40] ^= 1
    assert read_dump(bytes(damaged), member="d1", lenient=True)[0] == _rows(dumps["d1"], tmp_path)
    with pytest.raises(FastprofError, match="no profile 'd2'"):
        read_dump(bytes(damaged), member="d2", lenient=True)


def _made(body: bytes, flags: int = 0, stored: bytes = b"", section: Section | None = None) -> bytes:
    """A bundle with this payload in the place of `section`."""
    raw_content = zstandard.ZstdCompressionDict(DICTIONARY, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    parameters = zstandard.ZstdCompressionParameters.from_level(3, write_content_size=0)
    frame = zstandard.ZstdCompressor(dict_data=raw_content, compression_params=parameters).compress(body)
    stored += frame[4:]
    header = Section(0, BUNDLE, flags | ZSTD | METADATA | WITHOUT_MAGIC, 1, len(stored), len(body), 0)
    return with_header(header, 1, stored)


def test_hostile_bundles(tmp_path: Path) -> None:
    """With valid checksums: errors at the bundle."""
    store = tmp_path / "s.fpa"
    _add(store, _dumps(folded, 3))
    whole = store.read_bytes()
    with Source(whole, "s.fpa") as source:
        first, second = _bundles(store)
        raw = payload(source, codec_of(source), first)
        other = payload(source, codec_of(source), second)[16:]
    bases, body = raw[:16], raw[16:]
    tables, rows = struct.unpack("<QQ", bases)

    def read(made: bytes) -> Any:
        """What a bundle after the last one has."""
        data = whole[: second.offset + second.nbytes] + made
        section = sections(data)[-1]
        with Source(data, "s.fpa") as source:
            codec = codec_of(source)
            found = bundles.opened(section, payload(source, codec, section))
            return [*bundles.restored(codec, found)]

    good = read(_made(bases + body))
    assert [type_ for type_, _ in good] == [1, 2, 3, 4, 5]
    wrong = {
        "the bases of a bundle are missing": [b"", bases[:15]],
        "ends inside a section": [bases + b"\3", bases + b"\3\0\5abcd", bases + b"\3\0" + b"\xff" * 6, raw[:-1]],
        "has wrong flags": [
            bases + bytes((BUNDLE, 0, 0)),
            bases + bytes((FORGET, 0, 0)),  # what follows would come after the next section
            bases + bytes((TABLES, 1, 0)),
            bases + bytes((1, DIFFERENCE, 0)),
            bytes(16) + body,
            raw + body,  # two differences to one base
        ],
        "does not fit the base": [
            struct.pack("<QQ", rows, tables) + body,
            bases + bytes((ROWS, DIFFERENCE, 5)) + b"\2\0\1\1\2",
        ],
    }
    for what, payloads in wrong.items():
        for one in payloads:
            with pytest.raises(SectionError, match=what):
                read(_made(one))
    with pytest.raises(SectionError, match="refers to another base"):
        read(_made(other, BASED, struct.pack("<Q", second.offset)))
    for offset in (0, 17, len(whole), 1 << 63):
        with pytest.raises((SectionError, FastprofError)):
            read(_made(struct.pack("<QQ", offset, rows) + body))
        with pytest.raises((SectionError, FastprofError)):
            read(_made(other, BASED, struct.pack("<Q", offset)))


def test_damage_after_the_rows_of_a_bundle(tmp_path: Path) -> None:
    """With valid checksums.  The rows were read, so they are not lost."""
    data = KINDS["stacks"](0)
    with Source(data, "x.fpa") as source:
        codec = codec_of(source)
        inner = [(one.type, 0, payload(source, codec, one)) for one in sections(data) if one.type < END]
    store = Store()
    store.add_bundles(bundle(0, 0, *inner, (END, 0, b"\xff")))
    made = store.written(tmp_path / "a.fpa").read_bytes()
    got, log = read_dump(made, lenient=True)
    rows = [row for row in read_dump(data)[0] if row[0] == "row"]  # type: ignore[index]
    assert rows and [row for row in got if row[0] == "row"] == rows  # type: ignore[index]
    assert log.losses == {"archive-sections": 1}


def test_an_index_entry_of_a_bundle_is_checked(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    _add(store, _dumps(folded, 2))
    whole = store.read_bytes()
    section = _bundles(store)[0]
    made = with_header(section._replace(type=77), section.member, whole[section.offset + 24 :][: section.stored])
    store.write_bytes(whole[: section.offset] + made + whole[section.offset + section.nbytes :])
    with pytest.raises(FormatError, match="section differs from its index entry"):
        read_dump(store.read_bytes(), member="d1")
