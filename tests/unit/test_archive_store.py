"""Stores: several profiles in one archive, added safely."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core._c import lib
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.core.log import Log
from fastprof.core.source import Source
from fastprof.formats.archive import index
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.index import load
from fastprof.formats.archive.sections import BUNDLE, DIFFERENCE, INDEX, PAGE, ROWS, Codec, SectionError, parse_header
from fastprof.formats.archive.write import empty
from fastprof.store import adding, bases
from fastprof.store import compact as compacting
from fastprof.store import listing as archive_store
from tests.reference import archive as reference
from tests.support.archives import graph, stacks, timeline, write_archive
from tests.support.dying import dying
from tests.support.paths import REPO
from tests.unit.test_archive import MAKERS, read_dump, sections


def _add(store: Path, name: str, data: bytes) -> Log:
    with adding.adding(str(store)) as session:
        return session.add(data, name)


def test_store(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    profiles = {name: write_archive(maker, rows=900) for name, maker in MAKERS.items()}
    for name, (data, _) in profiles.items():
        _add(store, name, data)
    assert [(m["name"], m["view"], m["rows"]) for m in archive_store.members(str(store))] == [
        (name, name, 900) for name in MAKERS
    ]
    for name, (_, want) in profiles.items():
        assert read_dump(store.read_bytes(), member=name)[0] == want
    with pytest.raises(UsageError, match=r"several profiles: timeline, stacks, graph; choose one with member=$"):
        read_dump(store.read_bytes())
    with pytest.raises(UsageError, match=r"member=, or all with '.*/s\.fpa:\*'$"):
        fastprof.info(str(store), part=1)
    with pytest.raises(UsageError, match=r"s\.fpa:\*: .*; choose one with member=$"):
        fastprof.open(f"{store}:*")
    with pytest.raises(UsageError, match="has no profile 'x'"):
        read_dump(store.read_bytes(), member="x")
    with pytest.raises(adding.AlreadyStored, match="already"):
        _add(store, "graph", profiles["graph"][0])


def test_a_damaged_profile_is_no_base(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    data, want = write_archive(graph, rows=900)
    _add(store, "a", data)
    whole = bytearray(store.read_bytes())
    rows = next(s for s in sections(bytes(whole)) if s.type == ROWS)
    whole[rows.offset + rows.nbytes - 1] ^= 1
    store.write_bytes(whole)
    _add(store, "b", data)
    assert read_dump(store.read_bytes(), member="b")[0] == want


@pytest.mark.exhaustive
def test_alike_dumps_take_little(tmp_path: Path) -> None:
    """Ten dumps that differ in 15 % of the rows: less than a quarter of ten archives."""
    store = tmp_path / "s.fpa"
    alone, wanted = 0, []
    for i in range(10):
        data, want = write_archive(graph, rows=6000, changed=i)
        wanted.append(want)
        alone += len(data)
        _add(store, f"dump{i}", data)
    assert store.stat().st_size < alone / 4
    whole = store.read_bytes()
    assert [s.type for s in sections(whole) if s.type in (ROWS, BUNDLE)] == [ROWS] + 9 * [BUNDLE]
    profiles = reference.read(whole)
    for i, want in enumerate(wanted):
        assert read_dump(whole, member=f"dump{i}")[0] == want
        assert [row[1:] for row in want if row[0] == "row"] == [
            (part, {name: columns[name] for name in want_columns}, values)
            for (part, columns, values), (_, _, want_columns, _) in zip(
                profiles[i].rows, (row for row in want if row[0] == "row"), strict=True
            )
        ]


@pytest.mark.parametrize("first", [graph, stacks])
def test_a_difference_to_anything(first: Any) -> None:
    """Between chunks that are similar, shorter or have other columns: the difference restores the chunk, or is
    empty."""
    base = _rows(write_archive(first, rows=300)[0])
    made = 0
    for maker in (graph, stacks, timeline):
        for rows in (1, 299, 300, 301):
            for changed in (0, 1, 2):
                raw = _rows(write_archive(maker, rows=rows, changed=changed)[0])
                difference = codec.difference(ROWS, base, raw)
                made += difference != b""
                assert not difference or codec._applied(ROWS, base, difference, 0) == raw
    assert made >= 3


def test_a_difference_that_does_not_fit_is_an_error() -> None:
    base, raw = (_rows(write_archive(graph, rows=2000, changed=i)[0]) for i in range(2))
    packed = codec.pack(ROWS, 0, raw, base=(16, base))
    section = parse_header(packed, 0)
    assert section.flags & DIFFERENCE
    for wrong in (
        _rows(write_archive(graph, rows=200)[0]),
        b"",
        b"\x03",
        raw[:40],
        _rows(write_archive(stacks, 300)[0]),
    ):
        with pytest.raises(SectionError, match="does not fit the base"):
            Codec(base_of=lambda _, wrong=wrong: wrong).unpack(section, packed[24:])


def test_a_difference_of_bytes_is_as_long_as_its_base() -> None:
    # view, no runs, one stream: its length and bytes; the difference begins with its encoding (1: against the base)
    head = bytes([lib.FP_GRAPH, 0, 1])
    base = head + b"\3abc"
    assert codec._applied(ROWS, base, head + b"\4\1\0\0\1", 0) == head + b"\3abd"
    for wrong in (b"\1\1", b"\3\1\0\0", b"\5\1\0\0\1\0"):
        with pytest.raises(SectionError, match="does not fit the base"):
            codec._applied(ROWS, base, head + wrong, 0)


def test_the_index_does_not_grow_with_the_square(tmp_path: Path) -> None:
    """Each profile that is added alone writes a few pages."""
    store = tmp_path / "s.fpa"
    data, want = write_archive(timeline, rows=3)
    name = "profile {} " + "x" * 2000
    grown, before = [], 0
    for i in range(40):
        _add(store, name.format(i), data)
        index = [s for s in sections(store.read_bytes()) if s.type in (INDEX, PAGE)]
        size = sum(s.nbytes + s.raw for s in index)
        grown.append(size - before)
        before = size
    assert max(grown[20:]) < 2 * max(grown[:20])
    assert names(store) == [name.format(i) for i in range(40)]
    whole = bytearray(store.read_bytes())
    assert [p.name for p in reference.read(whole)] == names(store)
    # a damaged page
    with Source(bytes(whole)) as source:
        archive = load(source, Codec(), lenient=False)
        assert archive.root.height == 2
        assert [one.name for one in archive.listed(source)] == sorted(name.format(i) for i in range(40))
        child = archive.tree(source).root.numbers[-1]
    whole[child + 30] ^= 1
    assert read_dump(bytes(whole), member=name.format(1))[0] == want
    with pytest.raises(FormatError, match="does not match its checksum"):
        read_dump(bytes(whole), member=name.format(9))
    got, log = read_dump(bytes(whole), member=name.format(9), lenient=True)
    assert got == want and log.losses == {"archive-indexes": 1}


@pytest.mark.exhaustive
def test_an_interrupted_append_leaves_the_old_contents(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    first, want = write_archive(stacks, rows=100)
    second, want_second = write_archive(graph, rows=40)
    _add(store, "one", first)
    old = store.stat().st_size
    _add(store, "two", second)
    data = store.read_bytes()
    for cut in range(old, len(data)):
        got, log = read_dump(data[:cut], member="one")
        assert got == want
        assert bool(log.warnings) == (cut != old)
    # and the next append overwrites the interrupted one
    store.write_bytes(data[: len(data) - 30])
    _add(store, "two", second)
    assert store.read_bytes() == data
    assert read_dump(data, member="two")[0] == want_second


def test_profiles_behind_damage_are_not_an_unfinished_append(tmp_path: Path) -> None:
    """Damage in the middle and a missing end: the next append must not cut off the intact profiles after the damage."""
    store = tmp_path / "s.fpa"
    data, _ = write_archive(graph, rows=40)
    for name in ("one", "two", "three"):
        _add(store, name, data)
    whole = bytearray(store.read_bytes())
    victim = next(s for s in sections(bytes(whole)) if s.type == BUNDLE)
    whole[victim.offset] ^= 1
    store.write_bytes(whole[:-1])
    with pytest.raises(FormatError, match="lenient=True recovers") as error:
        _add(store, "four", data)
    assert error.value.offset == victim.offset
    assert store.read_bytes() == whole[:-1]


def test_a_failed_append_leaves_the_file_alone(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    data, _ = write_archive(stacks, rows=100)
    _add(store, "one", data)
    before = store.read_bytes()
    with pytest.raises(FormatError):
        _add(store, "two", data[:-20])
    damaged = bytearray(data)
    damaged[next(s for s in sections(data) if s.type == ROWS).offset + 30] ^= 1
    with pytest.raises(FormatError):
        _add(store, "two", bytes(damaged))
    assert store.read_bytes() == before
    assert os.listdir(tmp_path) == ["s.fpa"]


codec = Codec()


def _rows(archive: bytes) -> bytes:
    """The payload of the first chunk."""
    chunk = next(s for s in sections(archive) if s.type == ROWS)
    return codec.unpack(chunk, archive[chunk.offset + 24 : chunk.offset + chunk.nbytes])


def names(store: Path) -> list[str]:
    return [member["name"] for member in archive_store.members(str(store))]


# Adds argv[2] to argv[1] under the name argv[3].
DYING = dying("""
from fastprof.store import adding
adding.add(sys.argv[1], [sys.argv[2]], name=sys.argv[3])
""")


def add_command(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_a_killed_add_leaves_the_old_contents(first: bool, tmp_path: Path) -> None:
    store, one, two = tmp_path / "s.fpa", tmp_path / "one.fpa", tmp_path / "two.fpa"
    data, want = write_archive(stacks, rows=100)
    one.write_bytes(data)
    two.write_bytes(write_archive(graph, rows=400)[0])
    if not first:
        _add(store, "one", data)
    whole = tmp_path / "whole.fpa"
    if store.exists():
        whole.write_bytes(store.read_bytes())
    _add(whole, "two", two.read_bytes())
    added = whole.stat().st_size - (store.stat().st_size if store.exists() else len(empty()))
    for nbytes in (1, 23, added // 3, added - 17):  # the trailer has 16 bytes
        done = subprocess.run(add_command(DYING, nbytes, store, two, "two"), cwd=REPO, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert names(store) == ([] if first else ["one"])
        if not first:
            got, log = read_dump(store.read_bytes(), member="one")
            assert got == want
            assert "unfinished append" in log.warnings[0]
    _add(store, "two", two.read_bytes())
    assert store.read_bytes() == whole.read_bytes()


ADDING = """
import sys
from fastprof.store import adding
for i in range(5):
    adding.add(sys.argv[1], [sys.argv[2]], name=f"{sys.argv[3]}.{i}")
