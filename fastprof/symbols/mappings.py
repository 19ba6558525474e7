"""Which files were mapped where in a profiled process."""

from __future__ import annotations

import bisect
import os
from array import array
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import accumulate, compress, count, pairwise

from fastprof.core._typing import NamedTuple
from fastprof.symbols import DELETED

_HUGE_PAGE = ("/anon_hugepage", "[anon_hugepage", "//anon")


class Mapping(NamedTuple):
    """A range of addresses [start, limit) that holds the file from byte `offset` on; `build_id` is hex or "".

    If `from_base`, `offset` counts from the lowest link-time address instead.
    """

    start: int
    limit: int
    offset: int
    path: str
    build_id: str = ""
    from_base: bool = False


class Mappings:
    """The mappings of one process, in the order given.  Where ranges overlap, the range that starts last wins, else the
    earlier one.

    A text segment copied to huge pages (`/anon_hugepage`, `//anon`) is treated as part of the file in the adjacent
    range, from which it was copied. ` (deleted)` at the end of a path is removed.
    """

    def __init__(self, mappings: Iterable[Mapping]) -> None:
        # Columns, because profiles of many processes have a million of them.
        self._start, self._limit, self._offset = array("Q"), array("Q"), array("Q")
        self.paths: list[str] = []
        self._build_id: list[str] = []
        self._from_base: set[int] = set()
        self._order = array("q")  # indexes, sorted by start; for equal starts the later one first
        self._starts = array("Q")  # in that order
        self._reach = array("Q")  # in that order: the highest limit so far
        self._covers: tuple[list[int], list[int]] | None = None  # see _cover
        self._copies = False  # the file of some huge pages is unknown
        self._main: int | None = None
        self.add(mappings)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Mapping:
        return Mapping(
            self._start[index],
            self._limit[index],
            self._offset[index],
            self.paths[index],
            self._build_id[index],
            index in self._from_base,
        )

    def add(self, mappings: Iterable[Mapping]) -> None:
        """Add mappings of the same process.  Known mappings take little time."""
        n = len(self)
        mappings = [*mappings]
        if not mappings:
            return
        starts, limits, offsets, paths, build_ids, from_base = zip(*mappings, strict=True)
        self._start.extend(starts)
        self._limit.extend(limits)
        self._offset.extend(offsets)
        self.paths += [path.removesuffix(DELETED) for path in paths]
        self._build_id += build_ids
        self._from_base.update(compress(count(n), from_base))
        new = sorted(range(len(self) - 1, n - 1, -1), key=self._start.__getitem__)
        first = bisect.bisect_left(self._starts, self._start[new[0]])
        following = new
        if first < len(self._order):
            following = sorted([*new, *self._order[first:]], key=self._start.__getitem__)
        self._order[first:] = array("q", following)
        self._starts[first:] = array("Q", map(self._start.__getitem__, following))
        if self._copies or any(self.paths[i].startswith(_HUGE_PAGE) for i in new):
            for before, at in pairwise(self._order):
                self._adopt(at, before)
            for after, at in pairwise(reversed(self._order)):
                self._adopt(at, after)
            self._copies = any(path.startswith(_HUGE_PAGE) for path in self.paths)
        del self._reach[first:]
        reaches = accumulate(
            map(self._limit.__getitem__, following), max, initial=self._reach.pop() if self._reach else None
        )
        self._reach.extend(reaches)
        self._covers = self._main = None

    def _adopt(self, at: int, neighbour: int) -> None:
        mine, other = self[at], self[neighbour]
        touching = other.limit == mine.start or mine.limit == other.start
        offset = other.offset + mine.start - other.start
        if mine.path.startswith(_HUGE_PAGE) and touching and other.path.startswith("/") and offset >= 0:
            self.paths[at], self._offset[at], self._build_id[at] = other.path, offset, other.build_id

    def find(self, address: int) -> int | None:
        """The index of the mapping an address belongs to, or None."""
        return self.around(address)[0]

    def around(self, address: int) -> tuple[int | None, int, int]:
        """The same, and a range of addresses around this one that all belong to it."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._reach[at]:
            return None, address, address + 1
        nearest = self._order[at]
        if address < (limit := self._limit[nearest]):
            return nearest, self._starts[at], min([limit, *self._starts[at + 1 : at + 2]])
        # not in the nearest range, but perhaps in a wider one that starts earlier (a catch-all 0..2**64-1)
        if self._covers is None:
            self._covers = self._cover()
        bounds, first = self._covers
        found = first[bisect.bisect_right(bounds, address) - 1]
        return None if found < 0 else found, address, address + 1

    def _cover(self) -> tuple[list[int], list[int]]:
        """Addresses, sorted, and the first mapping between each and the next, -1 if none."""
        bounds = sorted({*self._start, *self._limit})
        first: list[int] = []
        there: list[int] = []  # a heap of the mappings that have begun
        at = 0
        for bound in bounds:
            while at < len(self._order) and self._starts[at] <= bound:
                heappush(there, self._order[at])
                at += 1
            while there and self._limit[there[0]] <= bound:
                heappop(there)
            first.append(there[0] if there else -1)
        return bounds, first

    def main(self) -> int | None:
        """The index of the program itself: the first mapping of a file that is not a shared object."""
        if self._main is None:
            self._main = next((i for i, path in enumerate(self.paths) if _is_program(path)), -1)
        return None if self._main < 0 else self._main

    def names(self) -> Iterator[str]:
        """The last parts of their paths."""
        return map(os.path.basename, self.paths)


def _is_program(path: str) -> bool:
    return bool(path) and not path.startswith(("[", "//")) and ".so" not in os.path.basename(path)
