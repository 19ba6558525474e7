"""Profiles for BOLT: what perf2bolt reads with -pa, and what it writes.

    B 401020 401000 90 3        a branch: source, target, times taken, times mispredicted
    F 401000 401020 89          a straight run: first instruction, last instruction, times executed

    1 main 20 1 main 0 3 90     the same branch: kind, symbol and offset of both ends; times mispredicted, times taken

    no_lbr cycles               of samples
    1 main 1c 17                symbol, offset, samples

Addresses are link-time addresses, in hexadecimal; 0 is outside of the program.  Local symbols get numbers by
address, as BOLT names them: `main/1`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from fastprof.core._typing import NamedTuple
from fastprof.core.errors import inputs_of, usage_error
from fastprof.core.messages import Message
from fastprof.formats.pgo import BOLT_ENCODING
from fastprof.formats.pgo.branches import Runs, branches
from fastprof.formats.pgo.calls import jump_of
from fastprof.formats.pgo.join import Join, Spot
from fastprof.formats.pgo.reported import REPORTED
from fastprof.formats.pgo.symtab import functions
from fastprof.formats.pgo.write import CountsWriter
from fastprof.symbols.objects import ElfObject

_UNKNOWN = "0 [unknown] 0"
Run = tuple[int, int]  # link-time addresses; of a branch its source and target, 0 outside of the program


class Taken(NamedTuple):
    """The branches and runs of one program."""

    branches: dict[Run, list[int]]  # taken, mispredicted
    runs: Counter[Run]


def preaggregated(taken: Taken) -> Iterator[bytes]:
    for (source, target), (times, mispredicted) in sorted(taken.branches.items()):
        yield f"B {source:x} {target:x} {times} {mispredicted}\n".encode()
    for (start, end), times in sorted(taken.runs.items()):
        yield f"F {start:x} {end:x} {times}\n".encode()


class Function(NamedTuple):
    start: int
    end: int
    name: bytes

    def at(self, address: int) -> bytes:
        return b"1 %b %x" % (self.name, address - self.start)


class Functions:
    """The functions of a program's symbol table."""

    def __init__(self, elf: ElfObject) -> None:
        self._elf = elf
        self._functions = [*_functions(elf)]
        self._starts = [one.start for one in self._functions]

    def find(self, address: int) -> Function | None:
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self._functions[at].end:
            return self._functions[at]
        name, size = self._elf.symbol_at(address)
        if not name.endswith("@plt"):
            return None
        return Function(address, address + max(size, 1), name[:-4].encode("utf-8", "surrogateescape") + b"@PLT")


def _functions(elf: ElfObject) -> Iterator[Function]:
    """By address; of several at one address the first in the symbol table."""
    numbers: Counter[bytes] = Counter()
    last = -1
    for start, size, name, is_local in functions(elf):
        if is_local:
            numbers[name] += 1
            name += b"/%d" % numbers[name]
        if start != last and b" " not in name and b"\n" not in name:
            last = start
            yield Function(start, start + size, name)


def without_branches(counts: dict[int, int], functions: Functions, event: str) -> Iterator[bytes]:
    """Counts of instructions, by address."""
    yield b"no_lbr %b\n" % "_".join(event.split()).encode("utf-8", "surrogateescape")
    lines = []
    for address, count in counts.items():
        function = functions.find(address)
        if function and count:
            lines.append((function.name, address - function.start, function.at(address), count))
    yield from (b"%b %d\n" % (place, count) for _, _, place, count in sorted(lines))


