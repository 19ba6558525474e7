"""Chooses the sections of a store against which new ones are stored, so that similar profiles share storage.

A store has profiles of several programs, in any order.  Those of one program are a family, recognized by the sketch of
their tables, and each is compared with sections of its family.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.schema import fits
from fastprof.core.source import Source
from fastprof.formats.archive.bundle import opened
from fastprof.formats.archive.index import Archive, bases_of, payload, read_base_header, read_header
from fastprof.formats.archive.sections import (
    BASED,
    BASES,
    BUNDLE,
    DIFFERENCE,
    FILE_HEADER_NBYTES,
    ROWS,
    TABLES,
    Codec,
    Member,
    Section,
    SectionError,
    unpack_metadata,
)
from fastprof.formats.archive.shared import common, sketch_of, united

_KEPT, _KEPT_IN_ALL = 1 << 20, 16 << 20  # the most bytes of a payload kept in memory, and of all
_WASTE = 16  # tables that take less than this part of their base's bytes have few entries of their own
_FAMILIES = 64  # that a store remembers, those used latest
_ALIKE = 0.5  # the least part of its entries that a profile has in common with its family

Key = tuple[int, int]  # of a section: type, position among the sections of its type in its profile
_FAMILY = [str, [int], [[int, int, int]], [[int, int]]]


class Family(NamedTuple):
    """Similar profiles of a view.

    `sections`: the offsets of those that new ones are stored against.  `noted`: offsets and bytes of tables with many
    entries that the base does not have, or of the bundles they are in; see `Bases.shared`.
    """

    view: str
    sketch: list[int]  # see fp_archive_sketch
    sections: dict[Key, int]
    noted: list[list[int]]

    def plain(self) -> list[Any]:
        return [self.view, self.sketch, [[*key, offset] for key, offset in self.sections.items()], self.noted]

    @staticmethod
    def of(plain: Any) -> Family:
        view, sketch, sections, noted = plain
        return Family(view, [*sketch], {(type_, rank): offset for type_, rank, offset in sections}, [*noted])


def read_families(source: Source, archive: Archive) -> list[Family]:
    """The families of a store, the one used latest last.  Errors: SectionError."""
    if archive.bases is None:
        return []
    section = read_header(source, archive.bases)
    found = unpack_metadata(section, payload(source, Codec(), section), list)
    if section.type != BASES or not fits(found, [_FAMILY]):
        raise SectionError(archive.bases, f"section is of type {section.type}, expected the bases")
    families = [Family.of(plain) for plain in found]
    offsets = [offset for family in families for offset in (*family.sections.values(), *(at for at, _ in family.noted))]
    if outside := [offset for offset in offsets if not FILE_HEADER_NBYTES <= offset < archive.at]:
        raise SectionError(archive.bases, f"a base at byte {outside[0]} is outside the profiles")
    return families


class Alike:
    """Finds the bases for the sections of one new profile.  Its tables, which precede its rows, choose the family."""

    def __init__(self, bases: Bases, view: str) -> None:
        self._bases, self._view = bases, view
        self._family: int | None = None  # its number

    def __call__(self, type_: int, rank: int, raw: bytes) -> tuple[int, bytes] | None:
        """The offset and the payload of the base for a section with the payload `raw`."""
        if (type_, rank) == (TABLES, 0):
            self._family = self._bases.alike(self._view, raw)
        return None if self._family is None else self._bases.find(self._family, (type_, rank))


class Bases:
    """The families of a store.

    The base of a section is the one with the same key in the first profile of the family, or in the first that has such
    a section, or shared tables.  A base has no base itself, so reading a section needs at most one other section.
    """

    def __init__(self, source: Source, families: Iterable[Family] | None) -> None:
        """`families`: as of the last commit; None: not known."""
        self._source, self._codec = source, Codec()
        self._reading = Codec(base_of=self.payload)
        self._begun = dict(enumerate(families or ()))
        self._families = {**self._begun}  # by number, the one used latest last
        self._next = len(self._families)
        self._changed: set[int] = set()  # numbers of families that are not as they were at first
        self.is_committed = families is not None
        self._last: dict[int, bytes] = {}  # the latest payloads, by offset
        self._nbytes = 0  # of these

    def plain(self) -> list[Any]:
        """All families, for `read_families`."""
        return [family.plain() for family in self._families.values()]

    def changed(self) -> list[Any]:
        """What has changed since the beginning, for `change` in another process; JSON values."""
        found = ((number, self._families.get(number)) for number in sorted(self._changed))
        return [[number, family and family.plain()] for number, family in found]

    def change(self, changed: list[Any]) -> None:
        self._families = {**self._begun}
        for number, plain in changed:
            if plain is None:
                self._families.pop(number, None)
            else:
                self._families[number] = Family.of(plain)

    def alike(self, view: str, tables: bytes) -> int | None:
        """The number of the family that these tables resemble most, of several the one used latest."""
        sketch, most, best = sketch_of(tables), _ALIKE, None
        for number, family in self._families.items():
            if family.view == view and (part := common(sketch, family.sketch, _ALIKE)) >= most:
                most, best = part, number
        return best

    def find(self, number: int, key: Key) -> tuple[int, bytes] | None:
        """The offset and the payload of the base for a section of a new profile of the family."""
        offset = self._families[number].sections.get(key) if number in self._families else None
        if offset is None:
            return None
        try:
            return offset, self.payload(offset)
        except SectionError:  # damaged, or it has a base: no new section may depend on it
            self._forget(number)
            return None

    def having(self, bases: Iterable[int]) -> int | None:
        """The number of the family with one of these bases."""
        found = {*bases}
        return next((n for n, one in self._families.items() if not found.isdisjoint(one.sections.values())), None)

    def note(self, added: Member) -> None:
        """Register the sections of an added profile as bases of later sections."""
        own, bases = {}, []
        for key, offset in keyed(added):
            if key[0] in (TABLES, ROWS, BUNDLE):
                section = read_header(self._source, offset)
                bases += bases_of(self._source, section, self._codec)
                if not section.flags & BASED:
                    own[key] = offset
        number = self.having(bases)
        first = own.get((TABLES, 0))
        if number is None and first is not None:
            tables = self.payload(first)
            # otherwise it resembles a family, but is smaller by itself
            if self.alike(added.view, tables) is None:
                self._add(Family(added.view, sketch_of(tables), own, []))
        elif number is not None:
            family = self._families[number] = self._families.pop(number)
            if more := {key: offset for key, offset in own.items() if key not in family.sections}:
                family.sections.update(more)
                self._change(number)

    def _add(self, family: Family) -> None:
        self._families[self._next] = family
        self._change(self._next)
        self._next += 1
        if len(self._families) > _FAMILIES:
            self._forget(next(iter(self._families)))

    def _change(self, number: int) -> None:
        self._changed.add(number)
        self.is_committed = False

    def _forget(self, number: int) -> None:
        del self._families[number]
        self._change(number)
        if number not in self._begun:  # a new family that another process never saw
            self._changed.remove(number)

    def forget(self, member: Member) -> None:
        """No new section may depend on those of a removed profile."""
        first, (last, _, _) = member.sections[0][0], member.sections[-1]
        for number, family in [*self._families.items()]:
            gone = [key for key, offset in family.sections.items() if first <= offset <= last]
            if any(rank == 0 and type_ != BUNDLE for type_, rank in gone):
                self._forget(number)  # ids in its rows are those of its tables
                continue
            noted = [one for one in family.noted if not first <= one[0] <= last]
            if gone or noted != family.noted:
                for key in gone:
                    del family.sections[key]
                family.noted[:] = noted
                self._change(number)

    def payload(self, offset: int) -> bytes:
        """The payload of a base; the latest small ones are kept.  Errors: SectionError."""
        found = self._last.get(offset)
        if found is None:
            found = payload(self._source, self._codec, read_base_header(self._source, offset))
            if len(found) <= _KEPT:
                self._last[offset] = found
                self._nbytes += len(found)
                while self._nbytes > _KEPT_IN_ALL:
                    self._nbytes -= len(self._last.pop(next(iter(self._last))))
        return found

    def shared(self, added: Member) -> tuple[int, bytes] | None:
        """The family of an added profile, and tables to write as its base from now on: those of the current base and of
        profiles with other entries.

        Each such profile stores these entries for itself.  When they have taken as many bytes as the base, they are
        worth a new base.  Until then the family notes these tables, also for later commands.
        """
        offset = next((offset for offset, type_, _ in added.sections if type_ in (TABLES, BUNDLE)), None)
        if offset is None:
            return None
        section = read_header(self._source, offset)
        number = self.having(bases_of(self._source, section, self._codec))
        base = None if number is None else self._families[number].sections.get((TABLES, 0))
        if number is None or base is None:
            return None
        family, limit = self._families[number], read_header(self._source, base).stored
        if (nbytes := self._n_of_difference(section, limit // _WASTE)) <= limit // _WASTE:
            return None
        family.noted.append([offset, nbytes])
        self._change(number)
        if sum(nbytes for _, nbytes in family.noted) < limit:
            return None
        try:
            others = (self._tables(read_header(self._source, offset)) for offset, _ in family.noted)
            found = united(self.payload(base), others, 1 + 1 / _WASTE)
        except SectionError:  # damaged: nothing is shared
            found = None
        family.noted.clear()
        return None if found is None else (number, found)

    def _n_of_difference(self, section: Section, least: int) -> int:
        """The bytes of tables, or of those in a bundle, if they are a difference of more than `least`, otherwise 0."""
        if section.stored <= least:
            return 0
        if section.type == TABLES:
            return section.stored if section.flags & DIFFERENCE else 0
        inner = opened(section, payload(self._source, self._reading, section))
        return sum(len(one.stored) for one in inner if one.section.type == TABLES and one.base)

    def _tables(self, section: Section) -> bytes:
        """The payload of tables, or of those in a bundle."""
        raw = payload(self._source, self._reading, section)
        if section.type == TABLES:
            return raw
        for one in opened(section, raw):
            if one.section.type == TABLES:
                return self._reading.restore(*one)
        raise SectionError(section.offset, "a bundle has no tables")

    def share(self, number: int | None, view: str, offset: int, tables: bytes) -> None:
        """Note that shared tables are the base of a family, or of a new one."""
        family = Family(view, sketch_of(tables), {}, [])
        if number not in self._families:
            self._add(family)
        else:
            family.sections.update(self._families[number].sections)
            family.sections.pop((BUNDLE, 0), None)  # whose base are other tables
            self._families[number] = family
            self._change(number)
        family.sections[TABLES, 0] = offset


def keyed(member: Member) -> Iterator[tuple[Key, int]]:
    """The key and the offset of each section."""
    ranks: Counter[int] = Counter()
    for offset, type_, _ in member.sections:
        yield (type_, ranks[type_]), offset
        ranks[type_] += 1
