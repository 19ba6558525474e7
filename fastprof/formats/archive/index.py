"""Opens an archive by its index, or finds the members without one."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, printable
from fastprof.core.log import Counts
from fastprof.core.model import Part
from fastprof.core.shapes import fits
from fastprof.core.source import Source
from fastprof.core.words import Message
from fastprof.formats.archive import sections as archive_sections
from fastprof.formats.archive.parts import from_plain
from fastprof.formats.archive.reported import REPORTED
from fastprof.formats.archive.sections import (
    END,
    FILE_HEADER_NBYTES,
    HEADER_NBYTES,
    INDEX,
    MEMBER,
    NUMBERS,
    OPTIONAL,
    PARTS,
    ROWS,
    SOURCE,
    TRAILER,
    Chunk,
    Codec,
    Member,
    Section,
    SectionError,
    unpack_metadata,
)

_LISTED = 8  # names in a message
_ATTEMPTS = 100  # attempts to read the index while the file changes


class Archive:
    """The content of an archive.

    `end`: the end of its last valid index, where data is appended.  The index is a chain of INDEX sections, one per
    append.  `links`: the offset of each and the number of members it adds, oldest first.  `number`: the number of the
    next member; numbers are not reused, even if their member was removed.
    """

    def __init__(
        self,
        members: list[Member],
        end: int,
        links: Iterable[tuple[int, int]] = (),
        number: int = 0,
        note: str | Message = "",
    ) -> None:
        self.members = members
        self.end = end
        self.links = [*links]
        self.number = max([number, *(member.number + 1 for member in members)])
        self.notes = [note] if note else []
        self.losses = Counts()
        self._named: dict[str, list[Member]] | None = None  # `members` by name

    def change(self, added: list[Member], removed: set[int]) -> list[Member]:
        """Add members and remove others, by their numbers.  Returns the entries of an INDEX after the `links`.

        It lists the new members, those of links with a removed member, and those of links with no more members than
        itself: so n additions write n log n entries, and log n links are read to find all members.
        """
        entries, left = added, set(removed)
        while self.links and (left or self.links[-1][1] <= len(entries)):
            _, n = self.links.pop()
            at = len(self.members) - n
            left -= {member.number for member in self.members[at:]}
            entries = [member for member in self.members[at:] if member.number not in removed] + entries
            del self.members[at:]
        self.members += entries
        self._named = None
        self.number = max([self.number, *(member.number + 1 for member in added)])
        return entries

    def matching(self, pattern: str) -> list[Member]:
        """The members with this name, otherwise those that match it as a shell pattern.

        Control characters of a name may be escaped as `archive list` prints them.
        """
        if self._named is None:
            self._named = {}
            for member in self.members:
                self._named.setdefault(member.name, []).append(member)
        return (
            self._named.get(pattern)
            or [member for member in self.members if printable(member.name) == pattern]
            or [member for member in self.members if fnmatchcase(member.name, pattern)]
        )


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
        if _last is not None and _last[0] == key:
            return _last[1]
        try:
            archive = _load(source, codec, lenient)
        except (SectionError, FastprofError):
            # another process may have rolled back its append in the meantime
            if not left or not source.look_again():
                raise
            continue
        if source.identity is not None:
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
            return _read_links(source, codec, offset, size)
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


def listed(members: Iterable[Member], wanted: str = "") -> str:
    """A few names for a message, the most similar to the requested one first."""
    names = [member.name or f"number {member.number}" for member in members]
    if wanted:
        from difflib import get_close_matches

        names = [*dict.fromkeys([*get_close_matches(wanted, names), *names])]
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else "")


def load_at(source: Source, codec: Codec, offset: int) -> Archive:
    """The content of an archive by its INDEX at `offset`, ignoring later bytes.  Errors: SectionError."""
    return _read_links(source, codec, offset, offset)


def read_end(source: Source, codec: Codec, member: Member) -> None:
    """Fill in `member.end`.  Errors: SectionError."""
    offset, type_, _ = member.sections[-1] if member.sections else (0, 0, 0)
    if member.end is None and type_ == END:
        section = read_header(source, offset)
        member.end = archive_sections.unpack_end(section, payload(source, codec, section))


def read_about(source: Source, codec: Codec, member: Member) -> None:
    """Fill in `member.about`.  Errors: SectionError."""
    offset, type_, _ = member.sections[0] if member.sections else (0, 0, 0)
    if type_ == MEMBER:
        section = read_header(source, offset)
        about = unpack_metadata(section, payload(source, codec, section), dict)
        member.about = {name: about[name] for name in SOURCE if name in about}
        if not fits(member.about, SOURCE):
            raise SectionError(offset, f"head of the profile: {member.about!r:.120}")


def read_value_types(source: Source, codec: Codec, member: Member) -> list[Any]:
    """The value types of a member's totals; [] if its parts differ.  Errors: SectionError."""
    found: dict[int, list[Any]] = {}
    for offset, type_, _ in member.sections:
        if type_ == PARTS:
            section = read_header(source, offset)
            for entry in unpack_metadata(section, payload(source, codec, section), list):
                if not fits(entry, [int, dict]):
                    raise SectionError(offset, f"parts: an entry is {entry!r:.80}")
                found[entry[0]] = _part(entry[1], offset).value_types
    first = next(iter(found.values()), [])
    return first if all(types == first for types in found.values()) else []


def _part(plain: dict[Any, Any], offset: int) -> Part:
    try:
        return from_plain(plain)
    except ValueError as error:
        raise SectionError(offset, f"parts: {error}") from None


