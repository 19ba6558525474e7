"""Opens an archive by its index (tree.py), or finds the members without one."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import translate
from heapq import merge
from itertools import chain, groupby, islice, pairwise, takewhile
from operator import attrgetter
from threading import Lock

from fastprof.core import lazy_re as re
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import FastprofError, printable
from fastprof.core.log import Counts
from fastprof.core.messages import Message
from fastprof.core.model import Part
from fastprof.core.schema import fits
from fastprof.core.source import Source
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.bundle import opened
from fastprof.formats.archive.parts import from_plain
from fastprof.formats.archive.reported import REPORTED
from fastprof.formats.archive.sections import (
    BASED,
    BASES_OF_BUNDLE,
    BUNDLE,
    END,
    FILE_HEADER_NBYTES,
    FORGET,
    HEADER_NBYTES,
    INDEX,
    MEMBER,
    NUMBERS,
    OPTIONAL,
    PAGE,
    PARTS,
    ROWS,
    SOURCE,
    TABLES,
    TRAILER,
    Chunk,
    Codec,
    Member,
    Section,
    SectionError,
    unpack_metadata,
)
from fastprof.formats.archive.tree import EMPTY, Page, Tree

MAX_OFFSET = 1 << 62  # the system takes signed numbers; no file is as large
_LISTED = 8  # names in a message
_COMPARED = 1000  # most names that are compared with a requested one
_PAGES = 256  # kept in memory
_ATTEMPTS = 100  # attempts to read the index while the file changes


class Listed(NamedTuple):
    """A profile as the index lists it.  `entry`: its bytes there, or the member itself if there is no index.  `stored`:
    the bytes of its page in the file."""

    number: int
    name: str
    entry: bytes | Member
    stored: int = 0


class Archive:
    """The content of an archive.

    `end`: the end of its last valid index, where data is appended.  `at`: the offset of the INDEX.  `count`: the number
    of members.  `number`: the number of the next member; numbers are not reused, even if their member was removed.
    Pages of the index are read when they are needed, from a Source of the same file, and the latest are kept.
    """

    def __init__(
        self, root: Page, end: int, at: int, count: int, number: int, bases: int | None, note: str | Message = ""
    ) -> None:
        self.root, self.end, self.at, self.count, self.number, self.bases = root, end, at, count, number, bases
        self.notes = [note] if note else []
        self.losses = Counts()
        self.pages: dict[int, Page] = {}  # by offset, the one used latest last
        self._lock = Lock()  # of pages

    def tree(self, source: Source) -> Tree:
        """The index, whose pages are read from `source`."""
        codec = Codec()
        return Tree(self.root, lambda offset: self._page(source, codec, offset))

    def keep(self, offset: int, page: Page) -> None:
        """Keep a page in memory."""
        with self._lock:
            self.pages[offset] = page
            if len(self.pages) > _PAGES:
                del self.pages[next(iter(self.pages))]

    def _page(self, source: Source, codec: Codec, offset: int) -> Page:
        with self._lock:
            page = self.pages.pop(offset, None)
        if page is None:
            section = read_header(source, offset)
            if section.type != PAGE:
                raise SectionError(offset, f"section is of type {section.type}, expected a page of the index")
            page = _page_of(unpack_metadata(section, payload(source, codec, section), list), offset, section.stored)
        self.keep(offset, page)
        return page

    def find(self, source: Source, name: str) -> Listed | None:
        """The profile of this name.  Errors: SectionError."""
        with self.checked():
            found = self.tree(source).find(name)
        return None if found is None else Listed(found[0], name, *found[1:])

    def listed(self, source: Source, first: str = "") -> Iterator[Listed]:
        """All profiles by name, from a name on.  Errors: SectionError."""
        with self.checked():
            yield from map(Listed._make, self.tree(source).below(first))

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Turn an error of the index into a SectionError."""
        try:
            yield
        except SectionError:
            raise
        except ValueError as error:
            raise SectionError(self.at, f"index: {error}") from None

    def member(self, listed: Listed) -> Member:
        """The member of an entry.  Errors: SectionError."""
        if isinstance(listed.entry, Member):
            return listed.entry
        with self.checked():
            return Member.from_entry(listed.number, listed.name, listed.entry, self.at, listed.stored)

    def matching(self, source: Source, pattern: str) -> Iterable[Listed]:
        """The profiles with this name, otherwise those that match it as a shell pattern, by name.

        Control characters of a name may be escaped as `archive list` prints them.  Errors: SectionError.
        """
        if (found := self.find(source, pattern)) is not None:
            return self._others(found)
        if "\\" in pattern:
            same = self._beginning(source, pattern.partition("\\")[0])
            if escaped := [listed for listed in same if printable(listed.name) == pattern]:
                return escaped
        wild = re.search(r"[*?\[]", pattern)
        if not wild:
            return []
        matches = re.compile(translate(pattern)).match
        return (listed for listed in self._beginning(source, pattern[: wild.start()]) if matches(listed.name))

    def _others(self, found: Listed) -> list[Listed]:
        """All profiles of the name of this one."""
        return [found]

    def _beginning(self, source: Source, prefix: str) -> Iterator[Listed]:
        return takewhile(lambda listed: listed.name.startswith(prefix), self.listed(source, prefix))

    def by_name(self, source: Source, patterns: Iterable[str] = ()) -> Iterator[Listed]:
        """The profiles with these names or patterns, by name; all if none are given.  Pulling finds them.

        Errors: SectionError; LookupError, at once, with a pattern that no profile has.
        """
        streams: list[Iterator[Listed]] = []
        for pattern in patterns:
            these = iter(self.matching(source, pattern))
            first = next(these, None)
            if first is None:
                raise LookupError(pattern)
            streams.append(chain([first], these))
        return _distinct(merge(*streams, key=attrgetter("name"))) if streams else self.listed(source)

    def chosen(self, source: Source, patterns: Iterable[str] = ()) -> list[Listed]:
        """The profiles with these names or patterns, in the order in which they were added; all if none are given.

        Errors: SectionError; LookupError with a pattern that no profile has.
        """
        found = sorted(self.by_name(source, patterns), key=attrgetter("number"))
        if len({listed.number for listed in found}) < len(found):
            first, second = next(pair for pair in pairwise(found) if pair[0].number == pair[1].number)
            both = f"{first.name!r:.80} and {second.name!r:.80}"
            raise SectionError(self.at, f"index: {both} both have number {first.number}")
        return found

    def names(self, source: Source, wanted: str = "") -> str:
        """A few names for a message, the most similar to the requested one first."""
        if self.count > _COMPARED:
            # of many profiles, those that would be next to it
            some = islice(chain(self.listed(source, wanted), self.listed(source)), _LISTED)
            return in_words(some, self.count)
        return in_words(self.chosen(source), self.count, wanted)


