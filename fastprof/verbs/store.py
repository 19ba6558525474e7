"""What is in a store: an archive to which profiles are added (adding.py)."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.core.source import Source
from fastprof.formats.archive.index import Archive, load, read_end
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.sections import Codec, SectionError


@contextmanager
def located(path: str) -> Iterator[None]:
    """Turns damage of a section into an error that names the file."""
    try:
        yield
    except SectionError as error:
        raise FormatError(path, ArchiveReader.format, error.detail, offset=error.offset) from None


@contextmanager
def open_store(path: str) -> Iterator[tuple[Source, Archive]]:
    """Errors: FastprofError and its subclasses."""
    with Source(path) as source:
        if not source.seekable:
            raise UsageError(f"{path}: a store must be a plain file{', not compressed' * bool(source.compression)}")
        with located(path):
            archive = load(source, Codec(), lenient=False)
        yield source, archive


def members(path: str) -> list[dict[str, Any]]:
    """What a store holds, from its index alone: name, view, rows, stored bytes, totals and times of each profile."""
    with open_store(path) as (source, archive), located(path):
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
