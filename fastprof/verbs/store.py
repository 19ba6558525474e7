"""A store: an archive to which profiles are added.  Add one safely, so that similar profiles share storage, or list."""

from __future__ import annotations

import fcntl
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from fastprof import bridges, formats, plan
from fastprof.core._typing import Any
from fastprof.core.engine import write
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.core.model import Model
from fastprof.core.options import Option, checked
from fastprof.core.report import Report
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.core.streams import compression_of_name
from fastprof.formats.archive.index import Archive, load, payload, read_end, read_header
from fastprof.formats.archive.sections import (
    BASED,
    ROWS,
    TABLES,
    Codec,
    Member,
    SectionError,
)
from fastprof.formats.archive.write import ArchiveWriter, empty, packed_index
from fastprof.verbs.inputs import Progress, open_reader


@contextmanager
def _located(path: str) -> Iterator[None]:
    """Turns damage of a section into an error that names the file."""
    try:
        yield
    except SectionError as error:
        raise FormatError(path, ArchiveWriter.format, error.detail, offset=error.offset) from None


def _load(path: str) -> tuple[Source, Archive]:
    source = Source(path)
    try:
        if not source.seekable:
            raise UsageError(f"{path}: a store must be a plain file{', not compressed' * bool(source.compression)}")
        with _located(path):
            return source, load(source, Codec(), lenient=False)
    except BaseException:
        source.close()
        raise


def members(path: str) -> list[dict[str, Any]]:
    """What a store holds, from its index alone: name, view, rows, stored bytes, totals and times of each profile."""
    source, archive = _load(path)
    with source, _located(path):
        for member in archive.members:
            read_end(source, Codec(), member)
    found = []
    for member in archive.members:
        times = [c.times for c in member.chunks.values() if c.times]
        end = member.end or {}
        entry = {
            "name": member.name,
            "view": member.view,
            "rows": member.rows,
            "chunks": len(member.chunks),
            "stored bytes": sum(nbytes for _, _, nbytes in member.sections),
        }
        if times:
            entry["first time"], entry["last time"] = min(t[0] for t in times), max(t[1] for t in times)
        for key in ("totals", "facts", "repairs", "losses"):
            if key in end:
                entry[key] = end[key]
        found.append(entry)
    return found


class _Bases:
    """Finds a base for each section of a new profile: a section of an earlier profile that may be similar.

    That is the section of the same type and rank in the latest profile of the
    same view.  A section that has a base itself is not used: so no section needs
    more than one other to be read.
    """

    def __init__(self, source: Source, found: list[Member]) -> None:
        self._source, self._members = source, found
        self._codec = Codec()
        self._latest: dict[tuple[str, int, int], int | None] = {}  # offsets, by view, type and rank

    def __call__(self, view: str, type_: int, rank: int) -> tuple[int, bytes] | None:
        if type_ not in (TABLES, ROWS):
            return None
        key = view, type_, rank
        if key not in self._latest:
            # once for all profiles that are added: most sections have a base, so the one that has none may be far back
            self._latest[key] = next(filter(self._is_usable, self._sections(key)), None)
        offset = self._latest[key]
        return None if offset is None else (offset, self._payload(offset))

    def note(self, added: Member) -> None:
        """The sections of a profile that was added may be bases of the next ones."""
        ranks: Counter[int] = Counter()
        for offset, type_, _ in added.sections:
            if not read_header(self._source, offset).flags & BASED:
                self._latest[added.view, type_, ranks[type_]] = offset
            ranks[type_] += 1

    def _sections(self, key: tuple[str, int, int]) -> Iterator[int]:
        """The offsets of all sections of a key, the latest first."""
        view, type_, rank = key
        for member in reversed(self._members):
            if member.view == view:
                yield from [offset for offset, t, _ in member.sections if t == type_][rank : rank + 1]

    def _is_usable(self, offset: int) -> bool:
        try:
            if read_header(self._source, offset).flags & BASED:
                return False
            self._payload(offset)
        except SectionError:
            return False  # damaged: no new section may depend on it
        return True

    def _payload(self, offset: int) -> bytes:
        return payload(self._source, self._codec, read_header(self._source, offset))


def adding_options() -> list[Option[Any]]:
    """The options that adding a profile may look at."""
    writes = formats.get(ArchiveWriter.format).writes
    return [*dict.fromkeys((*plan.reading_options(), *bridges.NAME_ADDRESSES.options, *writes))]


