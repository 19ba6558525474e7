"""Stores of dumps that differ in some of their stacks and in all values: tables and rows are stored as differences."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from fastprof.core.source import Source
from fastprof.formats.archive import write
from fastprof.formats.archive.index import codec_of, payload
from fastprof.formats.archive.sections import BASED, DIFFERENCE, MEMBER, ROWS, SHARED, TABLES, Codec, SectionError
from fastprof.store import adding, compact
from tests.reference import archive as reference
from tests.support.archives import stacks, write_archive
from tests.unit.test_archive import read_dump, sections

pytestmark = pytest.mark.usefixtures("sections_apart")


N = 12


def folded(seed: int, n: int = 150) -> bytes:
    """85 % of the stacks of one program, each with another value."""
    tree, own = random.Random(7), random.Random(seed)
    names = [f"module{i % 7}::function_{i}" for i in range(60)]
    found = {";".join(["main", *(names[min(59, int(tree.expovariate(0.1)))] for _ in range(8))]) for _ in range(n)}
    costs = {stack: tree.randrange(300, 9000) for stack in sorted(found)}
    return "".join(f"{s} {cost + own.randrange(9)}\n" for s, cost in costs.items() if own.random() < 0.85).encode()


def gperftools(seed: int) -> bytes:
    tree, own = random.Random(8), random.Random(seed)
    words = [0, 3, 0, 10000, 0]
    for _ in range(150):
        cost, stack = (
            tree.randrange(300, 9000),
            [0x400000 + 16 * min(99, int(tree.expovariate(0.05))) for _ in range(8)],
        )
        if own.random() < 0.85:
            words += [cost + own.randrange(9), len(stack), *stack]
    words += [0, 1, 0]
    maps = b"00400000-00500000 r-xp 00000000 08:01 12 /usr/bin/server\n"
    return struct.pack(f"<{len(words)}Q", *words) + maps


def callgrind(seed: int, missing: float = 0.15) -> bytes:
    """Most lines, calls and jumps of a program whose functions have lines of several files, and most functions."""
    tree, own = random.Random(9), random.Random(seed)
    lines = ["positions: instr line", "events: Ir Bc"]
    for i in range(60):
        has_function = own.random() >= missing / 3
        found = [f"fl=({i % 4}) file{i % 4}.c", f"fn=({i}) function_{i}"]
        for j in range(12):
            costs = f"{0x4000 + 64 * i + 4 * j:#x} {10 + j} {tree.randrange(10**6)} {tree.randrange(9)}"
            callee, file, kind = tree.randrange(60), tree.randrange(4), tree.randrange(9)
            before = [f"fi=({file}) file{file}.c"] if kind == 0 else []
            if kind == 1:
                before = [
                    f"cfn=({callee}) function_{callee}",
                    f"calls={tree.randrange(99)} {0x4000 + 64 * callee:#x} 10",
                ]
            if kind == 2:
                before = [f"jcnd={tree.randrange(5)}/{tree.randrange(5, 9)} +4 +1"]
            if own.random() >= missing:
                found += [*before, costs, *([f"fe=({i % 4}) file{i % 4}.c"] if kind == 0 else [])]
        lines += found if has_function else []
    return ("\n".join(lines) + "\n").encode()


def holds(whole: bytes, dumps: dict[str, list[object]]) -> None:
    """Readers restore each dump, also the one written from the document."""
    profiles = {profile.name: profile for profile in reference.read(whole)}
    assert profiles.keys() == dumps.keys()
    for name, want in dumps.items():
        assert read_dump(whole, member=name)[0] == want
        columns = [row[2:] for row in want if row[0] == "row"]  # type: ignore[index]
        for (_, found, values), (want_columns, expected) in zip(profiles[name].rows, columns, strict=True):
            assert values == expected and {column: found[column] for column in want_columns} == want_columns


@pytest.mark.parametrize("make", [folded, gperftools])
def test_dumps_with_other_stacks(make: Callable[[int], bytes], tmp_path: Path) -> None:
    store, one = tmp_path / "s.fpa", tmp_path / "one.fpa"
    dumps, alone = {}, 0
    with adding.adding(str(store)) as session:
        for i in range(N):
            session.add(make(i), f"d{i:02}")
            with adding.adding(str(one)) as other:
                other.add(make(i), "x")
            dumps[f"d{i:02}"] = read_dump(one.read_bytes())[0]
            alone += one.stat().st_size
            one.unlink()
    whole = store.read_bytes()
    assert len(whole) < alone * (0.5 if make is folded else 0.7)
    found = sections(whole)
    assert sum(s.type == SHARED for s in found) == 1
    assert sum(s.type == TABLES and s.flags & DIFFERENCE > 0 for s in found) == N - 1
    assert sum(s.type == ROWS and s.flags & DIFFERENCE > 0 for s in found) == N - 1
    holds(whole, dumps)
    # the shared tables stay when the profile they began with is gone
    for name in ("d00", "d03"):
        compact.remove(str(store), [name])
        del dumps[name]
    compact.compact(str(store))
    whole = store.read_bytes()
    assert sum(s.type == SHARED for s in sections(whole)) == 1 and compact.verify(str(store)) == []
    holds(whole, dumps)


def test_dumps_with_other_lines(tmp_path: Path) -> None:
    """Rows of graphs are stored as differences to those of the same place."""
    sizes = []
    for missing in (0.0, 0.15):
        store = tmp_path / f"{missing}.fpa"
        dumps = {}
        with adding.adding(str(store)) as session:
            session.add(callgrind(0, 0), "base")
            for i in range(3):
                session.add(callgrind(i, missing), f"d{i}")
                with adding.adding(str(tmp_path / f"{i}.fpa")) as alone:
                    alone.add(callgrind(i, missing), "x", replace=True)
                dumps[f"d{i}"] = read_dump((tmp_path / f"{i}.fpa").read_bytes())[0]
        found = [s for s in sections(store.read_bytes()) if s.type == ROWS]
        assert all(s.flags & DIFFERENCE for s in found[1:])
        sizes.append(found[1].stored)
        holds(store.read_bytes(), dumps | {"base": read_dump(store.read_bytes(), member="base")[0]})
    # which of 720 rows are missing takes some 55 bytes
    assert sizes[1] < sizes[0] + 250


def test_a_damaged_difference_of_tables(tmp_path: Path) -> None:
    """Wrong bytes and wrong bases: an error, or other tables."""
    tables = {}
    for i in range(2):
        with adding.adding(str(tmp_path / f"{i}.fpa")) as session:
            session.add(folded(i, 20), "x")
        data = (tmp_path / f"{i}.fpa").read_bytes()
        section = next(s for s in sections(data) if s.type == TABLES)
        tables[i] = Codec().unpack(section, data[section.offset + 24 : section.offset + section.nbytes])
    codec = Codec()
    difference = codec.difference(TABLES, tables[0], tables[1])
    assert 0 < len(difference) < len(tables[1]) and codec._applied(TABLES, tables[0], difference, 0) == tables[1]
    errors = 0
    for at in range(len(difference)):
        for wrong in (difference[:at], difference[:at] + bytes([difference[at] ^ 3]) + difference[at + 1 :]):
            try:
                codec._applied(TABLES, tables[0], wrong, 0)
            except SectionError:
                errors += 1
    assert errors > len(difference)
    with pytest.raises(SectionError, match="does not fit the base"):
        codec._applied(TABLES, b"", difference, 0)
    # a second section of tables continues the first: between such sections there is no difference
    assert codec.difference(TABLES, tables[0], b"\2" + tables[1][1:]) == b""


def test_a_missing_stack_takes_a_few_bytes(tmp_path: Path) -> None:
    """Also if later stacks have the same callers, which then come later: these take no bytes of their own."""
    functions = [f"function_{i}" for i in range(40)]
    choose = random.Random(3)
    lines = [f"main;{';'.join(choose.choice(functions) for _ in range(12))} 7\n" for _ in range(100)]
    lines += [f"{line.rpartition(';')[0]};leaf 9\n" for line in lines]
    tables = []
    for missing in (0, 20):
        lacking = {*choose.sample(range(100), missing)}
        tables.append(tables_of("".join(line for i, line in enumerate(lines) if i not in lacking), tmp_path))
    difference = Codec().difference(TABLES, *tables)
    assert Codec()._applied(TABLES, tables[0], difference, 0) == tables[1]
    assert 20 < len(difference) < 20 * 4


def tables_of(data: str, tmp_path: Path) -> bytes:
    store = tmp_path / "tables.fpa"
    store.unlink(missing_ok=True)
    with adding.adding(str(store)) as session:
        session.add(data.encode(), "x")
    whole = store.read_bytes()
    section = next(s for s in sections(whole) if s.type == TABLES)
    return Codec().unpack(section, whole[section.offset + 24 : section.offset + section.nbytes])


def test_rows_without_their_tables(tmp_path: Path) -> None:
    """Rows refer to the base by way of their tables, so they cannot be read without."""
    store = tmp_path / "s.fpa"
    with adding.adding(str(store)) as session:
        for i in range(2):
            session.add(folded(i), str(i))
    with Source(store.read_bytes()) as source:
        rows = [s for s in sections(store.read_bytes()) if s.type == ROWS and s.flags & DIFFERENCE]
        with pytest.raises(SectionError, match="does not fit the base"):
            payload(source, codec_of(source), rows[0])


def test_compact_keeps_sections_that_are_bases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The base of A's tables is gone, but its second chunk, which X did not have, is the base of B's."""
    monkeypatch.setattr(write, "CHUNK_ROWS", 4000)
    store = str(tmp_path / "s.fpa")
    dumps = {"X": write_archive(stacks, rows=4000), "A": write_archive(stacks, rows=9000, changed=1)}
    dumps["B"] = write_archive(stacks, rows=9000, changed=2)
    with adding.adding(store) as session:
        for name, (data, _) in dumps.items():
            session.add(data, name)
    based = [(s.member, s.flags & BASED > 0) for s in sections(Path(store).read_bytes()) if s.type == ROWS]
    assert based == [(0, False), (1, True), (1, False), (2, True), (2, True)]
    compact.remove(store, ["X"])
    compact.compact(store)
    assert compact.verify(store) == []
    for name in "AB":
        assert read_dump(Path(store).read_bytes(), member=name)[0] == dumps[name][1]


