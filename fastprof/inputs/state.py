"""Stores as inputs: opens them, and pins them while other processes change them."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy

from fastprof.core._typing import Any
from fastprof.core.errors import FileError, FormatError, UsageError, faulty
from fastprof.core.remote import ranges_of
from fastprof.core.source import Source
from fastprof.core.urls import is_url, shown
from fastprof.formats.archive.index import Archive, Listed, codec_of, load
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.sections import Member, SectionError
from fastprof.inputs.stored import Stored, shown_input


@contextmanager
def located(path: str) -> Iterator[None]:
    """Turn a SectionError into an error that names the file."""
    try:
        yield
    except SectionError as error:
        raise FormatError(shown(path), ArchiveReader.format, error.detail, offset=error.offset) from None


@contextmanager
def open_store(
    path: str, *, name: str | None = None, lenient: bool = False, progress: Callable[[Any], object] | None = None
) -> Iterator[tuple[Source, Archive]]:
    """The store at a path, called `name` in messages.  Errors: FastprofError and its subclasses."""
    with _source_of(path, name) as source:
        if progress is not None:
            progress(source)
        source.use_ranges()
        if source.folder is not None:
            raise UsageError(f"{source.name}: is a directory, expected a store")
        if not source.seekable and is_url(path) and not source.compression:
            source.spool()
        if not source.seekable:
            compressed = ", not compressed" * bool(source.compression)
            raise UsageError(f"{source.name}: a store must be a plain file{compressed}")
        with located(path):
            archive = load(source, codec_of(source), lenient)
        yield source, archive


def _source_of(path: str, name: str | None = None) -> Source:
    """An archive behind a URL is read by ranges from the beginning, if its server supports them."""
    ranges = ranges_of(path) if is_url(path) else None
    return Source(path, name) if ranges is None else Source(ranges, shown(path))  # type: ignore[arg-type]


class State:
    """The current state of a store.  Its inputs do not change when profiles are added or removed or the store is
    compacted, because `keep` keeps the file open.

    Errors: FastprofError and its subclasses.
    """

    _most = 64  # maximum number of files kept open
    _n_open = 0

    def __init__(self, path: str, *, lenient: bool = False, keep: bool = True) -> None:
        self.path, self._shown = path, shown(path)
        self._entries: dict[str, Listed] = {}  # by name
        self._fd: int | None = None
        self._ranges: Any = None  # for all profiles, which share what was read
        with open_store(path, lenient=lenient) as (source, self.archive):
            assert source.identity is not None
            device, inode, _, mtime = source.identity
            self._identity = device, inode, self.archive.end, mtime
            self._file = f"{device!r} {inode!r}".encode()
            self._ranges = source.ranges
            self._is_spooled = is_url(path) and self._ranges is None  # without a path: another request costs all of it
            if self._ranges is None and (keep or self._is_spooled) and State._n_open < State._most:
                self._fd = source.duplicate()
                State._n_open += 1

    def __del__(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            State._n_open -= 1

    def source(self, name: str, lost: Callable[..., None] | None = None) -> Source:
        """The store as a Source of this name."""
        name = shown_input(name)  # plain text instead of a Stored: names outlive inputs
        kept: Any = None if self._fd is None else f"/dev/fd/{self._fd}"
        if self._ranges is not None or (self._is_spooled and kept):
            # a copy: several threads read at the same time
            source = Source(copy(self._ranges) or kept, name, lost=lost)
            source.pin(self._identity[2], self._identity)
            return source
        for path in filter(None, (self.path, kept)):  # the path may be that of another file by now
            with suppress(FileError):
                source = Source(path, name, lost=lost)
                if source.identity is not None and source.identity[:2] == self._identity[:2]:
                    if self._is_spooled:
                        source.spool()
                    source.pin(self._identity[2], self._identity)
                    return source
                source.close()
        raise faulty(name, "the archive was replaced while it was read")

    def input(self, name: str | None) -> Stored:
        """A profile, or the store itself, as an input."""
        made = Stored(self.path if name is None else f"{self._shown}:{name}")
        made.state, made.name = self, name
        return made

    def inputs(self, patterns: Iterable[str]) -> list[Stored]:
        """The profiles of these names or patterns.  Errors: UsageError for a name without a profile."""
        # without an index, replaced profiles are found as well
        with self.source(self.path) as source:
            found = chosen(self.path, source, self.archive, patterns)
        by_name = {one.name: one for one in found}
        self._entries |= by_name
        return [*map(self.input, by_name)]

    def identities(self, names: Iterable[str], path: bytes) -> list[bytes | None]:
        """What changes if profiles of this store are replaced: of those that `inputs` returned, in the store at `path`.
        None: unknown."""
        found = map(self._entries.get, names)
        head, of = path + b"\0", b"\0%b " % self._file
        return [
            b"%b%b%b%d %b" % (head, one[1].encode("utf-8", "surrogateescape"), of, one[0], one[2])
            if one and isinstance(one[2], bytes)
            else None
            for one in found
        ]

    def members(self, names: Iterable[str]) -> Iterator[Member | None]:
        """The profiles as the index has them.  If names are sorted, each of its pages is read once.  "" may be a name,
        or the only profile."""
        with self.source(self.path) as source, located(self.path):
            for name in names:
                found = self.archive.find(source, name)
                if found is None and not name and self.archive.count == 1:
                    found = next(self.archive.listed(source))
                yield None if found is None else self.archive.member(found)


def chosen(path: str, source: Source, archive: Archive, patterns: Iterable[str]) -> list[Listed]:
    """The profiles with these names or patterns, in the order in which they were added; all if none are given.

    Errors: UsageError for one that no profile has; FormatError.
    """
    with _found(path, source, archive):
        return archive.chosen(source, patterns)


def by_name(path: str, source: Source, archive: Archive, patterns: Iterable[str]) -> Iterator[Listed]:
    """`chosen` by name, found as they are pulled."""
    with _found(path, source, archive):
        found = archive.by_name(source, patterns)
    with located(path):
        yield from found


@contextmanager
def _found(path: str, source: Source, archive: Archive) -> Iterator[None]:
    with located(path):
        try:
            yield
        except LookupError as error:
            there = archive.names(source, error.args[0])
            but = f", only {there}" if there else "; it is empty"
            raise UsageError(f"{shown(path)}: the archive has no profile {error.args[0]!r}{but}") from None
