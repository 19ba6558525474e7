"""Stores that change: profiles are removed and replaced, space is freed, and everything is verified, with killed and
concurrent processes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.formats.archive import _cbor as cbor
from fastprof.formats.archive.index import read_stored
from fastprof.formats.archive.sections import (
    BASED,
    BASES,
    END,
    INDEX,
    MEMBER,
    PARTS,
    ROWS,
    TABLES,
    Codec,
    Section,
    scan,
    trailer,
    with_header,
)
from fastprof.inputs.state import open_store
from fastprof.store import adding, compact
from fastprof.store import listing as archive_store
from tests.reference import archive as reference
from tests.support.archives import graph, stacks, timeline, write_archive
from tests.support.dying import dying
from tests.support.paths import REPO
from tests.unit.test_archive import read_dump, sections
from tests.unit.test_archive_store import _add, add_command, names

Dumps = dict[str, list[Any]]


pytestmark = pytest.mark.usefixtures("sections_apart")


def _store(path: Path, n: int = 6, rows: int = 2000) -> Dumps:
    """A store of similar dumps, and their contents by name."""
    dumps = {}
    with adding.adding(str(path)) as session:
        for i in range(n):
            for maker in (graph, stacks, timeline)[: 1 + 2 * (i < 2)]:
                name = f"{maker.__name__}/{i}"
                data, dumps[name] = write_archive(maker, rows=rows, changed=i)
                session.add(data, name)
    return dumps


def _holds(path: Path, dumps: Dumps) -> None:
    """Check that the store has exactly these dumps and is intact."""
    assert sorted(names(path)) == sorted(dumps)
    whole = path.read_bytes()
    for name, want in dumps.items():
        assert read_dump(whole, member=name)[0] == want
    assert sorted(profile.name for profile in reference.read(whole)) == sorted(dumps)
    assert compact.verify(str(path)) == []


def test_removed_profiles_are_gone_and_compact_frees_their_space(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    dumps = _store(store)
    before = store.stat().st_size
    # the first graph is the base of all others
    assert compact.remove(str(store), ["graph/0", "s*"]) == ["graph/0", "stacks/0", "stacks/1"]
    for name in ("graph/0", "stacks/0", "stacks/1"):
        del dumps[name]
    _holds(store, dumps)
    assert store.stat().st_size > before
    os.chmod(store, 0o640)
    grown = store.stat().st_size
    assert compact.compact(str(store)) == (grown, store.stat().st_size)
    _holds(store, dumps)
    assert stat.S_IMODE(store.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["s.fpa"]
    # as small as if the others had never been added
    anew = tmp_path / "anew.fpa"
    with adding.adding(str(anew)) as session:
        for i in range(6):
            for maker in (graph, stacks, timeline):
                if f"{maker.__name__}/{i}" in dumps:
                    session.add(write_archive(maker, rows=2000, changed=i)[0], f"{maker.__name__}/{i}")
    assert abs(store.stat().st_size - anew.stat().st_size) < 20


def test_compact_a_store_with_the_longest_name(tmp_path: Path) -> None:
    store = tmp_path / ("n" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    dumps = _store(store)
    compact.remove(str(store), ["graph/5"])
    del dumps["graph/5"]
    compact.compact(str(store))
    _holds(store, dumps)
    assert os.listdir(tmp_path) == [store.name]


def test_compact_compresses_only_what_has_lost_its_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "s.fpa"
    dumps = _store(store)
    packed: list[int] = []
    pack = Codec.pack

    def counted(self: Codec, type_: int, *args: Any, **more: Any) -> bytes:
        packed.append(type_)
        return pack(self, type_, *args, **more)

    compact.remove(str(store), ["graph/5"])
    del dumps["graph/5"]
    monkeypatch.setattr(Codec, "pack", counted)
    compact.compact(str(store))
    assert set(packed) == {BASES, INDEX}
    _holds(store, dumps)
    compact.remove(str(store), ["graph/0"])
    del dumps["graph/0"]
    packed.clear()
    compact.compact(str(store))
    assert {type_: packed.count(type_) for type_ in (TABLES, ROWS)} == {TABLES: 4, ROWS: 4}
    monkeypatch.undo()
    _holds(store, dumps)
    flags = [s.flags & BASED for s in sections(store.read_bytes()) if s.type == ROWS]
    assert len(flags) == 8 and flags.count(0) <= 4


def test_a_number_is_not_used_twice(tmp_path: Path) -> None:
    """Otherwise sections found without an index would be merged into one profile."""
    store = tmp_path / "s.fpa"
    dumps = _store(store, 3, 300)
    last = [*names(store)][-1]
    compact.remove(str(store), [last])
    data, dumps["new"] = write_archive(graph, rows=300, changed=50)
    _add(store, "new", data)
    del dumps[last]
    _holds(store, dumps)
    whole = store.read_bytes()
    numbers = [s.member for s in sections(whole) if s.type == ROWS]
    assert len(numbers) == len({*numbers})
    got, _ = read_dump(whole[:-1] + b"?", member="new", lenient=True)
    assert got == dumps["new"]
    # and after all are removed
    compact.remove(str(store), ["*"])
    assert names(store) == []
    _add(store, "new", data)
    numbers = [s.member for s in sections(store.read_bytes()) if s.type == ROWS]
    assert len(numbers) == len({*numbers})
    _holds(store, {"new": dumps["new"]})


def test_replaced_profiles(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    dumps = _store(store, 40, 20)
    links = [s for s in sections(store.read_bytes()) if s.type == INDEX]
    with adding.adding(str(store)) as session:
        for i in (39, 3, 39, 17):
            data, dumps[f"graph/{i}"] = write_archive(graph, rows=20, changed=100 + i)
            with pytest.raises(adding.AlreadyStored):
                session.add(data, f"graph/{i}")
            session.add(data, f"graph/{i}", replace=True)
    _holds(store, dumps)
    assert len(links) == 2
    compact.compact(str(store))
    _holds(store, dumps)


def test_what_cannot_be_removed(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    with pytest.raises(FastprofError, match=r"s\.fpa: No such file"):
        compact.remove(str(store), ["a"])
    with pytest.raises(FastprofError, match=r"s\.fpa: No such file"):
        compact.compact(str(store))
    assert os.listdir(tmp_path) == []
    _store(store, 1)
    before = store.read_bytes()
    with pytest.raises(UsageError, match="has no profile 'x'"):
        compact.remove(str(store), ["graph/0", "x"])
    assert store.read_bytes() == before
    other = tmp_path / "other"
    other.write_bytes(b"")
    with pytest.raises(FormatError, match="the file is empty"):
        compact.remove(str(other), ["x"])
    assert other.read_bytes() == b""


def test_verify_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    dumps = _store(store, 3)
    assert compact.verify(str(store)) == []
    whole = store.read_bytes()
    rows = [s for s in sections(whole) if s.type == ROWS]
    base = next(s for s in rows if not s.flags & BASED)  # the first graph's chunk; the others depend on it
    damaged = bytearray(whole)
    damaged[base.offset + base.nbytes - 1] ^= 1
    store.write_bytes(damaged)
    wrong = compact.verify(str(store))
    error = f"{store}: archive: at byte {base.offset + 24}: section does not match its checksum"
    dependent = [name for name in dumps if name.startswith("graph/")]
    assert wrong == [{"error": error, "name": name} for name in dependent]
    assert compact.verify(str(store), ["timeline/*"]) == wrong[:1]
    # damage in a header
    damaged = bytearray(whole)
    damaged[rows[-1].offset + 5] ^= 1
    store.write_bytes(damaged)
    wrong = compact.verify(str(store))
    assert len(wrong) == 2 and f"at byte {rows[-1].offset}: section header" in wrong[0]["error"]
    # damage that only the stated number of rows reveals
    damaged = bytearray(whole)
    end = next(s for s in sections(whole) if s.type == 5)
    damaged[end.offset : end.offset + end.nbytes] = damaged[end.offset : end.offset + end.nbytes][::-1]
    store.write_bytes(damaged)
    with_end = compact.verify(str(store))
    assert any(one.get("name") == "graph/0" for one in with_end)


def test_a_damaged_profile_can_be_removed(tmp_path: Path) -> None:
    store = tmp_path / "s.fpa"
    dumps = _store(store, 3)
    whole = bytearray(store.read_bytes())
    victim = [s for s in sections(bytes(whole)) if s.type == ROWS][1]  # stacks/0
    whole[victim.offset + victim.nbytes - 1] ^= 1
    store.write_bytes(whole)
    with pytest.raises(FormatError, match=rf"at byte {victim.offset + 24}: section does not match"):
        compact.compact(str(store))
    assert store.read_bytes() == whole
    assert os.listdir(tmp_path) == ["s.fpa"]
    compact.remove(str(store), ["stacks/*"])
    for name in ("stacks/0", "stacks/1"):
        del dumps[name]
    compact.compact(str(store))
    _holds(store, dumps)


# Removes argv[2:] from argv[1], or compacts it.
DYING = dying("""
from fastprof.store import compact
if sys.argv[2:]:
    compact.remove(sys.argv[1], sys.argv[2:])
