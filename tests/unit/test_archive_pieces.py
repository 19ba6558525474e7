"""Pieces: profiles compressed by other processes for a store, which copies them unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fastprof.core.errors import FastprofError, FormatError
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.sections import BASED, ROWS, TABLES, Codec
from fastprof.store import adding, pieces
from tests.reference import archive as reference
from tests.support.archives import graph, stacks, timeline, write_archive
from tests.unit.test_archive import read_dump, sections
from tests.unit.test_archive_store import _add, names

pytestmark = pytest.mark.usefixtures("sections_apart")


def _piece(tmp_path: Path, base: dict[str, Any], data: bytes, name: str) -> str:
    path = str(tmp_path / f"{name}.piece")
    pieces.write_piece(path, json.loads(json.dumps(base)), data, name)
    return path


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The types of the sections compressed from now on."""
    found: list[int] = []
    pack = Codec.pack

    def counted(self: Codec, type_: int, *args: Any, **more: Any) -> bytes:
        found.append(type_)
        return pack(self, type_, *args, **more)

    monkeypatch.setattr(Codec, "pack", counted)
    return found


@pytest.mark.exhaustive
def test_pieces_are_copied_and_share_as_what_is_added(tmp_path: Path, packed: list[int]) -> None:
    """Ten dumps that differ in 15 % of the rows, the first added separately: the same sizes as when added in
    sequence."""
    dumps = [write_archive(graph, rows=6000, changed=i) for i in range(10)]
    one_by_one = tmp_path / "one.fpa"
    with adding.adding(str(one_by_one)) as session:
        for i, (data, _) in enumerate(dumps):
            session.add(data, f"dump{i}")
    store = tmp_path / "s.fpa"
    with adding.adding(str(store)) as session:
        for i, (data, _) in enumerate(dumps):
            base = session.base()
            path = _piece(tmp_path, base, data, f"dump{i}")
            packed.clear()
            session.add_piece(path)
            assert packed == []
    whole = store.read_bytes()
    assert [(s.type, s.stored, s.flags) for s in sections(whole)] == [
        (s.type, s.stored, s.flags) for s in sections(one_by_one.read_bytes())
    ]
    assert len(whole) < sum(len(data) for data, _ in dumps) / 4
    profiles = reference.read(whole)
    for i, (_, want) in enumerate(dumps):
        assert profiles[i].name == f"dump{i}"
        assert read_dump(whole, member=f"dump{i}")[0] == want


def test_pieces_made_at_once_share_too(tmp_path: Path, packed: list[int]) -> None:
    """The first pieces do not know each other: only sections whose base exists by then are compressed again."""
    dumps = [write_archive(graph, rows=6000, changed=i) for i in range(4)]
    store = tmp_path / "s.fpa"
    with adding.adding(str(store)) as session:
        base = session.base()
        pieces = [_piece(tmp_path, base, data, f"dump{i}") for i, (data, _) in enumerate(dumps)]
        packed.clear()
        session.add_piece(pieces[0])
        assert packed == []
        for piece in pieces[1:]:
            session.add_piece(piece)
        assert sorted(type_ for type_ in packed if type_ in (TABLES, ROWS)) == [TABLES] * 3 + [ROWS] * 3
    whole = store.read_bytes()
    assert [bool(s.flags & BASED) for s in sections(whole) if s.type == ROWS] == [False, True, True, True]
    for i, (_, want) in enumerate(dumps):
        assert read_dump(whole, member=f"dump{i}")[0] == want


def test_a_piece_knows_what_was_there_before_the_session(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    for i, maker in enumerate((graph, stacks, timeline)):
        _add(store, f"old{i}", write_archive(maker, rows=2000)[0])
    with adding.adding(str(store)) as session:
        base = session.base()
        for maker in (graph, stacks, timeline):
            data, want = write_archive(maker, rows=2000, changed=1)
            session.add_piece(_piece(tmp_path, base, data, maker.__name__))
        session.commit()
        for maker in (graph, stacks, timeline):  # during the session
            _, want = write_archive(maker, rows=2000, changed=1)
            assert read_dump(store.read_bytes(), member=maker.__name__)[0] == want
        assert names(store) == ["old0", "old1", "old2", "graph", "stacks", "timeline"]
    assert all(s.flags & BASED for s in sections(store.read_bytes())[-20:] if s.type == ROWS and s.member == 3)


def test_a_store_made_anew_has_other_bases(tmp_path: Path) -> None:
    """A worker outlives a session, and the store may have been replaced by another of the same shape."""
    for i in range(2):
        store = tmp_path / "s.fpa"
        store.unlink(missing_ok=True)
        _add(store, "old", write_archive(graph, rows=2000, changed=10 * i)[0])
        data, want = write_archive(graph, rows=2000, changed=1)
        with adding.adding(str(store)) as session:
            base = session.base()
            session.add_piece(_piece(tmp_path, base, data, "new"))
        assert read_dump(store.read_bytes(), member="new")[0] == want


def test_a_piece_that_is_damaged_leaves_the_store_alone(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    data, want = write_archive(graph, rows=2000)
    _add(store, "old", data)
    before = store.read_bytes()
    with adding.adding(str(store)) as session:
        base = session.base()
        piece = Path(_piece(tmp_path, base, write_archive(graph, rows=2000, changed=1)[0], "new"))
        whole = piece.read_bytes()
        rows = next(s for s in sections(whole) if s.type == ROWS)
        for at in (rows.offset + rows.nbytes - 1, rows.offset + 3, 3):
            piece.write_bytes(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
            with pytest.raises(FormatError, match=r"new\.piece: archive: at byte"):
                session.add_piece(str(piece))
        # stored against a section that is not in this store
        assert rows.flags & BASED
        stored = whole[rows.offset + 24 : rows.offset + rows.nbytes]
        wrong = archive_sections.with_header(rows, 0, (17).to_bytes(8, "little") + stored[8:])
        piece.write_bytes(whole[: rows.offset] + wrong + whole[rows.offset + rows.nbytes :])
        with pytest.raises(FormatError, match="does not match its checksum"):
            session.add_piece(str(piece))
        piece.write_bytes(whole)
        session.add_piece(str(piece))
        with pytest.raises(adding.AlreadyStored):
            session.add_piece(str(piece))
    assert store.read_bytes().startswith(before)
    assert names(store) == ["old", "new"]
    assert read_dump(store.read_bytes(), member="old")[0] == want


def test_an_input_that_is_damaged_leaves_no_piece(tmp_path: Path) -> None:
    data, _ = write_archive(graph, rows=2000)
    with adding.adding(str(tmp_path / "s.fpa")) as session:
        base = session.base()
        with pytest.raises(FastprofError):
            _piece(tmp_path, base, data[:-20], "new")
    assert [path.name for path in tmp_path.iterdir()] == []