def _distinct(found: Iterable[Listed]) -> Iterator[Listed]:
    """Each profile once, of profiles by name."""
    for _, same in groupby(found, attrgetter("name")):
        yield from {listed.number: listed for listed in same}.values()


class Rebuilt(Archive):
    """An archive whose index is not readable.  Replaced and removed profiles are found as well."""

    def __init__(self, end: int) -> None:
        super().__init__(EMPTY, end, end, 0, 0, None)
        self._all: list[Listed] = []

    def take(self, members: Iterable[Member]) -> None:
        self._all = [Listed(member.number, member.name, member) for member in members]
        self.count = len(self._all)

    def find(self, source: Source, name: str) -> Listed | None:
        return next((listed for listed in reversed(self._all) if listed.name == name), None)

    def _others(self, found: Listed) -> list[Listed]:
        return [listed for listed in self._all if listed.name == found.name]

    def listed(self, source: Source, first: str = "") -> Iterator[Listed]:
        return iter(sorted((listed for listed in self._all if listed.name >= first), key=lambda listed: listed.name))


_last: tuple[tuple[Any, ...], Archive] | None = None


def load(source: Source, codec: Codec, lenient: bool) -> Archive:
    """Read the index of an archive.  The last one is cached, for profiles read in sequence; do not modify the result.

    If the file does not end with a valid index, an append was interrupted or is in progress; then the last index inside
    the file is used.  With `lenient` the index is rebuilt from the sections instead, unless a process is appending.
    Errors: SectionError, FastprofError.
    """
    global _last
    for left in reversed(range(_ATTEMPTS)):
        key = (source.identity, lenient)
        last = _last  # threads replace it
        if last is not None and last[0] == key:
            return last[1]
        try:
            archive = _load(source, codec, lenient)
        except (SectionError, FastprofError):
            # another process may have rolled back its append in the meantime
            if not left or not source.look_again():
                raise
            continue
        # an object without a validator may be another one the next time
        if source.identity is not None and source.identity[1] is not None:
            _last = (source.identity, lenient), archive
        return archive
    raise AssertionError


