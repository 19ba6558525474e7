"""Counts by line, spread over the instructions of the lines: of Callgrind without --dump-instr=yes, and Cachegrind.

    main, app.c:7, 400 instructions     0x1140  line 7     100
                                        0x1144  line 7     100
                                        0x1150  line 7     100     the condition of a loop
                                        0x1158  line 7     100

A count belongs to all instructions that the function has on the line, also inlined ones, so each gets the mean.  The
parts of one line, which only discriminators distinguish, become equal: exact counts are those by address.
"""

from __future__ import annotations

import posixpath
from collections import Counter

from fastprof.core._typing import TYPE_CHECKING, NamedTuple, fp_counts
from fastprof.core.c_memory import rows_of
from fastprof.core.model import Model
from fastprof.formats.pgo.branches import Runs
from fastprof.formats.pgo.calls import call_of
from fastprof.formats.pgo.symtab import Entry, functions
from fastprof.symbols.demangle import demangle
from fastprof.symbols.objects import ElfObject

if TYPE_CHECKING:
    from fastprof.formats.pgo.join import Join, Spot

Line = tuple[str, int]  # the last part of a file's path, a line


class Code(NamedTuple):
    """One function of a file, with the addresses of the instructions of each line."""

    number: int  # of the file
    start: int
    name: str
    lines: dict[Line, list[int]]

    @property
    def entry(self) -> Spot:
        return self.number, self.start


class Names:
    """The functions of one file by linkage name, and by demangled name."""

    def __init__(self, elf: ElfObject) -> None:
        self._by_name: dict[str, list[Entry]] = {}
        for one in functions(elf):
            self._by_name.setdefault(one.name.decode("utf-8", "surrogateescape"), []).append(one)
        self._demangled: dict[str, list[Entry]] | None = None

    def find(self, name: str) -> list[Entry]:
        found = self._by_name.get(name)
        if found is None:
            if self._demangled is None:
                self._demangled = {}
                for linkage, entries in self._by_name.items():
                    if (text := demangle(linkage, "full", set())) != linkage:
                        self._demangled.setdefault(text, []).extend(entries)
            found = self._demangled.get(name, [])
        return found


class Lines:
    """Places counts by line and calls at instructions.  `n_unplaced` and `unplaced`: lines without instructions in
    their function, and the sum of their counts; `n_elsewhere` of functions of other objects."""

    def __init__(self, model: Model, join: Join) -> None:
        self._model = model
        self._join = join
        self._names: dict[int, Names] = {}
        self._codes: dict[int, Code | None] = {}  # by function of the model
        self._known: dict[Spot, Code] = {}
        self.n_unplaced = self.unplaced = self.n_elsewhere = 0
        self.sums: Counter[Spot] = Counter()
        self.calls: list[tuple[Spot, tuple[Spot, str], int]] = []

    def add(self, counts: fp_counts) -> None:
        rows = dict(rows_of(counts.lines))
        for row, (function, file, line) in rows.items():
            code, count = self._code(function), counts.line_counts[row]
            if code is None:
                self.n_elsewhere += bool(count)
                continue
            found = code.lines.get(self._line(file, line), ())
            if not found and count:
                self.n_unplaced += 1
                self.unplaced += count
            for address in found:
                self.sums[code.number, address] += max(round(count / len(found)), bool(count))
        for row, (at, callee) in rows_of(counts.line_calls):
            function, file, line = rows[at]
            caller, called = self._code(function), self._code(callee)
            if caller and called:
                self._call(caller, self._line(file, line), called, counts.line_called[row])

    def _call(self, caller: Code, line: Line, callee: Code, n: int) -> None:
        """At the instructions of the line that call the function, else at an indirect one."""
        elf = self._join.files[caller.number]
        targets = {address: call_of(elf, address) for address in caller.lines.get(line, ())}
        found = [address for address, target in targets.items() if target == callee.start]
        found = found or [address for address, target in targets.items() if target == 0][:1]
        for i, address in enumerate(found):
            part = n // len(found) + (i < n % len(found))
            self.calls.append(((caller.number, address), (callee.entry, callee.name), part))

    def _line(self, file: int, line: int) -> Line:
        return posixpath.basename(self._model.string(file).decode("utf-8", "surrogateescape")), line

    def _code(self, function: int) -> Code | None:
        """Of the program that the function's object is, or of the only one given; None if it is not there."""
        if function not in self._codes:
            object_, file, name, system_name, _ = self._model.row("functions", function)
            number = self._join.wanted(object_)
            text = self._model.string(system_name or name).decode("utf-8", "surrogateescape")
            self._codes[function] = None if number < 0 else self._found(number, self._join.linkage(text), file)
        return self._codes[function]

    def _found(self, number: int, name: str, file: int) -> Code | None:
        elf = self._join.files[number]
        if number not in self._names:
            self._names[number] = Names(elf)
        entries = self._names[number].find(name)
        if len(entries) > 1:  # static functions of one name
            wanted = self._line(file, 0)[0]
            symbols = elf.lookup_many([one.start for one in entries])
            entries = [
                one
                for one, chain in zip(entries, symbols, strict=True)
                if chain and posixpath.basename(chain[-1].file) == wanted
            ] or entries
        return self._read(number, entries[0]) if entries else None

    def _read(self, number: int, entry: Entry) -> Code | None:
        known = self._known.get((number, entry.start))
        if known is None:
            elf = self._join.files[number]
            addresses = Runs(self._model, elf).instructions(entry.start, entry.size)
            (places,) = elf.places([entry.start])
            name = places[-1].name if places else ""
            known = self._known[number, entry.start] = Code(number, entry.start, name, {})
            for address, chain in zip(addresses, elf.lookup_many(addresses), strict=True):
                if chain:
                    known.lines.setdefault((posixpath.basename(chain[0].file), chain[0].line), []).append(address)
        return known