else:
    compact.compact(sys.argv[1])
""")


@pytest.mark.parametrize("patterns", [[], ["graph/*"]], ids=["compact", "rm"])
def test_a_kill_leaves_the_old_store(tmp_path: Path, patterns: list[str]) -> None:
    store = tmp_path / "s.fpa"
    dumps = _store(store, 3, 300)
    compact.remove(str(store), ["graph/0"])
    del dumps["graph/0"]
    size = store.stat().st_size
    written = {"compact": size // 2, "rm": 100}["rm" if patterns else "compact"]
    for nbytes in (1, 23, written // 2, written):
        done = subprocess.run(add_command(DYING, nbytes, store, *patterns), cwd=REPO, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert sorted(names(store)) == sorted(dumps)
        assert compact.verify(str(store)) == []
        for name, want in dumps.items():
            assert read_dump(store.read_bytes(), member=name)[0] == want
    # its leftovers do not disturb later changes
    assert compact.compact(str(store))[1] < size
    _holds(store, dumps)
    assert os.listdir(tmp_path) == ["s.fpa"]


# Adds, removes and compacts; argv[3] names the process.
CHANGING = """
import sys
from fastprof.store import adding, compact
store, dump, who = sys.argv[1:]
for i in range(4):
    adding.add(store, [dump], name=f"{who}.{i}")
    if i % 2:
        assert compact.remove(store, [f"{who}.{i - 1}"]) == [f"{who}.{i - 1}"]
    compact.compact(store)
    adding.add(store, [dump], name=f"{who}.{i}", replace=True)