def _load(source: Source, codec: Codec, lenient: bool) -> Archive:
    assert source.size is not None
    archive_sections.check_file_header(source.read_at(0, FILE_HEADER_NBYTES))
    size = source.size
    offset = archive_sections.parse_index_offset(source.read_at(max(0, size - TRAILER.size), TRAILER.size))
    if offset is not None:
        try:
            archive = _read_index(source, codec, offset, size)
            if lenient:
                _check_all(source, archive)
            return archive
        except SectionError:
            if not lenient:
                raise
    at_work = offset is None and source.is_locked()
    if offset is None and not at_work and source.look_again():
        return _load(source, codec, lenient)  # the appending process has just finished
    archive = _rebuild(source, codec, size, lenient and not at_work)
    if at_work:
        archive.notes.clear()  # an append in progress is not damage
    return archive


def in_words(found: Iterable[Listed], count: int, wanted: str = "") -> str:
    """The names of the first of `count` profiles, the most similar to the requested one first."""
    names: Iterable[str] = [listed.name or f"number {listed.number}" for listed in found]
    if wanted:
        from difflib import get_close_matches

        names = [*names]
        names = dict.fromkeys([*get_close_matches(wanted, names), *names])
    return ", ".join(islice(names, _LISTED)) + (f" and {count - _LISTED:,} more" if count > _LISTED else "")


def load_at(source: Source, codec: Codec, offset: int) -> Archive:
    """The content of an archive by its INDEX at `offset`, ignoring later bytes.  Errors: SectionError."""
    return _read_index(source, codec, offset, offset)


def read_end(source: Source, codec: Codec, member: Member) -> None:
    """Fill in `member.end`.  Errors: SectionError."""
    if member.end is None:
        for section, raw in metadata(source, codec, member, END):
            member.end = archive_sections.unpack_end(section, raw)


def metadata(source: Source, codec: Codec, member: Member, wanted: int) -> Iterator[tuple[Section, bytes]]:
    """The sections of a type of metadata, with their payloads, also those in a bundle.  Errors: SectionError."""
    for offset, type_, _ in member.sections:
        if type_ in (wanted, BUNDLE):
            section = _section_of(source, member, offset)
            raw = payload(source, codec, section)
            if type_ == wanted:
                yield section, raw
            else:
                yield from ((one.section, one.stored) for one in opened(section, raw) if one.section.type == wanted)


def read_summary(source: Source, codec: Codec, member: Member) -> None:
    """Complete `member.summary`, and `member.about` if the index has neither.  Errors: SectionError."""
    if not member.summary.get("long"):
        return
    read_end(source, codec, member)
    if not member.about:
        for section, raw in metadata(source, codec, member, MEMBER):
            member.about = _about(unpack_metadata(section, raw, dict), section.offset)
    names = [type_.name for type_ in _value_types(source, codec, member)]
    member.summary = {"values": names, **(member.end or {})}