class Adding:
    """Profiles being added to a store, see `adding`."""

    def __init__(self, path: str, file: Any, source: Source, archive: Archive) -> None:
        self._path, self._file, self._archive = path, file, archive
        self._names = {member.name for member in archive.members}
        self._number = archive.members[-1].number + 1 if archive.members else 0
        self._bases = _Bases(source, archive.members)
        self._sink = Sink(file)
        self._end = archive.end  # of what is whole
        self.added: list[Member] = []
        file.truncate(self._end)

    def add(
        self,
        input_: Any,
        name: str,
        *,
        from_: str | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> Report:
        """Add a profile under `name`.

        Errors: FastprofError and its subclasses, UsageError when the name is taken; then nothing of it is in the store,
        and others can be added.
        """
        asked = checked(options, plan.known_options())
        if not name:
            raise UsageError("a profile in a store needs a name: give one with --name")
        if name in self._names:
            raise UsageError(f"{self._path}: there is a profile {name!r} already")
        model, report = Model(), Report()
        reader = open_reader(input_, from_, model, asked, report, progress)
        with reader.source:
            archive = formats.get(ArchiveWriter.format)
            way = plan.make([reader], reader.view, archive.holds, asked)
            plan.refuse_idle(asked, [reader], archive, way)
            member = Member(self._number, name)
            self._file.seek(self._end)
            try:
                writer = ArchiveWriter(
                    model,
                    self._sink,
                    asked,
                    report,
                    member=member,
                    at=self._end,
                    base_of=lambda type_, rank: self._bases(reader.view, type_, rank),
                )
                writer.view = reader.view
                write(way.rows(model, asked, report), writer)
            except BaseException:
                self._file.truncate(self._end)
                raise
        self._bases.note(member)
        self._end = self._file.tell()
        self._number += 1
        self._names.add(name)
        self.added.append(member)
        return report

    def commit(self) -> None:
        """Write the index, by which all profiles that were added become part of the store."""
        try:
            self._file.seek(self._end)
            section, trailer = packed_index(Codec(), self._archive, self.added, self._end)
            self._sink.write(section)
            os.fsync(self._file.fileno())  # before the trailer says that it is there
            self._sink.write(trailer)
            os.fsync(self._file.fileno())
        except BaseException as error:
            self._file.truncate(self._archive.end)
            if isinstance(error, OSError):
                raise FastprofError(f"{self._path}: {error.strerror or error}") from None
            raise


@contextmanager
def adding(path: str) -> Iterator[Adding]:
    """Add profiles to the store at `path`, which is created if there is none.

    The old contents stay readable whatever happens: new profiles go behind the
    old index and are not part of the store before their own index is complete,
    which is written at the end, also after an error or an interrupt, for those
    that are whole.  A process that is killed before leaves what was there.
    Waits while another process adds.  Errors: FastprofError and its subclasses.
    """
    if compression_of_name(path):
        raise UsageError(f"{path}: a store must be a plain file, not compressed")
    with _locked(path) as (file, created):
        added: list[Member] = []
        try:
            if not file.seek(0, os.SEEK_END):
                # begin with a valid empty store, so that an interruption leaves one
                file.write(empty())
            source, archive = _load(path)
            with source:
                session = Adding(path, file, source, archive)
                try:
                    yield session
                finally:
                    if session.added:
                        session.commit()
                        added = session.added
        finally:
            if created and not added:
                os.unlink(path)


def append(path: str, input_: Any, name: str, **options: Any) -> Report:
    """Add one profile to the store at `path`, see `adding`.  `options` are those of `Adding.add`."""
    with adding(path) as session:
        return session.add(input_, name, **options)


@contextmanager
def _locked(path: str) -> Iterator[tuple[Any, bool]]:
    """Open the store and lock it.  Yields the file and whether it was created."""
    while True:
        try:
            try:
                file, created = open(path, "x+b", buffering=0), True
            except FileExistsError:
                file, created = open(path, "r+b", buffering=0), False
        except OSError as error:
            raise FastprofError(f"{path}: {error.strerror or error}") from None
        with file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path}: a store must be a plain file")
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                there = os.stat(path)
            except FileNotFoundError:
                continue  # the process that had created it failed and removed it
            if os.path.samestat(there, os.fstat(file.fileno())):
                yield file, created
                return
