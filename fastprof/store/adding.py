"""Adds profiles to a store, safely, so that similar ones share storage.

The process that holds the store's lock copies the sections of pieces (pieces.py), which other processes write.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from fastprof import plan
from fastprof.core import newfile
from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, UsageError, errors_of, raise_as, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import Message
from fastprof.core.options import LENIENT, checked
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.core.streams import compression_of_name
from fastprof.core.urls import is_url, shown
from fastprof.formats.archive import _cbor as archive_cbor
from fastprof.formats.archive.bundle import opened, restored
from fastprof.formats.archive.index import (
    Archive,
    bases_of,
    codec_of,
    payload,
    read_base_header,
    read_header,
    read_stored,
)
from fastprof.formats.archive.packing import Sections
from fastprof.formats.archive.sections import (
    BASED,
    BASES,
    BASES_OF_BUNDLE,
    BUNDLE,
    MAX_NUMBER,
    OPTIONAL,
    PAGE,
    ROWS,
    SHARED,
    TABLES,
    Codec,
    Member,
    Section,
    SectionError,
    with_header,
)
from fastprof.formats.archive.tree import Page
from fastprof.formats.archive.write import empty, packed_index
from fastprof.inputs import Progress
from fastprof.inputs.expand import expand, skipped, with_advice
from fastprof.inputs.state import chosen, located, open_store
from fastprof.inputs.stored import in_store
from fastprof.store.bases import Alike, Bases, Key, keyed, read_families
from fastprof.store.pieces import write_member
from fastprof.store.reported import REPORTED


class AlreadyStored(FastprofError):
    """The store already has a profile of this name."""


def _with_bases(source: Source, codec: Codec, member: Member) -> list[Based]:
    """The sections of a member.  Errors: SectionError."""
    found = ((key, read_header(source, offset)) for key, offset in keyed(member))
    return [(key, section, bases_of(source, section, codec)) for key, section in found]


Based = tuple[Key, Section, list[int]]  # a section, and the offsets of its bases
Shared = tuple[int, str, int, bytes]  # tables that a family shares: its number, view, their offset, payload


class Adding:
    """Profiles being added to a store, see `adding`."""

    def __init__(self, path: str, file: Any, source: Source, archive: Archive) -> None:
        self._path, self._file, self._source = path, file, source
        self.archive = archive  # as of the last commit
        self._next = archive.number
        try:
            self._bases = Bases(source, read_families(source, archive))
        except SectionError:  # they only save space; the next commit replaces them
            self._bases = Bases(source, None)
        self._sink = Sink(file)
        self._at_first = archive.at
        self._changes: dict[str, Member | None] = {}  # since the last commit; None: removed
        self._end = archive.end  # the end of complete data
        self.changed = False  # by a commit
        with errors_of(path):
            file.truncate(self._end)

    def __contains__(self, name: str) -> bool:
        return self._changes[name] is not None if name in self._changes else self._member(name) is not None

    def chosen(self, patterns: Iterable[str]) -> list[str]:
        """The names of profiles with these names or patterns as of the last commit.  Errors: see `chosen`."""
        return [one.name for one in chosen(self._path, self._source, self.archive, patterns)]

    def _member(self, name: str) -> Member | None:
        """The profile of this name as of the last commit."""
        with located(self._path):
            found = self.archive.find(self._source, name)
            return None if found is None else self.archive.member(found)

    def is_of(self, name: str, nbytes: int, mtime: int) -> bool:
        """Whether the profile of this name was added from a file of this size and time.  Errors: FastprofError."""
        member = self._changes[name] if name in self._changes else self._member(name)
        return member is not None and (member.about.get("nbytes"), member.about.get("mtime")) == (nbytes, mtime)

    def add(
        self,
        input_: Any,
        name: str,
        *,
        from_: str | None = None,
        replace: bool = False,
        progress: Progress | None = None,
        **options: Any,
    ) -> Log:
        """Add a profile under `name`; with `replace` it replaces a profile of this name.

        Errors: FastprofError and its subclasses, also when the name is taken; the store is then unchanged and still
        usable.
        """
        chosen = checked(options, plan.known_options())
        self._check_name(name, replace)
        member = Member(self._next, name)
        with self._whole_or_not():
            log = write_member(input_, from_, chosen, member, self._bases, self._sink, self._end, progress)
            shared = self._shared(member)
        self._take(member, shared)
        return log

    def base(self) -> dict[str, Any]:
        """The `base` for `write_piece`, from the current store; JSON values."""
        return {
            "store": self._path,
            "index": self._at_first,
            "changed": self._bases.changed(),
        }

    def add_piece(self, path: str, *, replace: bool = False) -> None:
        """Add the profile of a piece.

        Its sections are copied.  Only sections for which the store has got a base since they were written are
        compressed again, which concerns the first profiles when several processes read in parallel.  Errors: those of
        `add`.
        """

        def base_here(offset: int) -> int:  # the bases of a piece are sections of this store
            return read_base_header(self._source, offset).offset

        with open_store(path) as (source, archive):
            with located(path):
                piece = archive.member(archive.chosen(source)[0])
            self._check_name(piece.name, replace)
            with located(path), self._whole_or_not():
                reading = codec_of(self._source)
                sections = _with_bases(source, reading, piece)
                if self._is_late(source, reading, piece, sections):
                    copied = self._packed_again(source, reading, piece)
                else:
                    copied = self._copied(source, reading, piece, sections, base_here)
                shared = self._shared(copied)
            self._take(copied, shared)

    def copy(self, source: Source, base_of: Callable[[int], bytes], member: Member, moved: dict[int, int]) -> None:
        """Add a member of another store.  `moved` maps offsets in that store to offsets in this one, and is updated;
        `base_of` returns the payloads of bases in that store.

        Sections whose base is not in this store are compressed again.
        """
        reading = Codec(base_of=base_of)
        sections = _with_bases(source, reading, member)
        lost = self._has_lost(source, member, [base for *_, bases in sections for base in bases], moved)
        is_bundle = member.sections[0][1] == BUNDLE
        with self._whole_or_not():
            if lost and is_bundle:
                copied = self._packed_again(source, reading, member)
            else:
                copied = self._copied(source, reading, member, sections, moved.get)
            shared = self._shared(copied) if lost else None
        if not (lost and is_bundle):
            moved.update((old, new) for (old, _, _), (new, _, _) in zip(member.sections, copied.sections, strict=True))
        self._take(copied, shared)

    def _has_lost(self, source: Source, member: Member, bases: list[int], moved: dict[int, int]) -> bool:
        """Whether one of a member's bases is not in this store.

        If only shared tables are missing, they are copied.  Otherwise they are of no use: the next base of rows has
        other ids of stacks.
        """
        missing = [read_header(source, base) for base in bases if base not in moved]
        if len(missing) == 1 and missing[0].type == SHARED and not missing[0].flags & BASED:
            section = missing.pop()
            tables = payload(source, Codec(), section)
            with self._whole_or_not():
                self._sink.write(with_header(section, 0, read_stored(source, section)))
            moved[section.offset] = self._end
            family = self._bases.having(moved[base] for base in bases if base != section.offset)
            self._bases.share(family, member.view, self._end, tables)
            self._end = self._file.tell()
        return bool(missing)

    def _packed_again(self, source: Source, reading: Codec, member: Member) -> Member:
        """Append a member of another file, compressed against its family here."""
        copied = self._like(member)
        write, sections = self._sink.write, Sections(self._end, Codec(), copied, Alike(self._bases, member.view))
        for offset, type_, _ in member.sections:
            section = read_header(source, offset)
            raw = reading.unpack(section, read_stored(source, section))
            for own, part in restored(reading, opened(section, raw)) if type_ == BUNDLE else [(type_, raw)]:
                write(sections.add(own, part, member.chunks.get(offset) if own == ROWS else None))
        write(sections.end())
        return copied

    def _like(self, member: Member) -> Member:
        copied = Member(self._next, member.name, member.view)
        copied.about, copied.summary = member.about, member.summary
        return copied

    def _copied(
        self,
        source: Source,
        reading: Codec,
        member: Member,
        sections: list[Based],
        base_here: Callable[[int], int | None],
    ) -> Member:
        """Append a member of another file.  Sections whose base is not here are compressed again."""
        writing, alike = Codec(), Alike(self._bases, member.view)
        copied = self._like(member)
        here = [[base_here(base) for base in bases] for _, _, bases in sections]
        # All tables and rows with a base: a difference of rows refers to the tables before.  Those without one are
        # copied, because they may be bases themselves.
        again = any(None in bases for bases in here)
        at = self._end
        for ((type_, rank), section, bases), new in zip(sections, here, strict=True):
            stored = read_stored(source, section)
            if again and bases:
                raw = reading.unpack(section, stored)
                data = writing.pack(type_, self._next, raw, section.flags & OPTIONAL, alike(type_, rank, raw))
            elif type_ == BUNDLE and not section.flags & BASED:
                raw = reading.unpack(section, stored)
                moved = dict(zip(bases, new, strict=True))
                own = [moved.get(base, 0) for base in BASES_OF_BUNDLE.unpack_from(raw)]
                data = writing.pack_bundle(self._next, BASES_OF_BUNDLE.pack(*own) + raw[BASES_OF_BUNDLE.size :])
            else:
                if new:
                    stored = struct.pack("<Q", new[0]) + stored[8:]
                data = with_header(section, self._next, stored)
                if type_ == TABLES:
                    writing = Codec()  # rows after them cannot refer to earlier ones
            self._sink.write(data)
            copied.sections.append((at, type_, len(data)))
            if section.offset in member.chunks:
                copied.chunks[at] = member.chunks[section.offset]._replace(offset=at)
            at += len(data)
        return copied

    def _is_late(self, source: Source, reading: Codec, piece: Member, sections: list[Based]) -> bool:
        """Whether the store has got a family for the profile of a piece since the piece was written."""
        number = self._bases.having(base for _, _, bases in sections for base in bases)
        if number is not None:  # a bundle without another one as its base
            (type_, _), section, _ = sections[0]
            return type_ == BUNDLE and not section.flags & BASED and self._bases.find(number, (BUNDLE, 0)) is not None
        first = next((section for (type_, _), section, _ in sections if type_ == TABLES), None)
        if first is None:
            return False
        raw = reading.unpack(first, read_stored(source, first))
        return self._bases.alike(piece.view, raw) is not None

    def remove(self, name: str) -> None:
        """Remove a profile from the store.  Its bytes stay in the file, because they may be bases of other sections."""
        if member := self._changes.get(name) or self._member(name):
            self._bases.forget(member)
        self._changes[name] = None

    def _check_name(self, name: str, replace: bool) -> None:
        if not name:
            raise usage_error("a profile in a store needs a name: use {--name}")
        if name in self and not replace:
            raise AlreadyStored(f"{self._path}: already has a profile {name!r}")
        if self._next >= MAX_NUMBER:
            raise FastprofError(f"{self._path}: profile numbers are used up; `fastprof archive compact` frees some")

    @contextmanager
    def _whole_or_not(self) -> Iterator[None]:
        self._file.seek(self._end)
        try:
            yield
        except BaseException:
            self._cut(self._end)
            raise

    def _cut(self, end: int) -> None:
        """Truncate the file to `end`.  If that fails, the rest stays, as after a killed process."""
        with suppress(OSError):
            self._file.truncate(end)

    def _take(self, member: Member, shared: Shared | None) -> None:
        """Register an appended member, and the shared tables after it."""
        if member.name in self:
            self.remove(member.name)
        self._bases.note(member)
        if shared is not None:
            self._bases.share(*shared)
        self._end = self._file.tell()
        self._next = member.number + 1
        self._changes[member.name] = member

    def _shared(self, member: Member) -> Shared | None:
        """Write shared tables after a member that is being added, if they pay."""
        with located(self._path):
            found = self._bases.shared(member)
        if found is None:
            return None
        number, tables = found
        at = int(self._file.tell())
        self._sink.write(Codec().pack(SHARED, 0, tables, OPTIONAL))
        return number, member.view, at, tables

    def commit(self) -> None:
        """Write the index, which makes all changes since the previous one effective.

        Errors: FastprofError; then none of them takes effect, and the session is over.
        """
        changes, self._changes = self._changes, {}
        if not changes:
            return
        old = self.archive
        try:
            self._file.seek(self._end)
            with located(self._path):
                new, trailer = self._indexed(changes)
            os.fsync(self._file.fileno())  # before the trailer refers to it
            self._sink.write(trailer)
            os.fsync(self._file.fileno())
        except BaseException as error:
            self._cut(old.end)
            if isinstance(error, OSError):
                raise_as(self._path, error)
            raise
        self._end = new.end = self._file.tell()
        self.archive, self.changed = new, True

    def _indexed(self, changes: dict[str, Member | None]) -> tuple[Archive, bytes]:
        """Write the pages that change, the bases if they have changed, and the INDEX.  Returns the trailer as well.

        Errors: SectionError.
        """
        old, codec, pages = self.archive, Codec(), {}

        def write(type_: int, value: Any) -> int:
            at = self._file.tell()
            self._sink.write(codec.pack(type_, 0, archive_cbor.dumps(value), OPTIONAL))
            return int(at)

        def write_page(page: Page) -> int:
            at = write(PAGE, page.plain())
            pages[at] = page
            return at

        there = {name for name in changes if old.find(self._source, name) is not None}
        changed = {name: None if one is None else (one.number, one.to_entry()) for name, one in changes.items()}
        with old.checked():
            root = old.tree(self._source).changed(
                {name: one for name, one in changed.items() if one is not None or name in there}, write_page
            )
        count = old.count - len(there) + sum(one is not None for one in changes.values())
        at_bases = old.bases
        if not self._bases.is_committed:
            families = self._bases.plain()
            at_bases = write(BASES, families) if families else None
            self._bases.is_committed = True
        at = self._file.tell()
        section, trailer = packed_index(codec, root, count, self._next, at, at_bases)
        self._sink.write(section)
        new = Archive(root, 0, at, count, self._next, at_bases)
        for offset, page in [*old.pages.items(), *pages.items()]:
            new.keep(offset, page)
        return new, trailer


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
                # at the end of links, so that a link to nothing does not stay one for ever
                file, created = open(os.path.realpath(path), "x+b", buffering=0), True
        except FileExistsError:
            continue  # another process has created it
        except OSError as error:
            raise_as(path, error)
        with file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path}: a store must be a plain file")
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                there = os.stat(path)
            except FileNotFoundError:
                continue  # removed, or replaced by a compacted store
            if os.path.samestat(there, os.fstat(file.fileno())):
                yield file, created
                return


@contextmanager
def adding(path: str, *, create: bool = True) -> Iterator[Adding]:
    """Change the store at `path`; with `create` it is created if missing.

    The old contents always stay readable: new profiles are appended after the old index, and become part of the store
    only when a new index is complete.  The new index is written at the end, also after an error or an interrupt, for
    all complete profiles.  If the process is killed before, the store has its old contents.
    Waits while another process changes the store.  Errors: FastprofError and its subclasses.
    """
    if is_url(path) or compression_of_name(path):
        what = "a URL" if is_url(path) else "compressed"
        raise UsageError(f"{shown(path)}: a store must be a plain file, not {what}")
    with locked(path, create=create) as (file, created):
        changed = False
        try:
            if create and not file.seek(0, os.SEEK_END):
                # start with a valid empty store, in case of an interruption
                with errors_of(path):
                    file.write(empty())
            with open_store(path) as (source, archive):
                session = Adding(path, file, source, archive)
                try:
                    yield session
                finally:
                    session.commit()
                    changed = session.changed
        finally:
            if created and not changed:
                newfile.remove(os.path.realpath(path), os.fstat(file.fileno()))


Done = Callable[[str, int, int], None]  # called after each input: name, its number, total


def add(
    path: str,
    inputs: Sequence[str],
    *,
    name: str | None = None,
    from_: str | None = None,
    skip_existing: bool = False,
    replace: bool = False,
    keep_going: bool = False,
    progress: Progress | None = None,
    done: Done = lambda name, n, of: None,
    **options: Any,
) -> Log:
    """Add profiles to the store at `path`, see `adding`.

    A member is named after its file, relative to the given directory; a profile of a store keeps its name; `name` names
    a single one.  A name that is taken is an error, before anything is added; with `skip_existing` the input is
    skipped, with `replace` it replaces the member.  With `keep_going` inputs that cannot be added are skipped and
    counted as losses.
    `log.facts` has how many were added, replaced and left out.
    Errors: FastprofError and its subclasses; what was added before is in the store.

    >>> add("all.fpa", ["tests/corpus/callgrind/good/cfi.callgrind"]).facts["added"]
    1
    >>> add("all.fpa", ["tests/corpus/callgrind/good/cfi.callgrind"], skip_existing=True).facts["left_out"]
    1
    """
    if skip_existing and replace:
        raise usage_error("{--skip-existing} and {--replace} exclude each other")
    log = Log()

    def failed(error: FastprofError) -> None:
        if not keep_going or isinstance(error, UsageError):
            raise with_advice(error, n_inputs, keep_going)
        skipped(error, log)

    lenient, n_inputs = options.get(LENIENT.name) is True, 0
    named = _named(path, expand(inputs, log.warn, failed, lenient=lenient), inputs, name, log)
    n_inputs = len(named)
    with adding(path) as session:
        there = dict.fromkeys(each for each in named if each in session)
        if not (skip_existing or replace or keep_going):
            _refuse(path, [*there])
        added = 0
        for n, (each, input_) in enumerate(named.items(), 1):
            if each not in there or not skip_existing:
                try:
                    log.take(session.add(input_, each, from_=from_, replace=replace, progress=progress, **options))
                    added += 1
                except FastprofError as error:
                    failed(error)
            done(each, n, len(named))
    log.facts["added"] = added
    log.facts["left_out"] = len(there) if skip_existing else 0
    log.facts["replaced"] = sum(each in session for each in there) if replace else 0
    log.facts["output_bytes"] = os.path.getsize(path) if os.path.exists(path) else 0
    return log


def _refuse(path: str, there: list[str]) -> None:
    if there:
        raise AlreadyStored(
            Message(
                "{path}: already has a profile {name!r}{more}; use {--skip-existing} or {--replace}",
                path=path,
                name=there[0],
                more=f" and {len(there) - 1} more" * (len(there) > 1),
            )
        )


def _named(path: str, found: Sequence[str], inputs: Sequence[str], name: str | None, log: Log) -> dict[str, str]:
    """The inputs by their names in the store.  Errors: UsageError if two have the same name."""
    named: dict[str, str] = {}
    texts = [given for given in inputs if isinstance(given, str)]
    folders = [given for given in texts if os.path.isdir(given) or (is_url(given) and given.endswith("/"))]
    for input_ in found:
        if not isinstance(input_, str):
            if name is None:
                raise usage_error("a file object has no name: use {--name}")
        elif os.path.exists(path) and os.path.exists(input_) and os.path.samefile(path, input_):
            log.warn(REPORTED["store-itself"], input=str(input_))
            continue
        each = _name_of(input_, folders) if name is None else name
        if each in named:
            if name is not None:
                raise usage_error("{--name} takes a single INPUT")
            both = f"{shown(named[each])} and {shown(input_)}"
            raise UsageError(f"{both} would both be named {each!r}: pass a directory that has both")
        named[each] = input_
    return named


def _name_of(input_: str, folders: Sequence[str]) -> str:
    """The name of an input in a store.  Errors: UsageError for standard input."""
    if input_ == "-":
        raise usage_error("standard input has no name: use {--name}")
    at = in_store(input_)
    if at is not None:
        return at[1]
    folder = max((f for f in folders if input_.startswith(os.path.join(f, ""))), key=len, default="")
    return os.path.relpath(input_, folder) if folder else os.path.basename(os.path.normpath(shown(input_)))
