"""Chooses the sections of a store against which new ones are stored, so that similar profiles share storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from fastprof.core.source import Source
from fastprof.formats.archive.index import payload, read_header
from fastprof.formats.archive.sections import BASED, ROWS, TABLES, Codec, Member, SectionError
from fastprof.formats.archive.write import BaseOf

Key = tuple[str, int, int]  # of a section: view, type, position among the sections of its type in its profile


class Bases:
    """Finds a base for each section of a new profile: a section of an earlier profile that may be similar.

    It is the section with the same key in the latest profile in which that section has no base itself.  So reading a
    section needs at most one other section.
    """

    def __init__(self, source: Source, found: list[Member]) -> None:
        self._source, self._members = source, found
        self._codec = Codec()
        self._before: dict[Key, int | None] = {}  # offsets in `found`
        self.added: dict[Key, int] = {}  # offsets in profiles added later

    def of(self, view: str) -> BaseOf:
        """The function that finds bases for the writer of a profile of this view."""
        return lambda type_, rank: self.find((view, type_, rank))

    def find(self, key: Key) -> tuple[int, bytes] | None:
        """The offset and the payload of the base for a section."""
        offset = self.added.get(key, self.before(key))
        return None if offset is None else (offset, self._payload(offset))

    def before(self, key: Key) -> int | None:
        """The offset of the base among the profiles present at first."""
        if key[1] not in (TABLES, ROWS):
            return None
        if key not in self._before:
            # once for all added profiles: most sections have a base, so the latest one without may be far back
            self._before[key] = next(filter(self._is_usable, reversed(self._sections.get(key, []))), None)
        return self._before[key]

    def note(self, added: Member) -> None:
        """Register the sections of an added profile as bases of later sections."""
        for key, offset in keyed(added):
            if key[1] in (TABLES, ROWS) and not read_header(self._source, offset).flags & BASED:
                self.added[key] = offset

    @cached_property
    def _sections(self) -> dict[Key, list[int]]:
        """The offsets of all sections by key.  Made once: a new profile may have more sections than all others."""
        found: dict[Key, list[int]] = {}
        for member in self._members:
            for key, offset in keyed(member):
                found.setdefault(key, []).append(offset)
        return found

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


def keyed(member: Member) -> Iterator[tuple[Key, int]]:
    """The key and the offset of each section."""
    ranks: Counter[int] = Counter()
    for offset, type_, _ in member.sections:
        yield (member.view, type_, ranks[type_]), offset
        ranks[type_] += 1
