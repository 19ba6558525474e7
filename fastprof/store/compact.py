"""Removes profiles from a store, frees their space, and verifies the rest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, FormatError, errors_of
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.newfile import NewFile
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.core.urls import shown
from fastprof.formats.archive.index import Archive, read_stored
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.sections import FILE_HEADER_NBYTES, SectionError, scan
from fastprof.formats.archive.write import empty
from fastprof.inputs import Progress, open_reader
from fastprof.inputs.state import State, located, open_store
from fastprof.store.adding import Adding, adding, locked
from fastprof.store.bases import Bases

Done = Callable[[str, int, int], None]  # called after each profile: name, its number, total


def remove(path: str, patterns: Iterable[str]) -> list[str]:
    """Remove the profiles with these names or patterns from a store.  Returns their names.

    `compact` frees their space: other profiles may be stored against them.
    Errors: FastprofError and its subclasses, also for a pattern that matches nothing; then nothing is changed.

    >>> from fastprof.store.adding import add
    >>> log = add("all.fpa", ["tests/corpus/callgrind/good/tab.callgrind", "tests/corpus/pprof/good/reversed.pb"])
    >>> remove("all.fpa", ["*.pb"])
    ['reversed.pb']
    """
    with adding(path, create=False) as session:
        found = session.chosen(patterns) if (patterns := [*patterns]) else []  # none means all elsewhere
        for name in found:
            session.remove(name)
        return found


def compact(path: str, done: Done = lambda name, n, of: None, progress: Progress | None = None) -> tuple[int, int]:
    """Rewrite a store without removed profiles.  Returns its size before and after.

    Only sections whose base was removed are compressed again.  The new file replaces the old one when it is complete
    and on disk.  Errors: FastprofError and its subclasses; then the old file stays.

    >>> from fastprof.store.adding import add
    >>> log = add("two.fpa", ["tests/corpus/callgrind/good/tab.callgrind", "tests/corpus/pprof/good/reversed.pb"])
    >>> removed = remove("two.fpa", ["*.pb"])
    >>> before, after = compact("two.fpa")
    >>> after < before
    True
    """
    with locked(path, create=False) as (file, _), open_store(path, progress=progress) as (source, archive):
        there = os.path.realpath(path)  # a symbolic link stays one
        with errors_of(path):
            new = NewFile(there, 0o600)
            try:
                after = _copy(path, source, archive, new, os.fstat(file.fileno()).st_mode & 0o777, done)
                new.publish()
            finally:
                new.discard()
        assert source.size is not None
        return source.size, after


def _copy(path: str, source: Source, archive: Archive, new: NewFile, mode: int, done: Done) -> int:
    """Write the profiles of a store to the file `new`.  Returns its size."""
    file = new.file
    file.name = path  # in messages
    os.fchmod(file.fileno(), mode)
    file.write(empty())
    with open_store(new.readable, name=path) as (written, nothing), located(path):
        session = Adding(path, file, written, nothing)
        at: dict[int, int] = {}
        # one for all profiles: many may have the same lost base
        base_of = Bases(source, None).payload
        found = archive.chosen(source)
        for n, listed in enumerate(found, 1):
            member = archive.member(listed)
            session.copy(source, base_of, member, at)
            source.passed(max((offset + nbytes for offset, _, nbytes in member.sections), default=0))
            done(listed.name, n, len(found))
        session.commit()
    os.fsync(file.fileno())  # without profiles there is nothing to commit
    return os.fstat(file.fileno()).st_size


def verify(
    path: str,
    patterns: Iterable[str] = (),
    done: Done = lambda name, n, of: None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Check a store: the checksums of all its sections, and every row of the profiles that `patterns` choose.

    Returns the errors in the order of the file: "error", and "name" of the profile if it belongs to one.
    Errors: FastprofError and its subclasses, if its index cannot be read.

    >>> from fastprof.store.adding import add
    >>> log = add("one.fpa", ["tests/corpus/callgrind/good/tab.callgrind"])
    >>> verify("one.fpa")
    []
    """
    wrong: list[dict[str, Any]] = []
    state = State(path)
    found = [str(one.name) for one in state.inputs(patterns)]
    with state.source(path) as source:
        if progress is not None:
            progress(source)
        archive = state.archive
        with located(path):
            members = [archive.member(listed) for listed in archive.chosen(source)]
        if archive.count != len(members):
            detail = f"index: its number of profiles is {archive.count}, but it lists {len(members)}"
            wrong.append({"error": str(FormatError(shown(path), ArchiveReader.format, detail, offset=archive.at))})
        names = {offset: member.name for member in members for offset, _, _ in member.sections}
        for section in scan(source.read_at, FILE_HEADER_NBYTES, archive.end):
            offset = section.offset
            source.passed(offset)
            try:
                if isinstance(section, SectionError):
                    raise section
                read_stored(source, section)
            except SectionError as error:
                located_error = FormatError(shown(path), ArchiveReader.format, error.detail, offset=error.offset)
                wrong.append({"error": str(located_error)} | ({"name": names[offset]} if offset in names else {}))
    for n, name in enumerate(found, 1):
        try:
            options = Options(member=name)
            reader = open_reader(state.input(None), ArchiveReader.format, Model(), options, Log(), progress)
            with reader.source:
                for _ in reader.rows():
                    pass
        except FastprofError as error:
            problem = {"error": str(error), "name": name}
            if problem not in wrong:
                wrong.append(problem)
        done(name, n, len(found))
    return wrong