def _about(begin: dict[str, Any], offset: int) -> dict[str, Any]:
    """The origin of a profile, of the MEMBER section at `offset`.  Errors: SectionError."""
    about = {name: begin[name] for name in SOURCE if name in begin}
    if not fits(about, SOURCE):
        raise SectionError(offset, f"head of the profile: {about!r:.120}")
    return about


def _section_of(source: Source, member: Member, offset: int) -> Section:
    section = read_header(source, offset)
    if section.member != member.number:
        raise SectionError(offset, f"section of profile number {section.member}, expected {member.number}")
    return section


def _value_types(source: Source, codec: Codec, member: Member) -> list[Any]:
    """The value types of a member's totals; [] if its parts differ.  Errors: SectionError."""
    found: dict[int, list[Any]] = {}
    for section, raw in metadata(source, codec, member, PARTS):
        for entry in unpack_metadata(section, raw, list):
            if not fits(entry, [int, dict]):
                raise SectionError(section.offset, f"parts: an entry is {entry!r:.80}")
            found[entry[0]] = _part(entry[1], section.offset).value_types
    first = next(iter(found.values()), [])
    return first if all(types == first for types in found.values()) else []


def _part(plain: dict[Any, Any], offset: int) -> Part:
    try:
        return from_plain(plain)
    except ValueError as error:
        raise SectionError(offset, f"parts: {error}") from None


def read_header(source: Source, offset: int) -> Section:
    """The header of the section at `offset`.  Errors: SectionError."""
    data = b"" if offset > MAX_OFFSET else source.read_at(offset, HEADER_NBYTES)
    return archive_sections.parse_header(data, offset)


def payload(source: Source, codec: Codec, section: Section) -> bytes:
    """The payload of a section.  Errors: SectionError."""
    return codec.unpack(section, source.read_at(section.offset + HEADER_NBYTES, section.stored))


def codec_of(source: Source) -> Codec:
    """Decompresses the payloads of `source`, and finds their bases there."""
    alone = Codec()
    return Codec(base_of=lambda offset: payload(source, alone, read_base_header(source, offset)))


def read_base_header(source: Source, offset: int) -> Section:
    """The header of a section that others are stored against, so it has no base itself.  Errors: SectionError."""
    section = read_header(source, offset)
    if section.flags & BASED:
        raise SectionError(offset, "a base section refers to another base")
    return section


def bases_of(source: Source, section: Section, codec: Codec) -> list[int]:
    """The offsets of the bases of a section, of a bundle another bundle or these.  Errors: SectionError."""
    if section.type == BUNDLE and not section.flags & BASED:
        opened(section, raw := payload(source, codec, section))
        return [base for base in BASES_OF_BUNDLE.unpack_from(raw) if base]
    if not section.flags & BASED:
        return []
    stored = source.read_at(section.offset + HEADER_NBYTES, 8)
    if section.stored < 8 or len(stored) < 8:
        raise SectionError(section.offset, "the base that the section refers to is missing")
    return [int(struct.unpack("<Q", stored)[0])]


def read_stored(source: Source, section: Section) -> bytes:
    """The stored bytes of a section.  Errors: SectionError."""
    stored = source.read_at(section.offset + HEADER_NBYTES, section.stored)
    archive_sections.check_stored(section, stored)
    return stored


def _read_index(source: Source, codec: Codec, offset: int, end: int, note: str | Message = "") -> Archive:
    """The archive of the INDEX at `offset`.  Errors: SectionError."""
    section = read_header(source, offset)
    if section.type != INDEX:
        raise SectionError(offset, f"section is of type {section.type}, expected the index")
    found = unpack_metadata(section, payload(source, codec, section), list)
    if len(found) != 3 or not all(fits(n, range(1 << 63)) for n in found[:2]):
        raise SectionError(offset, f"index: {found!r:.80} is not a number of profiles, bases and a page")
    count, bases, plain = found
    if bases >= offset:
        raise SectionError(offset, f"index: bases at byte {bases} are after it")
    return Archive(_page_of(plain, offset, section.stored), end, offset, count, section.member, bases or None, note)


