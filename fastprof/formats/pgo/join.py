"""Counts by address and debug information, joined into a sample profile."""

from __future__ import annotations

import os
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice

from fastprof.core._c import ffi
from fastprof.core._typing import NamedTuple, fp_counts
from fastprof.core.c_memory import rows_of
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.formats.pgo.branches import Runs, branches, place_of
from fastprof.formats.pgo.calls import goes_away, is_call
from fastprof.formats.pgo.levels import Level, Location, Profile, enter
from fastprof.formats.pgo.spread import SCALE, spread
from fastprof.symbols import SYMBOLS
from fastprof.symbols.binaries import Binaries, mapping_of
from fastprof.symbols.builds import Builds, builds
from fastprof.symbols.dwarf import Place
from fastprof.symbols.mappings import Mapping
from fastprof.symbols.objects import ElfObject

Spot = tuple[int, int]  # the number of a file, a link-time address
Call = tuple[Spot, tuple[Spot, str], int]  # where it is, the first instruction and name of the callee, times

# What Callgrind appends to the name of a recursive call, and compilers to parts and copies of functions.
_SUFFIX = re.compile(r"(?:'\d+|\.(?:llvm|part|isra|constprop)\.\d+|\.cold(?:\.\d+)?)+\Z")
_NOT_LINKAGE = re.compile(r"[\s()<>,]|::")
_AT_ONCE = 4096  # addresses that are looked up together


class Site(NamedTuple):
    """Calls of one function from one place; `callee` is its first instruction."""

    caller: Level
    at: Location
    callee: Spot
    name: str
    calls: int


