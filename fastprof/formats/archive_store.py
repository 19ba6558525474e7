"""Several profiles in one archive: append safely, list, and store alike dumps against each other."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from typing import Any

from fastprof.engine import Options, Reader, Report, write
from fastprof.engine import read as read_batches
from fastprof.errors import FastprofError, FormatError, UsageError
from fastprof.formats import archive_sections
from fastprof.formats.archive_index import Archive, load, read_end
from fastprof.formats.archive_member import ArchiveWriter
from fastprof.formats.archive_sections import (
    BASED,
    HEADER_NBYTES,
    ROWS,
    TABLES,
    Codec,
    Member,
    SectionError,
)
from fastprof.io import Sink, Source
from fastprof.model import Model

OpenReader = Callable[[Model, Options, Report], Reader]


def _load(path: str) -> tuple[Source, Archive]:
    source = Source(path)
    try:
        if not source.seekable:
            raise UsageError(f"{path}: a store must be a plain file, not compressed")
        return source, load(source, Codec(), lenient=False)
    except SectionError as error:
        source.close()
        raise FormatError(path, "archive", error.detail, offset=error.offset) from None
    except BaseException:
        source.close()
        raise


def members(path: str) -> list[dict[str, Any]]:
    """What a store holds, from its index alone: name, view, rows, stored bytes, totals and times of each profile."""
    source, archive = _load(path)
    with source:
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
    """Finds, for each section of a new profile, the one of an earlier profile that it may be like.

    That is the section of the same type and rank in the latest profile of the
    same view that has one which stands by itself: a base has no base, so
    that reading a section never needs more than one other.
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
            section = archive_sections.parse_header(self._source.read_at(offset, HEADER_NBYTES), offset)
            if not section.flags & BASED:
                stored = self._source.read_at(offset + HEADER_NBYTES, section.stored)
                # the next sections are probably found in the same profile
                self._members.remove(member)
                self._members.insert(0, member)
                return offset, self._codec.unpack(section, stored)
        return None


def append(path: str, name: str, open_reader: OpenReader, options: Options) -> Report:
    """Add a profile under `name` to the store at `path`, which is made if it is not there.

    The old contents stay readable whatever happens: what is new goes behind
    the old index and counts only when its own index is complete.
    Errors: UsageError when the name is taken; FastprofError and its kinds.
    """
    model, report = Model(), Report()
    reader = open_reader(model, options, report)
    try:
        if not os.path.exists(path):
            with Sink(path) as sink:
                writer = ArchiveWriter(model, sink, options, report, name=name)
                writer.view = reader.view
                write(read_batches(reader), writer)
                sink.commit()
        else:
            _append(path, name, reader, model, options, report)
    finally:
        reader.source.close()
    return report


def _append(path: str, name: str, reader: Reader, model: Model, options: Options, report: Report) -> None:
    source, archive = _load(path)
    try:
        if any(member.name == name for member in archive.members):
            raise UsageError(f"{path}: there is a profile {name!r} already")
        with _locked(path) as file:
            file.truncate(archive.end)
            file.seek(archive.end)
            try:
                writer = ArchiveWriter(
                    model,
                    Sink(file),
                    options,
                    report,
                    name=name,
                    at=archive.end,
                    members=tuple(archive.members),
                    base_of=_Bases(source, archive.members, reader.view),
                )
                writer.view = reader.view
                write(read_batches(reader), writer)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                file.truncate(archive.end)
                raise
    finally:
        source.close()


def _locked(path: str) -> Any:
    """The store opened for writing by nobody else."""
    try:
        file = open(path, "r+b", buffering=0)
    except OSError as error:
        raise FastprofError(f"{path}: {error.strerror or error}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise FastprofError(f"{path}: another process is adding to it") from None
    return file
