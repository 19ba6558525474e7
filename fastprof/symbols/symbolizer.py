"""Functions, files and lines for the run-time addresses of a profiled process.

A profile says which files were mapped where (`Mapping`). `Symbolizer` finds those files, turns a run-time address
into a file offset and that into a link-time address, and asks the `ElfObject`. This works the same for
position-independent programs, shared objects and prelinked objects. In programs linked to a fixed address (ET_EXEC)
the run-time address is the link-time address, whatever their mapping in the profile.
"""

from __future__ import annotations

import bisect
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import accumulate, pairwise

from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.core.errors import SymbolError
from fastprof.symbols.demangle import left_mangled
from fastprof.symbols.elf import ET_EXEC
from fastprof.symbols.objects import DEBUG_DIRS, ElfObject, Symbol, kept_object

if TYPE_CHECKING:
    from fastprof.symbols.demangle import Demangle

_VDSO = "[vdso]"
_HUGE_PAGE = ("/anon_hugepage", "[anon_hugepage", "//anon")
_DELETED = " (deleted)"
_DEBUG_SUFFIXES = (".debug", ".dbg")


class Mapping(NamedTuple):
    """A range of addresses [start, limit) that holds the file from byte `offset` on; `build_id` is hex or ""."""

    start: int
    limit: int
    offset: int
    path: str
    build_id: str = ""


class Mappings:
    """The mappings of one process, in the order given.  Where ranges overlap, the range that starts last wins, else the
    earlier one.

    A text segment copied to huge pages (`/anon_hugepage`, `//anon`) is treated as part of the file in the range next
    to it, which it was copied from. ` (deleted)` at the end of a path is removed.
    """

    def __init__(self, mappings: Iterable[Mapping]) -> None:
        # Columns, because profiles of many processes have a million of them.
        self._start, self._limit, self._offset = array("Q"), array("Q"), array("Q")
        self._path: list[str] = []
        self._build_id: list[str] = []
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
            self._start[index], self._limit[index], self._offset[index], self._path[index], self._build_id[index]
        )

    def add(self, mappings: Iterable[Mapping]) -> None:
        """Add mappings of the same process.  Takes time for the new ones, and little for the old."""
        n = len(self)
        for start, limit, offset, path, build_id in mappings:
            self._start.append(start)
            self._limit.append(limit)
            self._offset.append(offset)
            self._path.append(path.removesuffix(_DELETED))
            self._build_id.append(build_id)
        new = sorted(range(len(self) - 1, n - 1, -1), key=self._start.__getitem__)
        if not new:
            return
        first = bisect.bisect_left(self._starts, self._start[new[0]])
        following = sorted([*new, *self._order[first:]], key=self._start.__getitem__)
        self._order[first:] = array("q", following)
        self._starts[first:] = array("Q", (self._start[i] for i in following))
        if self._copies or any(self._path[i].startswith(_HUGE_PAGE) for i in new):
            for before, at in pairwise(self._order):
                self._adopt(at, before)
            for after, at in pairwise(reversed(self._order)):
                self._adopt(at, after)
            self._copies = any(path.startswith(_HUGE_PAGE) for path in self._path)
        del self._reach[first:]
        limits = (self._limit[i] for i in following)
        self._reach.extend(accumulate(limits, max, initial=self._reach.pop() if self._reach else None))
        self._covers = self._main = None

    def _adopt(self, at: int, neighbour: int) -> None:
        mine, other = self[at], self[neighbour]
        touching = other.limit == mine.start or mine.limit == other.start
        offset = other.offset + mine.start - other.start
        if mine.path.startswith(_HUGE_PAGE) and touching and other.path.startswith("/") and offset >= 0:
            self._path[at], self._offset[at], self._build_id[at] = other.path, offset, other.build_id

    def find(self, address: int) -> int | None:
        """The index of the mapping an address belongs to, or None."""
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._reach[at]:
            return None
        nearest = self._order[at]
        if address < self._limit[nearest]:
            return nearest
        # not in the nearest range: it may lie in a wider one that starts earlier (a catch-all 0..2**64-1)
        if self._covers is None:
            self._covers = self._cover()
        bounds, first = self._covers
        found = first[bisect.bisect_right(bounds, address) - 1]
        return None if found < 0 else found

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


def own_vdso() -> ElfObject:
    """The vdso of this process, as an object; its `reason` tells why there is none."""
    vdso = b""
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
            line = next((line for line in maps if line.rstrip().endswith(_VDSO)), "0-0 ")
            start, limit = (int(number, 16) for number in line.split()[0].split("-"))
            memory.seek(start)
            vdso = memory.read(limit - start)
    except OSError:
        pass  # it stays empty; the object's `reason` tells why
    return ElfObject(_VDSO, content=vdso)


class Location(NamedTuple):
    """The mapping and symbols of one address.

    `mapping` is an index into the mappings, -1 for none; `link_address` is the address as in the ELF file, or the
    run-time address where no file is known; `symbols` is the inline chain, innermost first, () when unknown.
    """

    mapping: int
    link_address: int
    symbols: tuple[Symbol, ...]


