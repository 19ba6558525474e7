"""What is in a store: an archive to which profiles are added (adding.py)."""

from __future__ import annotations

import fcntl
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, FileError, FormatError, UsageError
from fastprof.core.remote import shown
from fastprof.core.source import Source
from fastprof.formats.archive.index import Archive, listed, load, read_about, read_end, read_value_types
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.sections import Codec, Member, SectionError
from fastprof.verbs.inputs import Stored


@contextmanager
def located(path: str) -> Iterator[None]:
    """Turns damage of a section into an error that names the file."""
    try:
        yield
    except SectionError as error:
        raise FormatError(shown(path), ArchiveReader.format, error.detail, offset=error.offset) from None


@contextmanager
def open_store(path: str, *, lenient: bool = False) -> Iterator[tuple[Source, Archive]]:
    """Errors: FastprofError and its subclasses."""
    with Source(path) as source:
        source.use_ranges()
        if source.folder is not None:
            raise UsageError(f"{source.name}: is a directory, expected a store")
        if not source.seekable:
            compressed = ", not compressed" * bool(source.compression)
            raise UsageError(f"{source.name}: a store must be a plain file{compressed}")
        with located(path):
            archive = load(source, Codec(), lenient)
        yield source, archive


class State:
    """A store as it is now.  Its inputs stay what they are while profiles are added or removed, or it is compacted: for
    that it `keep`s the file open.

    Errors: FastprofError and its subclasses.
    """

    _most = 64  # files that are kept open for this
    _n_open = 0

    def __init__(self, path: str, *, lenient: bool = False, keep: bool = True) -> None:
        self.path = path
        self._fd: int | None = None
        with open_store(path, lenient=lenient) as (source, self.archive):
            assert source.identity is not None
            device, inode, _, mtime = source.identity
            self._identity = device, inode, self.archive.end, mtime
            if keep and State._n_open < State._most:
                self._fd = source.duplicate()
                State._n_open += 1

    def __del__(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            State._n_open -= 1

    def source(self, name: str, lost: Callable[[str], None] | None = None) -> Source:
        """The store as a Source of this name."""
        for path in (self.path, f"/dev/fd/{self._fd}"):  # another file may have the path by now
            with suppress(FileError):
                source = Source(path, str(name), lost=lost)  # of a Stored the text: names outlive inputs
                if source.identity is not None and source.identity[:2] == self._identity[:2]:
                    source.pin(self._identity[2], self._identity)
                    return source
                source.close()
        raise FastprofError(f"{name}: the archive was replaced while it was read")

    def input(self, name: str | None) -> Stored:
        """A profile, or the store itself, as an input."""
        made = Stored(self.path if name is None else f"{self.path}:{name}")
        made.state, made.name = self, name
        return made

    def inputs(self, patterns: Iterable[str]) -> list[Stored]:
        """The profiles of these names or patterns.  Errors: UsageError for one that no profile has."""
        # without an index what was replaced is found, too
        return [*map(self.input, dict.fromkeys(member.name for member in chosen(self.path, self.archive, patterns)))]


def chosen(path: str, archive: Archive, patterns: Iterable[str]) -> list[Member]:
    """The profiles of these names or patterns, in their order in the store; all if there are none.

    Errors: UsageError for one that no profile has.
    """
    patterns = [*patterns]
    numbers: set[int] = set()
    for pattern in patterns:
        found = archive.matching(pattern)
        if not found:
            there = listed(archive.members, pattern)
            raise UsageError(f"{path}: the archive has no profile {pattern!r}: {there or 'it is empty'}")
        numbers |= {member.number for member in found}
    return [member for member in archive.members if not patterns or member.number in numbers]


def names(path: str, patterns: Iterable[str] = (), *, lenient: bool = False) -> list[str]:
    """The names of the profiles in a store that `patterns` choose.  Errors: FastprofError and its subclasses.

    >>> from fastprof.verbs.adding import add
    >>> report = add("two.fpa", ["tests/corpus/callgrind/good/tab.callgrind", "tests/corpus/pprof/good/reversed.pb"])
    >>> names("two.fpa"), names("two.fpa", ["*.pb"])
    (['tab.callgrind', 'reversed.pb'], ['reversed.pb'])
    """
    with open_store(path, lenient=lenient) as (_, archive):
        # without an index what was replaced is found, too
        return [*dict.fromkeys(member.name for member in chosen(path, archive, patterns))]


SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "added": lambda _: 0,
    "name": lambda entry: entry["name"],
    "format": lambda entry: (entry.get("format", ""), entry["name"]),
    "date": lambda entry: entry.get("mtime", 0),
    "rows": lambda entry: -entry["rows"],
    "size": lambda entry: -entry["stored bytes"],
}


