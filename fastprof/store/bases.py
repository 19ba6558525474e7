"""Chooses the sections of a store against which new ones are stored, so that similar profiles share storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fastprof.core.source import Source
from fastprof.formats.archive.index import Key, payload, read_header
from fastprof.formats.archive.sections import BASED, ROWS, TABLES, Codec, Member, SectionError
from fastprof.formats.archive.write import BaseOf


class Bases:
    """Finds a base for each section of a new profile: a section of an earlier profile that may be similar.

    It is the section with the same key in the latest profile in which that section has no base itself.  So reading a
    section needs at most one other section.
    """

    def __init__(self, source: Source, before: dict[Key, int]) -> None:
        self._source, self._codec = source, Codec()
        self._before = before  # offsets in profiles present at first
        self._usable: dict[int, bool] = {}  # by offset
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
        offset = self._before.get(key) if key[1] in (TABLES, ROWS) else None
        if offset is not None and offset not in self._usable:
            self._usable[offset] = self._is_usable(offset)
        return offset if offset is not None and self._usable[offset] else None

    def all(self) -> dict[Key, int]:
        """The offsets by key."""
        return {**self._before, **self.added}

    def forget(self, member: Member) -> None:
        """No new section may depend on those of a removed profile."""
        first, (last, _, _) = member.sections[0][0], member.sections[-1]
        for offsets in self._before, self.added:
            for key in [key for key, offset in offsets.items() if first <= offset <= last]:
                del offsets[key]

    def note(self, added: Member) -> None:
        """Register the sections of an added profile as bases of later sections."""
        for key, offset in keyed(added):
            if key[1] in (TABLES, ROWS) and not read_header(self._source, offset).flags & BASED:
                self.added[key] = offset

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