class Symbolizer:
    """Resolves the addresses of one process, each distinct address once.

    The file of a mapping is searched in this order:

    1. `symbols`, the files and directories that the user named: by build id, then by file name (a `.debug` suffix is
       ignored). If the user named one program and it fits no mapping, it is taken for the profile's program, unless
       the profile has a build id for that.
    2. `sysroot` + path, then the path itself.
    3. The debug directories, by build id.

    Errors: SymbolError when a file that the user named has the right name but another build id; with `force` it is
    used. A file found by path with another build id is skipped and counted in `unresolved`.
    """

    def __init__(
        self,
        mappings: Mappings | Iterable[Mapping],
        *,
        symbols: Sequence[str | os.PathLike[str]] = (),
        sysroot: str = "",
        debug_dirs: Sequence[str] = DEBUG_DIRS,
        demangle: Demangle = "full",
        force: bool = False,
    ) -> None:
        self.mappings = mappings if isinstance(mappings, Mappings) else Mappings(mappings)
        self._sysroot = sysroot.rstrip("/")
        self._debug_dirs = tuple(debug_dirs)
        self._demangle: Demangle = demangle
        self._force = force
        self._opened: dict[str, ElfObject] = {}
        self._chosen: dict[tuple[str, str], tuple[ElfObject | None, str]] = {}
        self._known: dict[int, Location] = {}
        self._failures: Counter[tuple[str, str]] = Counter()
        paths = [os.fspath(path) for path in symbols]
        self._directories = [path for path in paths if os.path.isdir(path)]
        self._files = [self._open(path) for path in paths if not os.path.isdir(path)]
        for file in self._files:
            if file.reason:
                raise SymbolError(f"{file.path}: {file.reason}")
        self._by_name: dict[str, list[str]] | None = None
        self._own_vdso: ElfObject | None = None

    def add(self, mappings: Iterable[Mapping]) -> None:
        """More mappings of the same process."""
        self.mappings.add(mappings)
        self._by_name = None

    def resolve(self, addresses: Sequence[int], returns: Sequence[bool] | bool = False) -> list[Location]:
        """The locations of run-time addresses, in their order.  Each object is asked once for all new addresses.

        `returns` marks all addresses, or each, as return addresses: the byte before is looked up, which is inside the
        call. The next instruction may belong to another line or even another function.
        """
        flags = [returns] * len(addresses) if isinstance(returns, bool) else returns
        wanted = [address - 1 if flag and address else address for address, flag in zip(addresses, flags, strict=True)]
        self._resolve_new(dict.fromkeys(address for address in wanted if address not in self._known))
        return [self._known[address] for address in wanted]

    def unresolved(self) -> list[tuple[str, str, int]]:
        """(object, reason, number of distinct unresolved addresses), most addresses first."""
        return [(path, reason, count) for (path, reason), count in self._failures.most_common()]

    def notes(self) -> list[tuple[str, str]]:
        """(object, its unreadable debug information or names), of the objects used."""
        chosen = {mapping[0]: elf for mapping, (elf, _) in self._chosen.items() if elf is not None}
        notes = [(path, elf.note) for path, elf in chosen.items() if elf.note]
        return notes + [(path, left_mangled(elf.refused)) for path, elf in chosen.items() if elf.refused]

    def _resolve_new(self, addresses: Iterable[int]) -> None:
        work: dict[int, tuple[ElfObject, list[tuple[int, int, int]]]] = {}
        for address in addresses:
            index = self.mappings.find(address)
            if index is None:
                self._fail(address, -1, "", "address in no mapping")
                continue
            mapping = self.mappings[index]
            elf, reason = self.object_of(index)
            link = self._link_address(elf, mapping, address) if elf else None
            if elf is None or link is None:
                self._fail(address, index, mapping.path, reason or "address outside of the object's segments")
            else:
                work.setdefault(id(elf), (elf, []))[1].append((address, index, link))
        for elf, questions in work.values():
            answers = elf.lookup_many([link for _, _, link in questions])
            for (address, index, link), chain in zip(questions, answers, strict=True):
                self._known[address] = Location(index, link, chain)
                if not chain:
                    reason = elf.reason or "no symbol at the address"
                    self._failures[self.mappings[index].path, reason] += 1

    def _fail(self, address: int, index: int, path: str, reason: str) -> None:
        self._known[address] = Location(index, address, ())
        self._failures[path, reason] += 1

    @staticmethod
    def _link_address(elf: ElfObject, mapping: Mapping, address: int) -> int | None:
        if elf.kind == ET_EXEC:
            return address if elf.is_loaded(address) else None
        return elf.file_to_link(address - mapping.start + mapping.offset)

    # ---- finding the file of a mapping

    def object_of(self, index: int) -> tuple[ElfObject | None, str]:
        """The object of a mapping, or None and the reason."""
        mapping = self.mappings[index]
        key = (mapping.path, mapping.build_id)
        if key not in self._chosen:
            self._chosen[key] = self._choose(index, mapping)
        return self._chosen[key]

    def _choose(self, index: int, mapping: Mapping) -> tuple[ElfObject | None, str]:
        named = self._named_by_user(index, mapping)
        if named is not None:
            return named, ""
        if mapping.path == _VDSO:
            return self._vdso(mapping)
        if not mapping.path.startswith("/") or mapping.path.startswith("//"):
            return None, "not a file" if mapping.path else "mapping without a name"
        reason = ""
        roots = (self._sysroot, "") if self._sysroot else ("",)
        for elf in [self._open(root + mapping.path) for root in roots]:
            if not elf.reason and (self._force or not self._differs(elf, mapping)):
                return elf, ""
            other = f"wrong build id: {elf.path} has {elf.build_id}, the profile {mapping.build_id}"
            reason = reason or elf.reason or other
        for path in self._build_id_paths(mapping.build_id, self._debug_dirs):
            if not (elf := self._open(path)).reason and elf.build_id == mapping.build_id:
                return elf, ""
        return None, reason

    def _named_by_user(self, index: int, mapping: Mapping) -> ElfObject | None:
        in_directories = [self._open(path) for path in self._build_id_paths(mapping.build_id, self._directories)]
        for elf in (*self._files, *in_directories):
            if mapping.build_id and not elf.reason and elf.build_id == mapping.build_id:
                return elf
        name = os.path.basename(mapping.path)
        same_name = [file for file in self._files if self._is_named(file.path, name)]
        for elf in (*same_name, *self._in_directories(mapping, name)):
            if elf.reason:
                continue
            if self._force or not self._differs(elf, mapping):
                return elf
            if elf in same_name:
                raise SymbolError(
                    f"{elf.path}: build id is {elf.build_id}, the profile's {mapping.path} has {mapping.build_id}"
                )
        if len(self._files) == 1 and not mapping.build_id and index == self._program() and self._is_free_program():
            return self._files[0]
        return None

    @staticmethod
    def _differs(elf: ElfObject, mapping: Mapping) -> bool:
        return bool(mapping.build_id and elf.build_id and elf.build_id != mapping.build_id)

    @staticmethod
    def _is_named(path: str, name: str) -> bool:
        mine = os.path.basename(path)
        return bool(name) and (mine == name or any(mine == name + suffix for suffix in _DEBUG_SUFFIXES))

    def _program(self) -> int | None:
        """The mapping a program named by the user stands for: the main one, or the only one, named or not."""
        return 0 if len(self.mappings) == 1 else self.mappings.main()

    def _is_free_program(self) -> bool:
        """Whether the one file the user named is a program, and no mapping has its name."""
        file = self._files[0]
        claimed = any(self._is_named(file.path, name) for name in self.mappings.names())
        return not claimed and (file.interpreted or file.kind == ET_EXEC)

    @staticmethod
    def _build_id_paths(build_id: str, directories: Iterable[str]) -> list[str]:
        if len(build_id) <= 2:
            return []
        stem = os.path.join(".build-id", build_id[:2], build_id[2:])
        candidates = [os.path.join(d, stem + suffix) for d in directories for suffix in ("", ".debug")]
        return [path for path in candidates if os.path.isfile(path)]

    def _in_directories(self, mapping: Mapping, name: str) -> list[ElfObject]:
        """Files of the user's directories that may be the mapping's, those with the same build id first."""
        if not name or not self._directories:
            return []
        if self._by_name is None:
            self._by_name = self._index_directories()
        names = (name, *(name + suffix for suffix in _DEBUG_SUFFIXES))
        found = [self._open(path) for n in names for path in self._by_name.get(n, ())]
        return sorted(found, key=lambda elf: (elf.build_id != mapping.build_id, not elf.path.endswith(mapping.path)))

    def _index_directories(self) -> dict[str, list[str]]:
        """The paths in the user's directories by file name, only for names of mapped files.  So the index is small,
        however many files the directories hold."""
        wanted = {name + suffix for name in self.mappings.names() for suffix in ("", *_DEBUG_SUFFIXES)}
        index: dict[str, list[str]] = {}
        for directory in self._directories:
            for folder, _, names in os.walk(directory):
                for name in sorted(wanted.intersection(names)):
                    index.setdefault(name, []).append(os.path.join(folder, name))
        return index

    def _vdso(self, mapping: Mapping) -> tuple[ElfObject | None, str]:
        """The vdso: kernel code in every process, in no file.  It is this process's own, if the kernel is the same."""
        if not mapping.build_id:
            return None, "the kernel's own code, and no build id says of which kernel"
        if self._own_vdso is None:
            self._own_vdso = own_vdso()
        elf = self._own_vdso
        if elf.reason or elf.build_id == mapping.build_id:
            return (None if elf.reason else elf), elf.reason
        return None, f"wrong build id: this machine's has {elf.build_id}, the profile {mapping.build_id}"

    def _open(self, path: str) -> ElfObject:
        if path not in self._opened:
            self._opened[path] = kept_object(
                path, debug_dirs=self._debug_dirs, sysroot=self._sysroot, demangle=self._demangle
            )
        return self._opened[path]