"""


def test_adds_at_the_same_time_wait_for_each_other(tmp_path: Path) -> None:
    store, one = tmp_path / "s.fpa", tmp_path / "one.fpa"
    data, want = write_archive(graph, rows=300)
    one.write_bytes(data)
    running = [
        subprocess.Popen(add_command(ADDING, store, one, who), cwd=REPO, stderr=subprocess.PIPE) for who in "abc"
    ]
    assert [process.communicate()[1] for process in running] == [b""] * 3
    assert sorted(names(store)) == [f"{who}.{i}" for who in "abc" for i in range(5)]
    for name in names(store):
        assert read_dump(store.read_bytes(), member=name)[0] == want


def test_a_failed_first_add_leaves_no_store(tmp_path: Path) -> None:
    data, _ = write_archive(stacks, rows=100)
    with pytest.raises(FormatError):
        _add(tmp_path / "s.fpa", "one", data[:-20])
    chunk = next(s for s in sections(data) if s.type == ROWS)
    with pytest.raises(FormatError):
        _add(tmp_path / "s.fpa", "one", data[: chunk.offset + 30] + b"?" + data[chunk.offset + 31 :])
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_a_store(tmp_path: Path) -> None:
    data, _ = write_archive(timeline, rows=10)
    with pytest.raises(UsageError, match="needs a name"):
        _add(tmp_path / "s.fpa", "", data)
    with pytest.raises(UsageError, match="must be a plain file"):
        _add(tmp_path / "s.fpa.gz", "one", data)
    profile = tmp_path / "callgrind.out.1"
    profile.write_bytes(b"events: Ir\nfn=f\n1 2\n")
    with pytest.raises(FormatError, match="magic is"):
        _add(profile, "one", data)
    assert profile.read_bytes() == b"events: Ir\nfn=f\n1 2\n"
    assert os.listdir(tmp_path) == [profile.name]


def test_any_name_is_only_a_name(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    data, want = write_archive(timeline, rows=50)
    odd = ["../../etc/passwd", "/x", "a\nb\x1b[31m", "ä\udc80", " "]
    for name in odd:
        _add(store, name, data)
    assert names(store) == odd
    for name in odd:
        assert read_dump(store.read_bytes(), member=name)[0] == want
    assert os.listdir(tmp_path) == ["s.fpa"]


def test_profiles_added_together_cost_the_same_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sections read and indexes written: neither grows with the size of the store."""
    looked_at = 0

    def counted(data: bytes, offset: int) -> archive_sections.Section:
        nonlocal looked_at
        looked_at += 1
        return parse_header(data, offset)

    monkeypatch.setattr(archive_sections, "parse_header", counted)
    data, want = write_archive(graph, rows=300)
    dump = tmp_path / "dump.fpa"
    dump.write_bytes(data)

    def add(n: int) -> int:
        nonlocal looked_at
        store = tmp_path / f"{n}.fpa"
        folder = tmp_path / f"dumps{n}"
        folder.mkdir()
        for i in range(n):
            (folder / f"dump{i}").symlink_to(dump)
        looked_at = 0
        assert main(["archive", "add", "-q", str(store), *map(str, sorted(folder.iterdir()))]) == 0
        count, whole = looked_at, store.read_bytes()
        assert names(store) == sorted(f"dump{i}" for i in range(n))
        assert len([s for s in sections(whole) if s.type == INDEX]) == 2  # those of the empty store, and of all
        based = [s for s in sections(whole) if s.type == BUNDLE]
        assert len(based) == n - 1  # all but the first are stored against it
        assert read_dump(whole, member=f"dump{n - 1}")[0] == want
        return count

    assert add(80) < 2.1 * add(40)