def test_profiles_added_one_by_one_share_tables(tmp_path: Path) -> None:
    sizes = []
    for together in (False, True):
        store = tmp_path / f"{together}.fpa"
        for i in range(1 if together else N):
            with adding.adding(str(store)) as session:
                for k in range(N) if together else (i,):
                    session.add(folded(k), f"d{k:02}")
        compact.compact(str(store))
        whole = store.read_bytes()
        assert sum(s.type == SHARED for s in sections(whole)) == 1 and compact.verify(str(store)) == []
        sizes.append(len(whole))
    assert abs(sizes[0] - sizes[1]) < 100


def test_rows_whose_head_is_lost(tmp_path: Path) -> None:
    """Without an index, the view of a profile whose head is lost is that of its rows, also if they are a difference."""
    store = tmp_path / "s.fpa"
    with adding.adding(str(store)) as session:
        for i in range(2):
            session.add(folded(i), str(i))
    whole = bytearray(store.read_bytes())
    want = read_dump(bytes(whole), member="1")[0]
    whole[[s for s in sections(bytes(whole)) if s.type == MEMBER][1].offset + 30] ^= 1
    whole[-3] ^= 1  # the trailer
    found = read_dump(bytes(whole), member="", lenient=True)[0]
    assert [row for row in found if row[0] == "row"] == [row for row in want if row[0] == "row"]  # type: ignore[index]