def _page_of(plain: Any, offset: int, stored: int) -> Page:
    try:
        return Page.of(plain, offset, stored)
    except ValueError as error:
        raise SectionError(offset, f"index: {error}") from None


def _check_all(source: Source, archive: Archive) -> None:
    """Errors: SectionError, if not all profiles can be listed."""
    for listed in archive.chosen(source):
        archive.member(listed)


def _rebuild(source: Source, codec: Codec, size: int, lenient: bool) -> Archive:
    """An Archive rebuilt from the section headers; see `load`."""
    found: list[Section] = []
    damage: list[SectionError] = []
    index: Section | None = None
    for item in archive_sections.scan(source.read_at, FILE_HEADER_NBYTES, size):
        if isinstance(item, SectionError):
            damage.append(item)
            continue
        found.append(item)
        if item.type != INDEX:
            continue
        referred = archive_sections.parse_index_offset(source.read_at(item.offset + item.nbytes, TRAILER.size))
        if referred is not None and damage:
            # A complete index follows the damage, so this is not an unfinished append.  An index before the damage
            # would lose whole profiles.
            index = None
        elif referred == item.offset:
            index = item  # without its trailer, what it refers to may not be on disk
    if index is not None and not lenient:
        end = index.offset + index.nbytes + TRAILER.size
        note = Message(
            "the file does not end with its index: {n} bytes of an unfinished append, from byte {end} on, are "
            "ignored; {--lenient} reads them",
            n=size - end,
            end=end,
        )
        return _read_index(source, codec, index.offset, end, note)
    if not lenient:
        at = damage[0].offset if damage else size
        detail = damage[0].detail if damage else "the file ends without an index"
        raise SectionError(
            at,
            Message("{detail}; {--lenient} recovers what is readable", detail=detail),
            not damage or damage[0].truncated,
        )
    archive = Rebuilt(size)
    archive.notes.append("the index is missing or damaged and was rebuilt")
    archive.losses.add(REPORTED["archive-indexes"])
    for error in damage:
        archive.notes.append(f"at byte {error.offset}: {error.detail}")
        archive.losses.add(REPORTED["archive-damaged-places"])
    members: dict[int, Member] = {}
    for section in found:
        _add(source, codec, section, members, archive)
    for member in members.values():
        if member.end is None:
            archive.losses.add(REPORTED["archive-unfinished-profiles"])
    archive.take(members.values())
    return archive


def _add(source: Source, codec: Codec, section: Section, members: dict[int, Member], archive: Archive) -> None:
    known = section.type <= NUMBERS or section.type in (BUNDLE, FORGET)
    if section.type == INDEX or (not known and section.flags & OPTIONAL):
        return
    member = members.setdefault(section.member, Member(section.member))
    try:
        if section.type in (MEMBER, END):
            _note(member, section, payload(source, codec, section))
        elif section.type == BUNDLE:
            for one in opened(section, payload(source, codec, section)):
                _note(member, one.section, one.stored)
        elif section.type in (TABLES, ROWS) and not member.view:
            # the head is lost; a difference of rows refers to the tables before
            raw = payload(source, codec, section)
            member.view = archive_sections.view_of_chunk(raw) if section.type == ROWS else ""
    except SectionError as error:
        if section.type not in (TABLES, ROWS):  # their damage is reported when they are read
            archive.notes.append(f"at byte {error.offset}: {error.detail}")
            archive.losses.add(REPORTED["archive-damaged-places"])
            return
    if section.type in (ROWS, BUNDLE):
        member.chunks[section.offset] = Chunk(section.offset)
    member.sections.append((section.offset, section.type, section.nbytes))


def _note(member: Member, section: Section, raw: bytes) -> None:
    """Note what MEMBER or END says.  Errors: SectionError."""
    if section.type == MEMBER:
        begin = unpack_metadata(section, raw, dict)
        member.name, member.view = str(begin.get("name", "")), str(begin.get("view", ""))
        member.about = _about(begin, section.offset)
    elif section.type == END:
        member.end = archive_sections.unpack_end(section, raw)
