"""A store: an archive to which profiles are added.  Add one safely, so that similar profiles share storage, or list."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from fastprof import bridges, formats, plan
from fastprof.core._typing import Any
from fastprof.core.engine import Reader, write
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.core.model import Model
from fastprof.core.options import Option, Options, checked
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
from fastprof.formats.archive.write import ArchiveWriter, empty
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

    def __init__(self, source: Source, found: list[Member], view: str) -> None:
        self._source = source
        self._members = [m for m in reversed(found) if m.view == view]
        self._codec = Codec()

    def __call__(self, type_: int, rank: int) -> tuple[int, bytes] | None:
        if type_ not in (TABLES, ROWS):
            return None
        for member in self._members[:]:
            same = [offset for offset, t, _ in member.sections if t == type_]
            if rank >= len(same):
                continue
            offset = same[rank]
            try:
                section = read_header(self._source, offset)
                if section.flags & BASED:
                    continue
                base = payload(self._source, self._codec, section)
            except SectionError:
                continue  # damaged: no new section may depend on it
            # the next sections are probably found in the same profile
            self._members.remove(member)
            self._members.insert(0, member)
            return offset, base
        return None


def adding_options() -> list[Option[Any]]:
    """The options that adding a profile may look at."""
    writes = formats.get(ArchiveWriter.format).writes
    return [*dict.fromkeys((*plan.reading_options(), *bridges.NAME_ADDRESSES.options, *writes))]


def append(
    path: str,
    input_: Any,
    name: str,
    *,
    from_: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Report:
    """Add a profile under `name` to the store at `path`, which is created if there is none.

    The old contents stay readable whatever happens: the new profile goes behind
    the old index and is not part of the store before its own index is complete.
    Waits while another process adds.  Errors: FastprofError and its subclasses,
    UsageError when the name is taken; then the store is as it was.
    """
    asked = checked(options, plan.known_options())
    if not name:
        raise UsageError("a profile in a store needs a name: give one with --name")
    if compression_of_name(path):
        raise UsageError(f"{path}: a store must be a plain file, not compressed")
    model, report = Model(), Report()
    reader = open_reader(input_, from_, model, asked, report, progress)
    try:
        archive = formats.get(ArchiveWriter.format)
        way = plan.make([reader], reader.view, archive.holds, asked)
        plan.refuse_idle(asked, [reader], archive, way)
        with _locked(path) as (file, created):
            try:
                _append(path, file, name, reader, way, asked)
            except BaseException:
                if created:
                    os.unlink(path)
                raise
    finally:
        reader.source.close()
    return report


def _append(path: str, file: Any, name: str, reader: Reader, way: plan.Plan, options: Options) -> None:
    if not file.seek(0, os.SEEK_END):
        # begin with a valid empty store, so that an interruption leaves one
        file.write(empty())
    source, archive = _load(path)
    with source:
        if any(member.name == name for member in archive.members):
            raise UsageError(f"{path}: there is a profile {name!r} already")
        file.truncate(archive.end)
        file.seek(archive.end)
        try:
            writer = ArchiveWriter(
                reader.model,
                Sink(file),
                options,
                reader.report,
                name=name,
                after=archive,
                base_of=_Bases(source, archive.members, reader.view),
                sync=lambda: os.fsync(file.fileno()),
            )
            writer.view = reader.view
            write(way.rows(reader.model, options, reader.report), writer)
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(archive.end)
            raise


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