def test_an_error_in_the_middle_keeps_what_was_added_before(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    data, want = write_archive(stacks, rows=100)
    damaged = bytearray(write_archive(graph, rows=40)[0])
    damaged[next(s for s in sections(bytes(damaged)) if s.type == ROWS).offset + 30] ^= 1
    for wrong in (KeyboardInterrupt, FormatError):
        with pytest.raises(wrong), adding.adding(str(store)) as session:
            session.add(data, f"one {wrong.__name__}")
            with pytest.raises(FormatError):
                session.add(bytes(damaged), "two")
            with pytest.raises(adding.AlreadyStored, match="already"):
                session.add(data, f"one {wrong.__name__}")
            session.add(data, f"three {wrong.__name__}")
            if wrong is KeyboardInterrupt:
                raise KeyboardInterrupt
            session.add(bytes(damaged), "four")
    added = [f"{n} {error}" for error in ("KeyboardInterrupt", "FormatError") for n in ("one", "three")]
    assert names(store) == added
    whole = store.read_bytes()
    for name in added:
        got, log = read_dump(whole, member=name)
        assert got == want and not log.warnings


# Like DYING, but adds the profile under several names at once.
DYING_AMONG_SEVERAL = dying("""
from fastprof.store import adding
with adding.adding(sys.argv[1]) as session:
    for name in sys.argv[3].split():
        session.add(sys.argv[2], name)
""")


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_a_kill_among_several_leaves_the_old_contents(first: bool, tmp_path: Path) -> None:
    store, two, whole = (tmp_path / f"{name}.fpa" for name in ("s", "two", "whole"))
    data, want = write_archive(stacks, rows=100)
    two.write_bytes(write_archive(graph, rows=400)[0])
    begin = len(empty())
    if not first:
        _add(store, "one", data)
        whole.write_bytes(store.read_bytes())
        begin = store.stat().st_size
    with adding.adding(str(whole)) as session:
        for name in "abc":
            session.add(str(two), name)
    added = whole.stat().st_size - begin
    for nbytes in (1, added // 3, added * 2 // 3, added - 17):  # the trailer has 16 bytes
        command = add_command(DYING_AMONG_SEVERAL, nbytes, store, two, "a b c")
        done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert names(store) == ([] if first else ["one"])
        if not first:
            assert read_dump(store.read_bytes(), member="one")[0] == want
    with adding.adding(str(store)) as session:
        for name in "abc":
            session.add(str(two), name)
    assert store.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_an_index_that_cannot_be_written_leaves_the_old_contents(
    first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "s.fpa"
    data, _ = write_archive(stacks, rows=100)
    if not first:
        _add(store, "one", data)
    before = store.read_bytes() if not first else b""

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FastprofError, match=r"s\.fpa: No space left on device"):
        _add(store, "two", data)
    assert (store.read_bytes() if store.exists() else b"") == before
    assert os.listdir(tmp_path) == ([] if first else ["s.fpa"])


def test_compact_decompresses_a_lost_base_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "s.fpa"
    data, want = write_archive(graph, rows=900)
    with adding.adding(str(store)) as session:
        for name in "abcd":
            session.add(data, name)
    compacting.remove(str(store), ["a"])
    found: list[int] = []
    opened: list[Source] = []  # first the store, then what compact writes

    def payload(source: Source, codec: Codec, section: archive_sections.Section) -> bytes:
        if source is (opened or [source])[0]:
            opened[:] = [source]
            found.append(section.offset)
        return index.payload(source, codec, section)

    monkeypatch.setattr(bases, "payload", payload)
    compacting.compact(str(store))
    assert found and len(found) == len({*found})
    assert read_dump(store.read_bytes(), member="d")[0] == want
