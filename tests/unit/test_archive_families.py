"""Stores of several programs: each profile is stored against one of its own program."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastprof.core.source import Source
from fastprof.formats.archive.index import codec_of, payload
from fastprof.formats.archive.sections import BASED, BASES, DIFFERENCE, ROWS, TABLES, Section
from fastprof.formats.archive.shared import sketch_of
from fastprof.store import adding, bases, compact, pieces
from tests.unit.test_archive import read_dump, sections
from tests.unit.test_archive_store import names

pytestmark = pytest.mark.usefixtures("sections_apart")


PROGRAMS = 4


def folded(program: int, own: int, keep: float = 0.85) -> bytes:
    """Most stacks of a program, with values of their own."""
    tree, chosen = random.Random(program), random.Random(own)
    functions = [f"{tree.choice(['read', 'find', 'run'])}_{tree.randrange(10**6)}" for _ in range(60)]
    stacks = {";".join(tree.choice(functions) for _ in range(8)): tree.randrange(300, 9000) for _ in range(150)}
    return "".join(
        f"{s} {cost + chosen.randrange(9)}\n" for s, cost in stacks.items() if chosen.random() < keep
    ).encode()


def gperftools(program: int, at: int) -> bytes:
    """A program whose object is mapped at another address each time."""
    tree = random.Random(program)
    words = [0, 3, 0, 10000, 0]
    for _ in range(40):
        words += [tree.randrange(1, 99), 5, *(at + 16 * tree.randrange(0x1000) for _ in range(5))]
    words += [0, 1, 0]
    return struct.pack(f"<{len(words)}Q", *words) + f"{at:x}-{at + 0x10000:x} r-xp 0 08:01 12 /bin/x\n".encode()


def unbased(store: Path, type_: int) -> list[Section]:
    return [s for s in sections(store.read_bytes()) if s.type == type_ and not s.flags & BASED]


def sketch(data: bytes, tmp_path: Path) -> list[int]:
    one = tmp_path / "one.fpa"
    one.unlink(missing_ok=True)
    with adding.adding(str(one)) as session:
        session.add(data, "x")
    with Source(str(one)) as source:
        tables = next(s for s in sections(one.read_bytes()) if s.type == TABLES)
        return sketch_of(payload(source, codec_of(source), tables))


def _together(store: Path, dumps: list[bytes]) -> None:
    with adding.adding(str(store)) as session:
        for i, data in enumerate(dumps):
            session.add(data, f"{i:02}")


def _one_by_one(store: Path, dumps: list[bytes]) -> None:
    for i, data in enumerate(dumps):
        with adding.adding(str(store)) as session:
            session.add(data, f"{i:02}")


def _pieces_at_once(store: Path, dumps: list[bytes]) -> None:
    """The first pieces know of no family, those of a second batch know the families of the first."""
    with adding.adding(str(store)) as session:
        for part in range(0, len(dumps), 2 * PROGRAMS):
            base = json.loads(json.dumps(session.base()))
            made = []
            for i, data in enumerate(dumps[part : part + 2 * PROGRAMS], part):
                made.append(f"{store}.{i}")
                pieces.write_piece(made[-1], base, data, f"{i:02}")
            for path in made:
                session.add_piece(path)
            session.commit()


@pytest.mark.parametrize("add", [_together, _one_by_one, _pieces_at_once])
def test_programs_in_turn(add: Callable[[Path, list[bytes]], None], tmp_path: Path) -> None:
    dumps = [folded(i % PROGRAMS, i) for i in range(4 * PROGRAMS)]
    store = tmp_path / "s.fpa"
    add(store, dumps)
    compact.compact(str(store))
    found = [s for s in sections(store.read_bytes()) if s.type in (TABLES, ROWS)]
    assert [s.flags & DIFFERENCE > 0 for s in found] == [False] * 2 * PROGRAMS + [True] * 6 * PROGRAMS
    for i, data in enumerate(dumps):
        assert read_dump(store.read_bytes(), member=f"{i:02}")[0] == _alone(tmp_path, data)


def _alone(tmp_path: Path, data: bytes) -> list[object]:
    one = tmp_path / "alone.fpa"
    one.unlink(missing_ok=True)
    with adding.adding(str(one)) as session:
        session.add(data, "x")
    return read_dump(one.read_bytes())[0]


def test_removing_a_base_leaves_other_families_alone(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    _one_by_one(store, [folded(i % 2, i) for i in range(4)])
    compact.remove(str(store), ["00"])
    with adding.adding(str(store)) as session:
        for i in (4, 5):
            session.add(folded(i % 2, i), f"{i:02}")
    # program 0 begins anew with profile 4
    assert [s.member for s in unbased(store, TABLES)] == [0, 1, 4]
    assert compact.verify(str(store)) == []


def test_a_store_remembers_the_families_used_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bases, "_FAMILIES", 2)
    store = tmp_path / "s.fpa"
    _together(store, [folded(program, i) for i, program in enumerate((0, 1, 0, 2, 0, 1, 1))])
    assert [s.member for s in unbased(store, TABLES)] == [0, 1, 3, 5]
    # also those used latest before the last commit
    with adding.adding(str(store)) as session:
        for i, program in enumerate((1, 0, 2), 7):
            session.add(folded(program, i), f"{i:02}")
    assert [s.member for s in unbased(store, TABLES)] == [0, 1, 3, 5, 9]


def test_forgotten_families_are_not_sent_to_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each of many profiles of different programs takes longer than the one before."""
    monkeypatch.setattr(bases, "_FAMILIES", 2)
    store = tmp_path / "s.fpa"
    _together(store, [folded(0, 0), folded(1, 1)])
    with adding.adding(str(store)) as session:
        for program in range(2, 9):
            session.add(folded(program, program), f"{program:02}")
        changed = session.base()["changed"]
    assert [(number, plain is None) for number, plain in changed] == [(0, True), (1, True), (7, False), (8, False)]