def members(path: str, patterns: Iterable[str] = (), *, sort: str = "added") -> list[dict[str, Any]]:
    """What a store holds, without reading rows: for each profile that `patterns` choose its name, view, rows, stored
    bytes, and what is known of format, file, totals and times.

    `sort` is one of SORTS.  Errors: FastprofError and its subclasses.

    >>> from fastprof.verbs.adding import add
    >>> report = add("all.fpa", ["tests/corpus/callgrind/good/cfi.callgrind"])
    >>> [(entry["name"], entry["rows"], entry["totals"]) for entry in members("all.fpa")]
    [('cfi.callgrind', 3, {'Ir': 14, 'Dr': 6})]
    """
    if sort not in SORTS:
        raise UsageError(f"a store cannot be sorted by {sort!r:.80}, only by {', '.join(SORTS)}")
    codec = Codec()
    with open_store(path) as (source, archive), located(path):
        entries = [_entry(source, codec, member) for member in chosen(path, archive, patterns)]
    return sorted(entries, key=SORTS[sort])


def _entry(source: Source, codec: Codec, member: Member) -> dict[str, Any]:
    read_end(source, codec, member)
    read_about(source, codec, member)
    types = read_value_types(source, codec, member)
    entry: dict[str, Any] = {
        "name": member.name,
        "view": member.view,
        **member.about,
        "rows": member.rows,
        "chunks": len(member.chunks),
        "stored bytes": sum(nbytes for _, _, nbytes in member.sections),
    }
    times = [chunk.times for chunk in member.chunks.values() if chunk.times]
    if times:
        entry["first time"], entry["last time"] = min(t[0] for t in times), max(t[1] for t in times)
    end = member.end or {}
    entry.update((key, end[key]) for key in ("totals", "facts", "repairs", "losses") if key in end)
    if "totals" in end and len(types) >= len(end["totals"]):
        entry["totals"] = {type_.name: n for type_, n in zip(types, end["totals"], strict=False)}
    return entry


def facts(path: str) -> dict[str, Any] | None:
    """What `info` says of a store; None of an archive of one profile.

    Errors: FastprofError and its subclasses.
    """
    codec = Codec()
    with open_store(path) as (source, archive), located(path):
        if len(archive.members) == 1:
            return None
        for member in archive.members:
            read_about(source, codec, member)
        found = archive.members
        used = sum(nbytes for member in found for _, _, nbytes in member.sections)
        times = sorted(member.about["mtime"] for member in found if "mtime" in member.about)
        said = {
            "file": path,
            "format": ArchiveReader.format,
            "profiles": len(found),
            "profiles by view": dict(Counter(member.view for member in found)),
            "profiles by format": dict(Counter(member.about.get("format", "unknown") for member in found)),
            "records": sum(member.rows for member in found),
            "bytes": source.size,
            "bytes of profiles": used,
        }
        if times:
            said["first file of"], said["last file of"] = date(times[0]), date(times[-1])
        return said


def date(mtime: int) -> str:
    """ "2026-11-22 09:35:00", in local time."""
    try:
        return datetime.fromtimestamp(mtime // 10**9).isoformat(sep=" ")
    except (ValueError, OverflowError, OSError):
        return str(mtime)


@contextmanager
def locked(path: str, *, create: bool) -> Iterator[tuple[Any, bool]]:
    """Open the store and lock it, so that no other process changes it.  Yields the file and whether it was created."""
    while True:
        created = False
        try:
            try:
                file = open(path, "r+b", buffering=0)
            except FileNotFoundError:
                if not create:
                    raise
                file, created = open(path, "x+b", buffering=0), True
        except FileExistsError:
            continue  # another process has created it
        except OSError as error:
            raise FastprofError(f"{path}: {error.strerror or error}") from None
        with file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path}: a store must be a plain file")
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                there = os.stat(path)
            except FileNotFoundError:
                continue  # it was removed, or replaced by a compact one
            if os.path.samestat(there, os.fstat(file.fileno())):
                yield file, created
                return