class Function:
    """One function of a file: static functions of several files may have one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.level = Level()
        self.nbytes = 0  # of its code


class Fits:
    """How much of what was recorded the program cannot have done; all of it is from another build."""

    def __init__(self) -> None:
        self.n = self.n_wrong = 0

    def add(self, wrong: bool, n: int) -> None:
        self.n += n
        self.n_wrong += n * wrong

    @property
    def wrong(self) -> float:
        return self.n_wrong / self.n if self.n else 0.0


class Join:
    """The profile of all counted instructions that have lines.

    `total` is the sum of the counts of the programs whose functions are written; `unplaced` of instructions with a line
    missing in their inline chain, `unknown` of those without debug information or address, `inlined` of those in
    inlined functions.
    """

    def __init__(self, model: Model, options: Options, is_graph: bool) -> None:
        self._model = model
        self._is_graph = is_graph
        self._binaries = Binaries(model, options)
        self.functions: dict[Spot, Function] = {}  # by their first instruction
        self.sites: list[Site] = []
        self._sizes: dict[Spot, int] = {}  # of instructions, if totals count bytes
        self.total = self.unplaced = self.unknown = self.inlined = 0  # sums of counts
        self.scale = 1  # of these sums, but not of `not_found`: executions for each sample
        self.n_wrong_runs = self.n_lines = self.n_lines_elsewhere = self.n_unplaced_lines = 0
        self.n_unplaced = self.n_unknown = self.n_elsewhere = self.n_jumps = 0  # instructions, calls
        self.objects: Counter[int] = Counter()  # counts
        self.fits = Fits()
        self._misplaced: set[Spot] = set()  # callees that do not begin there
        self.not_found: Counter[str] = Counter()  # counts by the reason why an object has no file
        self._given = [os.path.realpath(path) for path in options[SYMBOLS]]
        self.files: list[ElfObject] = []
        self._wanted: list[bool] = []  # by file: whether its functions are written
        self._file_of: dict[int, tuple[int, str]] = {}  # by object: the number of its file, or -1 and the reason
        self._callees: dict[tuple[int, int], tuple[Spot, str]] = {}

    def add(self, counts: fp_counts, by_line: bool) -> None:
        """Add all that was counted, with `by_line` also what has no address."""
        self.scale = 1 if self._is_graph or counts.is_branches else SCALE
        self.total += counts.cost_without * self.scale
        self.unknown += counts.cost_without * self.scale
        if counts.is_branches:
            sums, calls = self._of_branches(counts)
        else:
            sums, spots = self.sums(counts)
            if self.scale > 1:
                sums = spread(self._model, self.files, sums)
            calls = [*self._calls(counts, spots)]
            if by_line and counts.lines.n > 1:
                calls += self._of_lines(counts, sums)
        heads: Counter[Spot] = Counter()
        made: Counter[Spot] = Counter()
        for spot, (callee, _), n in calls:
            heads[callee] += n
            made[spot] += n
        if self._is_graph:
            self._without_stubs(sums, made)
        leaves: dict[Spot, tuple[Level, Location] | None] = {spot: None for spot, _, _ in calls}
        for spot, count, places in self._placed(sums):
            if places and spot[1] == places[-1].start:
                self._function(spot, places).level.head = heads[spot] or count
            leaf = self._add(spot, count, places)
            if spot in leaves:
                leaves[spot] = leaf
        for spot, (callee, name), n in calls:
            self.fits.add(callee in self._misplaced, n)
            leaf = leaves[spot]
            if leaf is None:
                continue
            if not counts.is_branches and not is_call(self.files[spot[0]], spot[1]):
                self.n_jumps += 1
            elif name:
                leaf[0].call(leaf[1], name, n)
                self.sites.append(Site(*leaf, callee, name, n))
        if counts.is_branches:
            self._complete(heads)

    def _without_stubs(self, sums: dict[Spot, int], made: Counter[Spot]) -> None:
        """Calls and tail jumps were executed as often as they called: Callgrind gives them the cost of the stubs (PLT)
        on the way to a library, too, which doubles it."""
        for spot, n in made.items():
            if n < sums.get(spot, 0) and goes_away(self.files[spot[0]], spot[1]):
                sums[spot] = n

    def sums(self, counts: fp_counts) -> tuple[dict[Spot, int], dict[int, Spot]]:
        """Counts by spot: processes map a program to different addresses.  And the spot of each row."""
        n = counts.places.n
        values = memoryview(ffi.buffer(counts.counts, 8 * n)).cast("q") if n > 1 else array("q", [0])
        sums: dict[Spot, int] = {}
        spots: dict[int, Spot] = {}
        mappings: dict[int, tuple[int, Mapping | None]] = {}
        for row, (space, low, high) in rows_of(counts.places):
            if space not in mappings:
                mappings[space] = (space, None) if self._is_graph else mapping_of(self._model, space)
            object_, mapping = mappings[space]
            self.objects[object_] += values[row]
            file, reason = self._file(object_)
            if file < 0 or not self._wanted[file]:
                self.n_elsewhere += 1
                self.not_found[reason] += values[row]
                continue
            elf, address = self.files[file], low | high << 32
            spots[row] = spot = file, self._binaries.link_address(object_, elf, address, mapping)
            sums[spot] = sums.get(spot, 0) + values[row]
        return sums, spots

    def _of_lines(self, counts: fp_counts, sums: dict[Spot, int]) -> list[Call]:
        """Adds counts by line; their calls."""
        from fastprof.formats.pgo.lines import Lines

        lines = Lines(self._model, self)
        lines.add(counts)
        for spot, count in lines.sums.items():
            sums[spot] = sums.get(spot, 0) + count
        self.n_lines = counts.lines.n - 1
        self.n_lines_elsewhere, self.n_unplaced_lines = lines.n_elsewhere, lines.n_unplaced
        self.unplaced += lines.unplaced
        self.total += lines.unplaced
        self.fits.add(True, lines.unplaced)
        self.fits.add(False, lines.sums.total())
        return lines.calls

    def wanted(self, object_: int) -> int:
        """The number of an object's file whose functions are written, of no object that of the only program; -1."""
        number, _ = self._file(object_)
        return number if number >= 0 and self._wanted[number] else -1

    def _of_branches(self, counts: fp_counts) -> tuple[dict[Spot, int], list[Call]]:
        """Counts by spot, and calls, of branch stacks."""
        runs: dict[int, Runs] = {}
        jumps: Counter[tuple[Spot, Spot]] = Counter()
        spots: dict[int, Spot | None] = {}
        for branch in branches(counts):
            ends = []
            for frame in (branch.source, branch.target):
                if frame not in spots:
                    spots[frame] = self.spot_of_frame(frame)
                ends.append(spots[frame])
            source, target = ends
            if branch.is_run and source and target and source[0] == target[0]:
                number = source[0]
                if number not in runs:
                    runs[number] = Runs(self._model, self.files[number])
                runs[number].add(source[1], target[1], branch.times)
            elif branch.is_run:
                self.n_elsewhere += 1
            elif target:
                jumps[source or (-1, 0), target] += branch.times
        sums: dict[Spot, int] = {}
        for number, of_file in runs.items():
            for address, n, size in of_file.executed():
                sums[number, address] = n
                self._sizes[number, address] = size
            self.n_wrong_runs += of_file.n_wrong
            self.fits.add(False, of_file.n - of_file.n_wrong)
            self.fits.add(True, of_file.n_wrong)
        entries: dict[Spot, str] = {}
        for spot, _, places in self._placed(dict.fromkeys((target for _, target in jumps), 0)):
            if places and places[-1].start == spot[1]:
                entries[spot] = places[-1].name
        calls = []
        for (source, target), n in jumps.items():
            if target in entries:
                calls.append((source, (target, entries[target]), n))
                if source[0] >= 0:
                    sums.setdefault(source, 0)
        return sums, calls

    def _complete(self, heads: Counter[Spot]) -> None:
        """Add what branch stacks say of whole functions: their calls, and that all other code was not executed.

        As llvm-profgen's, lines of a function are executed at least as often as their calls: the last branch of a stack
        is in no run.
        """
        for entry, function in [*self.functions.items()]:
            level = function.level
            level.head = heads[entry]
            level.body.update((at, max(level.body[at], sum(calls.values()))) for at, calls in level.targets.items())
        self.add_unseen()

    def add_unseen(self) -> None:
        """Add the code of functions that was not executed, with count 0."""
        for entry, function in [*self.functions.items()]:
            level = function.level
            of_file = Runs(self._model, self.files[entry[0]])
            unseen = dict.fromkeys(((entry[0], at) for at in of_file.instructions(entry[1], function.nbytes)), 0)
            for _, _, places in self._placed(unseen) if level.total else ():
                if places and places[-1].start == entry[1]:
                    enter(level, places, 0)

    def spot_of_frame(self, frame: int) -> Spot | None:
        """The spot of a frame, None outside of the files."""
        mapping, address = place_of(self._model, frame)
        if not mapping:
            return None
        object_, space = mapping_of(self._model, mapping)
        self.objects[object_] += 1
        number, reason = self._file(object_)
        if number < 0 or not self._wanted[number]:
            self.not_found[reason] += 1
            return None
        link = self._binaries.link_address(object_, self.files[number], address, space)
        return (number, link) if link else None

    def _placed(self, sums: dict[Spot, int]) -> Iterator[tuple[Spot, int, tuple[Place, ...]]]:
        """Each spot with its count and its inline chain."""
        for number, of_file in groupby(sorted(sums), key=lambda spot: spot[0]):
            while part := [*islice(of_file, _AT_ONCE)]:
                for spot, places in zip(part, self.files[number].places([link for _, link in part]), strict=True):
                    yield spot, sums[spot], places

    def _function(self, spot: Spot, places: tuple[Place, ...]) -> Function:
        """The function around a spot."""
        entry = spot[0], places[-1].start
        found = self.functions.get(entry)
        if found is None:
            found = self.functions[entry] = Function(places[-1].name)
            found.nbytes = self.files[spot[0]].symbol_at(entry[1])[1]
        return found

    def _add(self, spot: Spot, count: int, places: tuple[Place, ...]) -> tuple[Level, Location] | None:
        """Add an instruction.  Its level and place, None if it has none."""
        self.total += count
        if not places:
            self.n_unknown += 1
            self.unknown += count
            return None
        level, size = self._function(spot, places).level, self._sizes.get(spot, 1)
        leaf = enter(level, places, count, size)
        if leaf is None:
            self.n_unplaced += 1
            self.unplaced += count
        else:
            self.inlined += count * (len(places) > 1)
        return leaf

    def _calls(self, counts: fp_counts, spots: dict[int, Spot]) -> Iterator[Call]:
        """The spot of each call, its callee, and how often it was made."""
        for row, (place, callee, low, high) in rows_of(counts.calls):
            if place in spots:
                yield spots[place], self._callee(callee, low | high << 32), counts.called[row]

    def _file(self, object_: int) -> tuple[int, str]:
        if object_ not in self._file_of:
            elf, reason = self._binaries.find(object_) if object_ else self._binaries.program()
            if elf and elf not in self.files:
                self.files.append(elf)
                self._wanted.append(self._is_wanted(elf))
            self._file_of[object_] = (self.files.index(elf), "") if elf else (-1, reason)
        return self._file_of[object_]

    def _is_wanted(self, elf: ElfObject) -> bool:
        """Whether its functions are written: with --symbols only those of the programs given, else all."""
        return not self._given or any(_is_inside(elf.path, path) for path in self._given)

    def _callee(self, function: int, target: int) -> tuple[Spot, str]:
        """The first instruction and the linkage name of a called function: that of the debug information, as in its own
        record, else as recorded, or if that was demangled as in the symbol table."""
        known = self._callees.get((function, target))
        if known is None:
            object_, _, name, system_name, _ = self._model.row("functions", function)
            text = self._model.string(system_name or name).decode("utf-8", "surrogateescape")
            file = self._file(object_)[0] if target and object_ else -1
            link = target
            if file >= 0:
                elf = self.files[file]
                link = self._binaries.link_address(object_, elf, target)
                (places,) = elf.places([link]) if self._wanted[file] else ((),)
                if places and places[-1].start == link and places[-1].name:
                    text = places[-1].name
                else:
                    symbol = elf.symbol_at(link)[0]
                    if self._wanted[file] and not symbol:
                        self._misplaced.add((file, link))
                    text = symbol if _NOT_LINKAGE.search(text) else text
            elif _NOT_LINKAGE.search(text):
                text = ""
            known = self._callees[function, target] = (file, link), self.linkage(text)
        return known

    @staticmethod
    def linkage(name: str) -> str:
        """A name without the suffixes of parts, copies and recursive calls."""
        return _SUFFIX.sub("", name)

    @property
    def placed(self) -> float:
        """The share of the programs' counts that has a place in the profile."""
        return 1 - (self.unplaced + self.unknown) / self.total if self.total else 0.0

    @property
    def known(self) -> float:
        """The share of the programs' counts in functions with debug information."""
        return 1 - self.unknown / self.total if self.total else 0.0

    def builds(self) -> Builds:
        return builds(self._model, self._binaries, self.objects)

    def profile(self) -> Profile:
        """Functions of one name are one function."""
        profile = Profile()
        for function in self.functions.values():
            level = function.level
            if level.total or (level.targets and not self._is_graph):
                profile.function(function.name).add(level)
        return profile


def _is_inside(path: str, given: str) -> bool:
    """Whether a path is the given file or below the given folder."""
    path = os.path.realpath(path)
    return path == given or path.startswith(os.path.join(given, ""))