def test_families_that_name_other_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a bundle without tables.  They only save space: nothing is shared."""
    store = tmp_path / "s.fpa"
    _together(store, [folded(0, i) for i in range(2)])
    read = bases.read_families
    head = sections(store.read_bytes())[0]

    def damaged(*args: Any) -> list[bases.Family]:
        return [family._replace(noted=[[head.offset, 1 << 30]]) for family in read(*args)]

    monkeypatch.setattr(adding, "read_families", damaged)
    monkeypatch.setattr(bases, "opened", lambda *_: [])
    monkeypatch.setattr(bases, "_WASTE", 1 << 20)
    with adding.adding(str(store)) as session:
        session.add(folded(0, 2), "new")
    assert compact.verify(str(store)) == [] and names(store) == ["00", "01", "new"]


def test_a_short_profile_of_a_program(tmp_path: Path) -> None:
    """It has few of the entries that its family has, but no others."""
    store = tmp_path / "s.fpa"
    _together(store, [folded(0, 0), folded(0, 1, keep=0.05), folded(1, 2), folded(0, 3, keep=0.02)])
    assert [s.member for s in unbased(store, TABLES)] == [0, 2]


def test_a_program_at_other_addresses_has_the_same_sketch(tmp_path: Path) -> None:
    first, moved, other = (
        sketch(gperftools(*which), tmp_path) for which in ((1, 0x400000), (1, 0x7F1234560000), (2, 0x400000))
    )
    assert len(first) == 32 and first == moved
    assert len({*first} & {*other}) < 4  # the same name of the object


def test_a_damaged_sketch(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    _together(store, [gperftools(1, 0x400000)])
    with Source(str(store)) as source:
        section = next(s for s in sections(store.read_bytes()) if s.type == TABLES)
        tables = payload(source, codec_of(source), section)
    assert len(sketch_of(tables)) == 32
    for wrong in (b"", b"\1", tables[:20], b"\xff" * 40, tables[:100]):
        assert sketch_of(wrong) == []


def test_families_that_are_not_readable(tmp_path: Path) -> None:
    """They only save space: the next addition begins new ones."""
    store = tmp_path / "s.fpa"
    _one_by_one(store, [folded(0, 0), folded(0, 1)])
    whole = store.read_bytes()
    at = [s for s in sections(whole) if s.type == BASES][-1].offset + 30
    store.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with adding.adding(str(store)) as session:
        session.add(folded(0, 2), "new")
        session.add(folded(0, 3), "next")
    assert [s.member for s in unbased(store, TABLES)] == [0, 2]
    assert names(store) == ["00", "01", "new", "next"]
    assert [error["error"] for error in compact.verify(str(store))] == [
        f"{store}: archive: at byte {at - 6}: section does not match its checksum"
    ]
    compact.compact(str(store))
    assert compact.verify(str(store)) == []
