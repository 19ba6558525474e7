"""Chooses the sections of a store against which new ones are stored, so that similar profiles share storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fastprof.core.source import Source
from fastprof.formats.archive.index import Key, payload, read_base_header, read_header
from fastprof.formats.archive.sections import BASED, DIFFERENCE, ROWS, SHARED, TABLES, Codec, Member, SectionError
from fastprof.formats.archive.shared import united
from fastprof.formats.archive.write import BaseOf

_KEPT, _KEPT_COUNT = 1 << 20, 4  # the most bytes of a payload kept in memory, and their number
_WASTE = 16  # tables that take less than this part of their base's bytes have few entries of their own


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
        self._last: dict[int, bytes] = {}  # the latest payloads, by offset

    def of(self, view: str) -> BaseOf:
        """The function that finds bases for the writer of a profile of this view."""
        return lambda type_, rank: self.find((view, type_, rank))

    def find(self, key: Key) -> tuple[int, bytes] | None:
        """The offset and the payload of the base for a section."""
        offset = self.added.get(key, self.before(key))
        return None if offset is None else (offset, self.payload(offset))

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
                if key[1:] == (TABLES, 0):
                    self._drop(key[0])

    def _is_usable(self, offset: int) -> bool:
        try:
            self.payload(offset)
        except SectionError:
            return False  # damaged, or it has a base: no new section may depend on it
        return True

    def payload(self, offset: int) -> bytes:
        """The payload of a base; the latest small ones are kept.  Errors: SectionError."""
        found = self._last.get(offset)
        if found is None:
            found = payload(self._source, self._codec, read_base_header(self._source, offset))
            if len(found) <= _KEPT:
                if len(self._last) == _KEPT_COUNT:
                    del self._last[next(iter(self._last))]
                self._last[offset] = found
        return found

    def shared(self, added: Member) -> bytes | None:
        """Tables to write as a base of later profiles: those of the current base and of profiles with other entries.

        Each such profile stores these entries for itself.  When they have taken as many bytes as the base, they are
        worth a new base.  Until then the key (view, SHARED, offset) notes their tables, also for later commands.
        """
        view = added.view
        base = self.added.get((view, TABLES, 0), self.before((view, TABLES, 0)))
        offset = next((offset for offset, type_, _ in added.sections if type_ == TABLES), None)
        if base is None or offset is None:
            return None
        section, limit = read_header(self._source, offset), read_header(self._source, base).stored
        noted = [key[2] for key in self.all() if key[:2] == (view, SHARED)]
        if section.flags & DIFFERENCE and section.stored > limit // _WASTE:
            noted.append(offset)
        codec = Codec(base_of=self.payload)
        try:
            sections = [read_header(self._source, offset) for offset in noted]
            if sum(section.stored for section in sections) < limit:
                self.added.update({(view, SHARED, offset): offset for offset in noted})
                return None
            found = united(self.payload(base), (payload(self._source, codec, one) for one in sections), 1 + 1 / _WASTE)
        except SectionError:  # damaged: nothing is shared
            found = None
        self._drop(view)
        return found

    def _drop(self, view: str) -> None:
        """No tables have entries that are not in the current base, the next one."""
        for offsets in self._before, self.added:
            for key in [key for key in offsets if key[:2] == (view, SHARED)]:
                del offsets[key]


def keyed(member: Member) -> Iterator[tuple[Key, int]]:
    """The key and the offset of each section."""
    ranks: Counter[int] = Counter()
    for offset, type_, _ in member.sections:
        yield (member.view, type_, ranks[type_]), offset
        ranks[type_] += 1