def read_header(source: Source, offset: int) -> Section:
    """The header of the section at `offset`.  Errors: SectionError."""
    return archive_sections.parse_header(source.read_at(offset, HEADER_NBYTES), offset)


def payload(source: Source, codec: Codec, section: Section) -> bytes:
    """The payload of a section.  Errors: SectionError."""
    return codec.unpack(section, source.read_at(section.offset + HEADER_NBYTES, section.stored))


def read_stored(source: Source, section: Section) -> bytes:
    """The stored bytes of a section.  Errors: SectionError."""
    stored = source.read_at(section.offset + HEADER_NBYTES, section.stored)
    archive_sections.check_stored(section, stored)
    return stored


def _read_links(source: Source, codec: Codec, offset: int, end: int, note: str | Message = "") -> Archive:
    """Follow the chain from the last INDEX, at `offset`, back to the first."""
    links: list[tuple[int, int]] = []
    members: list[Member] = []
    at: int | None = offset
    while at is not None:
        section, before, found = _read_index(source, codec, at)
        if at == offset:
            number = section.member
        links.append((at, len(found)))
        members += reversed(found)
        at = before
    _check_apart(members, offset)
    return Archive(members[::-1], end, links[::-1], number, note)


def _check_apart(members: list[Member], offset: int) -> None:
    """Check that no section is listed by two members, since it would be read once for each.  Errors: SectionError."""
    free = FILE_HEADER_NBYTES
    for member in sorted(members, key=lambda member: member.sections[0][0]):
        first, (last, _, nbytes) = member.sections[0][0], member.sections[-1]
        if first < free:
            at = f"profile number {member.number} begins at byte {first}"
            raise SectionError(offset, f"index: {at}, inside another profile")
        free = last + nbytes


def _read_index(source: Source, codec: Codec, offset: int) -> tuple[Section, int | None, list[Member]]:
    """Read one INDEX: its header, the offset of the INDEX before it (None if there is none), and the new members."""
    section = read_header(source, offset)
    if section.type != INDEX:
        raise SectionError(offset, f"section is of type {section.type}, expected the index")
    entries = unpack_metadata(section, payload(source, codec, section), list)
    try:
        before = entries[0]
        members = [Member.from_index(entry) for entry in entries[1:]]
        if before is not None and not (fits(before, int) and FILE_HEADER_NBYTES <= before < offset):
            raise ValueError(f"offset of the previous index is {before!r:.80}")
    except (ValueError, IndexError) as error:
        raise SectionError(offset, f"index: {error}") from None
    for member in members:
        for at, _, nbytes in member.sections:
            if at < FILE_HEADER_NBYTES or nbytes < HEADER_NBYTES or at + nbytes > offset:
                raise SectionError(offset, f"index: section at byte {at} with {nbytes} bytes is outside the profiles")
    return section, before, members


def _rebuild(source: Source, codec: Codec, size: int, lenient: bool) -> Archive:
    """An Archive rebuilt from the section headers; see `load`."""
    found: list[Section] = []
    damage: list[SectionError] = []
    index: Section | None = None
    for item in archive_sections.scan(source.read_at, FILE_HEADER_NBYTES, size):
        if isinstance(item, SectionError):
            damage.append(item)
        else:
            found.append(item)
            if item.type != INDEX:
                continue
            end = item.offset + item.nbytes
            if not damage:
                index = item
            elif archive_sections.parse_index_offset(source.read_at(end, TRAILER.size)) is not None:
                # A complete index follows the damage, so this is not an unfinished append.  An index before the damage
                # would lose whole profiles.
                index = None
    if index is not None and not lenient:
        end = index.offset + index.nbytes
        end += TRAILER.size * (archive_sections.parse_index_offset(source.read_at(end, TRAILER.size)) is not None)
        note = Message(
            "the file does not end with its index: {n} bytes of an unfinished append, from byte {end} on, are "
            "ignored; {--lenient} reads them",
            n=size - end,
            end=end,
        )
        return _read_links(source, codec, index.offset, end, note)
    if not lenient:
        at = damage[0].offset if damage else size
        detail = damage[0].detail if damage else "the file ends without an index"
        raise SectionError(
            at,
            Message("{detail}; {--lenient} recovers what is readable", detail=detail),
            not damage or damage[0].truncated,
        )
    archive = Archive([], size)
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
    archive.members = list(members.values())
    return archive


def _add(source: Source, codec: Codec, section: Section, members: dict[int, Member], archive: Archive) -> None:
    if section.type == INDEX or (section.type > NUMBERS and section.flags & OPTIONAL):
        return
    member = members.setdefault(section.member, Member(section.member))
    try:
        if section.type == MEMBER:
            begin = unpack_metadata(section, payload(source, codec, section), dict)
            member.name, member.view = str(begin.get("name", "")), str(begin.get("view", ""))
        elif section.type == END:
            member.end = archive_sections.unpack_end(section, payload(source, codec, section))
        elif section.type == ROWS:
            raw = payload(source, codec, section)
            member.chunks[section.offset] = Chunk(section.offset)
            member.view = member.view or archive_sections.view_of_chunk(raw)
    except SectionError as error:
        if section.type == ROWS:
            member.chunks[section.offset] = Chunk(section.offset)  # the damage is reported when it is read
        else:
            archive.notes.append(f"at byte {error.offset}: {error.detail}")
            archive.losses.add(REPORTED["archive-damaged-places"])
            return
    member.sections.append((section.offset, section.type, section.nbytes))