class Edges:
    """What perf2bolt makes of branches and runs: branches between blocks, taken or not."""

    def __init__(self, elf: ElfObject, functions: Functions, instructions: Callable[[int, int], list[int]]) -> None:
        self._elf = elf
        self._functions = functions
        self._instructions = instructions
        self._found: dict[tuple[bytes, bytes], list[int]] = {}
        self.n_wrong = 0

    def lines(self, taken: Taken) -> Iterator[bytes]:
        starts: dict[Function, set[int]] = {}
        for (source, target), (times, mispredicted) in taken.branches.items():
            self._branch(source, target, times, mispredicted)
            function = self._functions.find(target)
            if function and function == self._functions.find(source):
                starts.setdefault(function, set()).add(target)
        by_function: dict[Function, list[tuple[Run, int]]] = {}
        for run, times in taken.runs.items():
            function = self._functions.find(run[0])
            if function and run[1] < function.end:
                by_function.setdefault(function, []).append((run, times))
            else:
                self.n_wrong += 1
        for function, runs in by_function.items():
            self._runs(function, runs, starts.get(function, set()))
        for (before, after), sums in sorted(self._found.items()):
            yield b"%b %b %d %d\n" % (before, after, sums[0], sums[1])

    def _add(self, source: bytes, target: bytes, times: int, mispredicted: int = 0) -> None:
        sums = self._found.setdefault((source, target), [0, 0])
        sums[0] += mispredicted
        sums[1] += times

    def _branch(self, source: int, target: int, times: int, mispredicted: int) -> None:
        caller, callee = self._functions.find(source), self._functions.find(target)
        if caller is callee is None:
            return
        if caller != callee and caller and callee and target != callee.start:
            return  # a return
        start = caller.at(source) if caller else _UNKNOWN.encode()
        self._add(start, callee.at(target) if callee else _UNKNOWN.encode(), times, mispredicted)

    def _runs(self, function: Function, runs: Iterable[tuple[Run, int]], targets: set[int]) -> None:
        """Runs pass from one block to the next; blocks begin at targets of jumps, and after jumps."""
        addresses = self._instructions(function.start, function.end - function.start)
        previous = dict(zip(addresses[1:], addresses, strict=False))
        blocks = targets & previous.keys()
        for address in addresses:
            kind, target = jump_of(self._elf, address)
            if kind:
                at = bisect_right(addresses, address)
                blocks |= {*addresses[at : at + 1]} | ({target} & previous.keys())
        order = sorted(blocks)
        for (start, end), times in runs:
            for block in order[bisect_right(order, start) : bisect_right(order, end)]:
                self._add(function.at(previous[block]), function.at(block), times)


class BoltWriter(CountsWriter):
    """Writes the branches of one program, or the counts of its instructions.

    Of several programs it is the one with the most branches.
    """

    format = "bolt"
    counts_jumps = True
    advice = Message(
        "profiles for BOLT need branch stacks (perf record -b) or instruction addresses, and the program ({--symbols})"
    )

    def end(self) -> None:
        encoding = self.options[BOLT_ENCODING]
        has_branches = bool(self.counts.is_branches)
        if encoding == "preaggregated" and not has_branches:
            what = "{inputs}there are counts of instructions, but no branches: {-O bolt.format:=}fdata holds those"
            raise usage_error(what, inputs=inputs_of(self.model))
        join = self.join()
        lines = self._branches(join, encoding or "preaggregated") if has_branches else self._counts(join)
        for line in lines:
            self.text(line)
            self.written += 1
        self.log_losses(join)

    def _counts(self, join: Join) -> Iterator[bytes]:
        sums, _ = join.sums(self.counts)
        program = self._program(join, sums)
        if program < 0:
            return
        mine = {address: count for (file, address), count in sums.items() if file == program}
        yield from without_branches(mine, Functions(join.files[program]), self.value.name or "counts")

    def _branches(self, join: Join, encoding: str) -> Iterator[bytes]:
        rows = [
            (branch, join.spot_of_frame(branch.source), join.spot_of_frame(branch.target))
            for branch in branches(self.counts)
        ]
        times: Counter[Spot] = Counter()
        for branch, *spots in rows:
            for spot in filter(None, spots):
                times[spot] += branch.times
        program = self._program(join, times)
        if program < 0:
            join.n_elsewhere += len(rows)
            return
        taken = Taken({}, Counter())
        for branch, *spots in rows:
            source, target = (spot[1] if spot and spot[0] == program else 0 for spot in spots)
            if not source and not target:
                join.n_elsewhere += 1
            elif not branch.is_run:
                sums = taken.branches.setdefault((source, target), [0, 0])
                sums[0] += branch.times
                sums[1] += branch.mispredicted
            elif source and target:
                taken.runs[source, target] += branch.times
        if encoding == "preaggregated":
            yield from preaggregated(taken)
            return
        elf = join.files[program]
        edges = Edges(elf, Functions(elf), Runs(self.model, elf).instructions)
        yield from edges.lines(taken)
        join.n_wrong_runs += edges.n_wrong

    def _program(self, join: Join, counts: Mapping[Spot, int]) -> int:
        """The number of the program's file; -1: none was found."""
        sums: Counter[int] = Counter()
        for (file, _), count in counts.items():
            sums[file] += count
        for reason, _ in join.not_found.most_common(1):
            if reason and not sums:
                self.log.warn(REPORTED["programs-not-found"], reason=reason, share="all")
        return max(sums, key=lambda file: (sums[file], -file), default=-1)