"""


def test_changes_by_several_processes_are_all_made(tmp_path: Path) -> None:
    store, dump = tmp_path / "s.fpa", tmp_path / "dump.fpa"
    data, want = write_archive(graph, rows=300)
    dump.write_bytes(data)
    running = [
        subprocess.Popen(add_command(CHANGING, store, dump, who), cwd=REPO, stderr=subprocess.PIPE) for who in "abc"
    ]
    assert [process.communicate()[1] for process in running] == [b""] * 3
    _holds(store, {f"{who}.{i}": want for who in "abc" for i in (1, 3)})
    assert sorted(os.listdir(tmp_path)) == ["dump.fpa", "s.fpa"]


def test_reading_goes_on_while_the_store_is_made_anew(tmp_path: Path) -> None:
    """A reader keeps the old file open; later readers open the new one."""
    store = tmp_path / "s.fpa"
    dumps = _store(store, 3, 300)
    with open_store(str(store)) as (source, archive):
        old = [one.name for one in archive.chosen(source)]
        compact.remove(str(store), ["graph/*"])
        compact.compact(str(store))
        for section in scan(source.read_at, 16, archive.end):
            assert not isinstance(section, ValueError)
            read_stored(source, section)
    assert sorted(old) == sorted(dumps)
    assert sorted(names(store)) == sorted(name for name in dumps if not name.startswith("graph"))


@pytest.mark.exhaustive
def test_one_flipped_byte_is_an_error_or_none(tmp_path: Path) -> None:
    """In the index, the heads and the ends of profiles: no other exception occurs, and the store stays unchanged."""
    store = tmp_path / "s.fpa"
    dumps = _store(store, 2, 20)
    whole = store.read_bytes()
    kinds = (ROWS, TABLES)
    places = [at for s in sections(whole) if s.type not in kinds for at in range(s.offset, s.offset + s.nbytes)]
    said = 0
    for at in [*range(16), *places[::3], *range(len(whole) - 16, len(whole))]:
        damaged = whole[:at] + bytes((whole[at] ^ 1 << at % 8,)) + whole[at + 1 :]
        store.unlink()
        store.write_bytes(damaged)
        for look in (archive_store.members, archive_store.facts, compact.verify, compact.compact):
            try:
                found: Any = look(str(store))
            except FastprofError:
                said += 1
                assert store.read_bytes() == damaged
            else:
                said += look is compact.verify and found != []
        try:
            compact.remove(str(store), ["graph/0"])
        except FastprofError:
            said += 1
    assert said > len(places) / 3
    store.write_bytes(whole)
    _holds(store, dumps)
    assert os.listdir(tmp_path) == ["s.fpa"]


def test_what_an_index_says_is_checked(tmp_path: Path) -> None:
    """With valid checksums, as in hostile files."""

    def store_of(changes: dict[int, Any], number: int = 1) -> Path:
        """A store whose MEMBER, PARTS or END are changed."""
        path = tmp_path / "s.fpa"
        path.unlink(missing_ok=True)
        data = (tmp_path / "whole.fpa").read_bytes()
        out, offsets = bytearray(data[:16]), []
        for section in [s for s in sections(data) if s.type != INDEX]:
            stored = data[section.offset + 24 : section.offset + section.nbytes]
            if section.type in changes:
                raw = cbor.dumps(changes[section.type])
                section = Section(0, section.type, 0, section.member, len(raw), len(raw), 0)
                stored = raw
            offsets.append((section.type, len(stored) + 24))
            out += with_header(section, section.member, stored)
        types, sizes = bytes(type_ for type_, _ in offsets), [size for _, size in offsets]
        entry = ["graph", 16, types, sizes, [[20, [0], [], []]], {"long": True}]
        raw = cbor.dumps([1, 0, [0, ["a"], [0], [cbor.dumps(entry)]]])
        index = len(out)
        out += with_header(Section(0, INDEX, 1, number, len(raw), len(raw), 0), number, raw) + trailer(index)
        path.write_bytes(out)
        return path

    (tmp_path / "whole.fpa").write_bytes(write_archive(graph, rows=20)[0])
    assert archive_store.members(str(store_of({})))[0]["rows"] == 20
    for changes in (
        {MEMBER: {"format": 3}},
        {MEMBER: []},
        {PARTS: [1]},
        {PARTS: [[0, {"value_types": 3}]]},
        {PARTS: {}},
        {END: {"totals": ["x"]}},
    ):
        with pytest.raises(FormatError, match=r"s\.fpa: archive: at byte"):
            archive_store.members(str(store_of(changes)))
    far = store_of({MEMBER: {"format": "x\x1b", "mtime": (1 << 64) - 1, "nbytes": 0}})
    assert archive_store.members(str(far))[0]["format"] == "x\x1b"
    assert archive_store.date((1 << 64) - 1) and archive_store.date(-(1 << 63))
    # no number is left for another profile
    full = store_of({}, 0xFFFFFFFF)
    before = full.read_bytes()
    with pytest.raises(FastprofError, match="profile numbers are used up"):
        _add(full, "b", write_archive(graph, rows=20)[0])
    assert full.read_bytes() == before
    compact.compact(str(full))
    _add(full, "b", write_archive(graph, rows=20)[0])
    assert names(full) == ["a", "b"]
