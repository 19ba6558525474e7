"""Counts by address and debug information, joined into a sample profile."""

from __future__ import annotations

import os
import re
from array import array

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.formats.pgo.calls import is_call
from fastprof.formats.pgo.levels import Profile
from fastprof.symbols import SYMBOLS
from fastprof.symbols.binaries import Binaries
from fastprof.symbols.symbolizer import Mapping, link_address

if TYPE_CHECKING:
    from fastprof.core._c import fp_pgo_counts
    from fastprof.core.model import Model
    from fastprof.core.options import Options
    from fastprof.formats.pgo.levels import Level, Location
    from fastprof.symbols.objects import ElfObject

# What Callgrind appends to the name of a recursive call, and compilers to parts and copies of functions.
_SUFFIX = re.compile(r"(?:'\d+|\.(?:llvm|part|isra|constprop)\.\d+|\.cold(?:\.\d+)?)+\Z")
_NOT_LINKAGE = re.compile(r"[\s()<>,]|::")


class Site(NamedTuple):
    """Calls of one function from one place."""

    caller: Level
    at: Location
    name: str
    calls: int


class Join:
    """The profile of all counted instructions that have lines.

    `total` is the sum of the counts of the programs whose functions are written; `unplaced` of instructions with a line
    missing in their inline chain, `unknown` of those without debug information.  `sizes` are bytes of code by function.
    """

    def __init__(self, model: Model, options: Options, is_graph: bool) -> None:
        self._model = model
        self._is_graph = is_graph
        self._binaries = Binaries(model, options)
        self.profile = Profile()
        self.sites: list[Site] = []
        self.sizes: dict[str, int] = {}
        self.total = self.unplaced = self.unknown = 0  # sums of counts
        self.n_unplaced = self.n_unknown = self.n_elsewhere = self.n_jumps = 0  # instructions, calls
        self._given = [os.path.realpath(path) for path in options[SYMBOLS]]
        self._elfs: dict[int, ElfObject | None] = {}
        self._callees: dict[tuple[int, int], str] = {}

    def add(self, counts: fp_pgo_counts) -> None:
        """Add all that was counted."""
        n, width = counts.places.n, lib.FP_PGO_PLACE_WIDTH
        words = memoryview(ffi.buffer(counts.places.words, 4 * n * width)).cast("I")
        values = memoryview(ffi.buffer(counts.counts, 8 * n)).cast("q") if n > 1 else array("q", [0])
        spaces: dict[int, list[int]] = {}
        for row in range(1, n):
            spaces.setdefault(words[row * width], []).append(row)
        found: list[tuple[ElfObject, int, Level, Location] | None] = [None] * n
        for space, rows in spaces.items():
            elf, mapping = self._elf(space)
            if elf is None or not self._is_wanted(elf):
                self.n_elsewhere += len(rows)
                continue
            self.total += sum(values[row] for row in rows)
            recorded = [words[row * width + 1] | words[row * width + 2] << 32 for row in rows]
            links = [link_address(elf, one, mapping) if mapping else one for one in recorded]
            known = [link if link is not None else 0 for link in links]
            for row, link, places in zip(rows, known, elf.places(known), strict=True):
                if not places:
                    self._lose([row], values)
                    continue
                if self._is_graph and link == places[-1].start and places[-1].name:
                    self._enter(elf, places[-1].name, link, values[row])
                at = self.profile.add(places, values[row])
                if at is None:
                    self.n_unplaced += 1
                    self.unplaced += values[row]
                else:
                    found[row] = (elf, link, *at)
        self._add_calls(counts, found)

    def _lose(self, rows: list[int], values: memoryview | array[int]) -> None:
        self.n_unknown += len(rows)
        self.unknown += sum(values[row] for row in rows)

    def _enter(self, elf: ElfObject, name: str, link: int, count: int) -> None:
        """The first instruction of a function, which runs once for each call."""
        self.profile.function(name).head += count
        self.sizes[name] = max(self.sizes.get(name, 0), elf.symbol_at(link)[1])

    def _add_calls(self, counts: fp_pgo_counts, found: list[tuple[ElfObject, int, Level, Location] | None]) -> None:
        n, width = counts.calls.n, lib.FP_PGO_CALL_WIDTH
        words = memoryview(ffi.buffer(counts.calls.words, 4 * n * width)).cast("I")
        for row in range(1, n):
            place, callee, low, high = words[row * width : row * width + width]
            if (caller := found[place]) is None:
                continue
            elf, link, level, at = caller
            if not is_call(elf, link):
                self.n_jumps += 1
                continue
            name = self._callee(callee, low | high << 32)
            if name:
                level.call(at, name, counts.called[row])
                self.sites.append(Site(level, at, name, counts.called[row]))

    def _elf(self, space: int) -> tuple[ElfObject | None, Mapping | None]:
        """The file of an object, or that of a mapping and its place."""
        mapping = None
        object_ = space
        if not self._is_graph:
            row = self._model.row("mappings", space)
            object_ = row[0]
            start, limit, offset = (row[k] | row[k + 1] << 32 for k in (1, 3, 5))
            mapping = Mapping(start, limit, offset, "", from_base=bool(row[7] & lib.FP_MAPPING_FROM_BASE))
        return self._file(object_), mapping

    def _file(self, object_: int) -> ElfObject | None:
        if object_ not in self._elfs:
            self._elfs[object_] = self._binaries.find(object_)[0]
        return self._elfs[object_]

    def _is_wanted(self, elf: ElfObject) -> bool:
        """Whether its functions are written: with --symbols only those of the programs given, else all."""
        return not self._given or any(_is_inside(elf.path, path) for path in self._given)

    def _callee(self, function: int, target: int) -> str:
        """The linkage name of a called function: as recorded, or if that was demangled as in the symbol table."""
        known = self._callees.get((function, target))
        if known is None:
            object_, _, name, system_name, _ = self._model.row("functions", function)
            text = self._model.string(system_name or name).decode("utf-8", "surrogateescape")
            if _NOT_LINKAGE.search(text):
                elf = self._file(object_) if target else None
                text = elf.symbol_at(target)[0] if elf else ""
            known = self._callees[function, target] = _SUFFIX.sub("", text)
        return known

    @property
    def placed(self) -> float:
        """The share of the programs' counts that has a place in the profile."""
        return 1 - (self.unplaced + self.unknown) / self.total if self.total else 0.0


def _is_inside(path: str, given: str) -> bool:
    """Whether a path is the given file or below the given folder."""
    path = os.path.realpath(path)
    return path == given or path.startswith(os.path.join(given, ""))
