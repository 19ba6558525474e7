"""Functions, files and lines for the run-time addresses of a profiled process.

A profile records which files were mapped where (`Mapping`). A `Finder` finds those files.  `Symbolizer` converts a
run-time address into an address of the file (ElfObject.link_address) and looks up its names.
"""

from __future__ import annotations

import bisect
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import accumulate, compress, count, pairwise

from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.symbols.chains import EMPTY, chains_of
from fastprof.symbols.finder import Finder
from fastprof.symbols.kernel import is_kernel, module_of

if TYPE_CHECKING:
    from fastprof.symbols.chains import Chains
    from fastprof.symbols.finder import Names
    from fastprof.symbols.names import Symbol

_HUGE_PAGE = ("/anon_hugepage", "[anon_hugepage", "//anon")
_DELETED = " (deleted)"


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
        self._path: list[str] = []
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
        return len(self._path)

    def __getitem__(self, index: int) -> Mapping:
        return Mapping(
            self._start[index],
            self._limit[index],
            self._offset[index],
            self._path[index],
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
        self._path += [path.removesuffix(_DELETED) for path in paths]
        self._build_id += build_ids
        self._from_base.update(compress(count(n), from_base))
        new = sorted(range(len(self) - 1, n - 1, -1), key=self._start.__getitem__)
        first = bisect.bisect_left(self._starts, self._start[new[0]])
        following = sorted([*new, *self._order[first:]], key=self._start.__getitem__)
        self._order[first:] = array("q", following)
        self._starts[first:] = array("Q", map(self._start.__getitem__, following))
        if self._copies or any(self._path[i].startswith(_HUGE_PAGE) for i in new):
            for before, at in pairwise(self._order):
                self._adopt(at, before)
            for after, at in pairwise(reversed(self._order)):
                self._adopt(at, after)
            self._copies = any(path.startswith(_HUGE_PAGE) for path in self._path)
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
            self._path[at], self._offset[at], self._build_id[at] = other.path, offset, other.build_id

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
            self._main = next((i for i, path in enumerate(self._path) if _is_program(path)), -1)
        return None if self._main < 0 else self._main

    def names(self) -> Iterator[str]:
        """The last parts of their paths."""
        return map(os.path.basename, self._path)


def _is_program(path: str) -> bool:
    return bool(path) and not path.startswith(("[", "//")) and ".so" not in os.path.basename(path)


def link_address(names: Names, address: int, mapping: Mapping) -> int | None:
    """The link-time address of a run-time address in a mapping, or None."""
    if mapping.from_base:
        return names.relative_to_link(address - mapping.start + mapping.offset)
    return names.link_address(address, mapping.start, mapping.offset)


def _links(
    names: Names | None, mapping: Mapping, positions: Sequence[int], addresses: Sequence[int]
) -> dict[int, int | None]:
    """By position: the link-time address of the address there."""
    if names is None:
        return dict.fromkeys(positions)
    if mapping.from_base:
        return {at: link_address(names, addresses[at], mapping) for at in positions}
    wanted, start, offset = [addresses[at] for at in positions], mapping.start, mapping.offset
    if (move := names.link_move(min(wanted), max(wanted), start, offset)) is not None:
        return {at: address + move for at, address in zip(positions, wanted, strict=True)}
    return {at: names.link_address(address, start, offset) for at, address in zip(positions, wanted, strict=True)}


def _is_padding(chain: Sequence[Symbol]) -> bool:
    return bool(chain) and chain[0].system_name.startswith("__pfx_")


class Symbolizer:
    """Resolves the addresses of one process, each distinct address once.

    Several processes may share a `finder`, which looks for the file of each object once.
    """

    def __init__(self, mappings: Iterable[Mapping], finder: Finder | None = None) -> None:
        self.mappings = Mappings(())
        self._finder = finder or Finder()
        self._failed: set[int] = set()
        self._failures: Counter[tuple[str, str]] = Counter()
        self.add(mappings)

    def add(self, mappings: Iterable[Mapping]) -> None:
        """Add mappings of the same process."""
        known = len(self.mappings)
        self.mappings.add(mappings)
        self._finder.expect(self.mappings[index] for index in range(known, len(self.mappings)))

    def resolve(self, addresses: Sequence[int], returns: Sequence[bool] | bool = False) -> list[tuple[Symbol, ...]]:
        """The inline chains of run-time addresses, in order, innermost first; () for unknown ones.  `returns`: as for
        `look_up`, or the same for all."""
        flags = [returns] * len(addresses) if isinstance(returns, bool) else returns
        found: list[tuple[Symbol, ...]] = [()] * len(addresses)
        for chains, positions, answers in self.look_up(addresses, flags):
            for at, chain in zip(positions, answers, strict=True):
                found[at] = chains.symbols(chain)
        return found

    def look_up(
        self, addresses: Sequence[int], returns: Iterable[object]
    ) -> Iterator[tuple[Chains, list[int], list[bytes]]]:
        """For each mapping with symbols: the chains of its file, positions in `addresses`, and their chains.

        `returns` marks return addresses: the byte before is looked up, which is inside the call. The next instruction
        may belong to another line or even another function.  No call is in the padding before a function of the kernel,
        whose name is `__pfx_` and the function's.  A return address after it was interrupted at its first byte, or is
        where a retpoline is about to jump to: it is looked up itself.
        """
        pairs = zip(addresses, returns, strict=True)
        wanted = [address - 1 if flag and address else address for address, flag in pairs]
        places: dict[int | None, list[int]] = {}
        first = last = 0
        for at, address in enumerate(wanted):
            if not first <= address < last:  # neighbours mostly belong to the same mapping
                index, first, last = self.mappings.around(address)
                positions = places.setdefault(index, [])
            positions.append(at)
        for index, positions in places.items():
            if index is None:
                for at in positions:
                    self._fail(wanted[at], "", "address outside all mappings")
                continue
            mapping = self.mappings[index]
            names, reason = self.object_of(index)
            links = _links(names, mapping, positions, wanted)
            inside = {at: link for at, link in links.items() if link is not None}
            for at in links.keys() - inside if len(inside) < len(links) else ():
                self._fail(wanted[at], mapping.path, reason or "address outside of the object's segments")
            if names is None or not inside:
                continue
            chains, found = chains_of(names, list(inside.values()))
            if is_kernel(mapping.path) or module_of(mapping.path):
                callers = {at: chain for at, chain in zip(inside, found, strict=True) if wanted[at] != addresses[at]}
                padding = {chain for chain in {*callers.values()} if _is_padding(chains.symbols(chain))}
                entered = {at: inside[at] + 1 for at, chain in callers.items() if chain in padding}
                if entered:
                    inside |= entered
                    chains, found = chains_of(names, list(inside.values()))
            for at, chain in zip(inside, found, strict=True):
                if chain == EMPTY:
                    self._fail(wanted[at], mapping.path, names.reason or "no symbol at the address")
            yield chains, list(inside), found

    def unresolved(self) -> list[tuple[str, str, int]]:
        """(object, reason, number of distinct unresolved addresses), most addresses first."""
        return [(path, reason, count) for (path, reason), count in self._failures.most_common()]

    def notes(self) -> list[tuple[str, str]]:
        """As Finder.notes."""
        return self._finder.notes()

    def _fail(self, address: int, path: str, reason: str) -> None:
        if address not in self._failed:
            self._failed.add(address)
            self._failures[path, reason] += 1

    def object_of(self, index: int) -> tuple[Names | None, str]:
        """The names of a mapping's object, or None and the reason."""
        mapping = self.mappings[index]
        is_program = index == (0 if len(self.mappings) == 1 else self.mappings.main())
        return self._finder.find(mapping.path, mapping.build_id, self.mappings.names if is_program else None)
