"""Reads gmon.out: times of functions by a histogram of the program counter, and numbers of calls.

    gmon, version 1 (4 bytes), 12 bytes unused; then records, each with its kind in a byte
    0 histogram    low and high address, number of bins (4), samples a second (4), "seconds" (15), "s"; bins of 2 bytes
    1 arc          address of the call, address of the callee, number of calls (4)
    2 blocks       a number (4) of pairs: address, executions

Addresses have the size and byte order of the program, which the file does not state: "seconds" is found behind them.
Source: glibc's gmon/gmon_out.h, binutils' gprof/gmon_io.c.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, fp_window
from fastprof.core.errors import FormatError, SymbolError
from fastprof.core.model import Part, ValueType
from fastprof.core.options import LENIENT
from fastprof.formats.gmon.propagate import inclusive
from fastprof.formats.gmon.reported import REPORTED
from fastprof.formats.gmon.rows import GraphReader
from fastprof.symbols import DEMANGLE, SYMBOLS

if TYPE_CHECKING:
    from fastprof.symbols.objects import ElfObject

_NS = 1_000_000_000
_MOST_OF_NONE = 1 << 16  # bytes of bins in no function that are looked at one by one
_PADDING = 64  # bytes between two functions, which belong to the first one
_HEAD, _PEEK = 20, 24  # bytes before the first record, and up to the word in it
_SECONDS = b"seconds"
# Functions of the profiler itself, whose time gprof leaves out
_PROFILER = {"_gprof_mcount", "mcount", "_mcount", "__mcount", "__mcount_internal", "__mcleanup"}


class GmonReader(GraphReader):
    """Functions with their own time, and calls with the time that callers share by their numbers of calls."""

    format = "gmon"

    def start(self) -> None:
        self._program: ElfObject | None = None
        if self.options[SYMBOLS]:
            from fastprof.symbols.objects import cached_object

            self._program = cached_object(self.options[SYMBOLS][0], demangle=self.options[DEMANGLE])
            if self._program.reason:
                raise SymbolError(f"{self.options[SYMBOLS][0]}: {self._program.reason}")
        comment = b"inclusive times are estimated from numbers of calls, as by gprof"
        self.part = self.model.add_part(Part([ValueType("time", "nanoseconds")], comments=[comment]))
        self._is_cut = False  # the rest is damaged
        self._lenient: bool = self.options[LENIENT]
        self._address = ""  # byte order and size of addresses, once the head is read
        self._bins: dict[tuple[int, int], int] = defaultdict(int)  # nanoseconds by the range of addresses
        self._arcs: dict[tuple[int, int], int] = defaultdict(int)  # calls
        self._starts: list[int] = []  # without a program: of functions that are called
        self._n_samples = self._n_arcs = self._n_blocks = 0

    # ---- records

    def _parse(self, in_: fp_window) -> bool:
        """Read whole records; whether these are all.  Errors: FormatError."""
        data = memoryview(ffi.buffer(in_.p, in_.n))
        if not self._address and in_.n < _HEAD + _PEEK and not in_.eof:
            return False
        try:
            while not self._is_cut and (in_.pos < in_.n or not self._address):
                in_.pos = self._record(data, in_.pos) if self._address else self._head(bytes(data[: _HEAD + _PEEK]))
        except (FormatError, struct.error) as error:
            if isinstance(error, struct.error) and not in_.eof:
                return False
            if not self._lenient or not self._address:
                what, code = "the file ends inside a record", int(lib.FP_E_TRUNCATED)
                if isinstance(error, FormatError):
                    what, code = str(error.detail), error.code
                raise self.damaged(what, int(in_.base + in_.pos), code) from None
            self._is_cut = True
        in_.pos = in_.n if self._is_cut else in_.pos
        return bool(in_.eof)

    def _head(self, data: bytes) -> int:
        if data[:4] != b"gmon" or len(data) < _HEAD:
            raise self.damaged("the file does not begin with gmon and a version")
        if data[4:8] not in (b"\x01\0\0\0", b"\0\0\0\x01"):
            raise self.damaged("the version is unknown, expected 1", code=lib.FP_E_VERSION)
        # of 32-bit programs, before the word: the kind, two addresses, two numbers
        word = "I" if data[_HEAD + 17 :].startswith(_SECONDS) else "Q"
        self._address = ("<" if data[4] else ">") + word
        return _HEAD

    def _record(self, data: memoryview, at: int) -> int:
        """Read the record at a byte; where the next one begins.  Errors: FormatError, struct.error if it is cut."""
        order, word = self._address[:1], self._address[1:]
        if data[at] == 0:
            head = struct.Struct(f"{order}x{word}{word}ii15sc")
            low, high, n, rate, unit, _ = head.unpack_from(data, at)
            if n <= 0 or rate <= 0 or high <= low or not unit.startswith(_SECONDS):
                what = f"the histogram has {n:,} bins of {high - low:,} bytes, {rate:,} a second, expected more than 0"
                raise self.damaged(what)
            first, end = at + head.size, at + head.size + 2 * n
            if end > len(data):
                raise struct.error
            self._histogram(data[first:end], low, high, n, rate, order == ">")
            return int(end)
        if data[at] == 1:
            arc = struct.Struct(f"{order}x{word}{word}I")
            caller, callee, calls = arc.unpack_from(data, at)
            self._arcs[caller, callee] += calls
            self._n_arcs += 1
            return int(at + arc.size)
        if data[at] == 2:
            (n,) = struct.unpack_from(f"{order}xi", data, at)
            end = at + 5 + 2 * n * struct.calcsize(self._address)
            if n < 0 or end > len(data):
                raise struct.error
            self._n_blocks += n
            return int(end)
        raise self.damaged(f"the kind of record is {data[at]}, expected 0 to 2")

    def _histogram(self, bins: memoryview, low: int, high: int, n: int, rate: int, swapped: bool) -> None:
        """Bins are a fraction of bytes wide, so their ends are rounded down."""
        last = -1
        for found in re.finditer(rb"[^\0]", bins):
            if (k := found.start() // 2) == last:
                continue
            last, pair = k, bins[2 * k : 2 * k + 2]
            count = int.from_bytes(pair, "big" if swapped else "little")
            self._n_samples += count
            start, end = (low + (high - low) * i // n for i in (k, k + 1))
            self._bins[start, max(end, start + 1)] += count * _NS // rate

    # ---- functions

    def _made(self) -> Iterator[tuple[int, ...]]:
        """The rows: of each function its own time, then its calls."""
        if self._program is None and (self._bins or self._arcs):
            self.log.warn(REPORTED["no-program"], file=self.source.name)
        self._starts, self._n_of_none = sorted({callee for _, callee in self._arcs}), 0
        own, calls, lines = (
            defaultdict[int, int](int),
            defaultdict[tuple[int, int], int](int),
            dict[tuple[int, int], int](),
        )
        for (start, end), time in self._bins.items():
            self._share(own, start, end, time)
        for start in filter(self._is_profiler, [*own]):
            self.log.count(REPORTED["profiler-time"], own.pop(start))
        for (site, callee), n in self._arcs.items():
            arc = self._entry(site), self._entry(callee)
            calls[arc] += n
            lines.setdefault(arc, self._line(site))
        times = inclusive(own, calls)
        of: dict[int, list[int]] = {}
        for caller, callee in calls:
            of.setdefault(caller, []).append(callee)
        names = {start: self._function(start) for start in sorted({*own, *of, *(callee for _, callee in calls)})}
        for start, function in names.items():
            file, line = self.model.row("functions", function)[1], self.model.row("functions", function)[4]
            if own[start]:
                yield int(lib.FP_COST), function, 0, file, line, 0, own[start]
            for callee in of.get(start, ()):
                at = lines[start, callee]
                n, time = calls[start, callee], times[start, callee]
                yield int(lib.FP_CALL), function, names[callee], file, at, n, time

    def _extent(self, address: int) -> tuple[int, int] | None:
        if self._program is not None:
            return self._program.extent(address)
        at = bisect_right(self._starts, address)
        return (self._starts[at - 1], self._starts[at] if at < len(self._starts) else 1 << 64) if at else None

    def _entry(self, address: int) -> int:
        """The first address of the function at an address, or before padding there; else the address."""
        found = self._extent(address)
        if found is None and self._program is not None:  # without one, what is before the first function is in none
            found = next(filter(None, (self._extent(address - k) for k in range(1, _PADDING))), None)
        return found[0] if found else address

    def _share(self, own: dict[int, int], start: int, end: int, time: int) -> None:
        """Divide the time of a bin among the functions that it overlaps, by bytes; what follows bytes of no function
        that are more than padding, or than a file has, stays with their addresses."""
        at, left, n_of_none = start, time, 0
        while at < end:
            extent = self._extent(at)
            n_of_none += extent is None
            self._n_of_none += extent is None
            first = self._starts[0] if self._starts and self._program is None else end
            beyond = max(at + 1, first) if n_of_none > _PADDING or self._n_of_none > _MOST_OF_NONE else at + 1
            to = min(end, extent[1] if extent else beyond)
            share = left * (to - at) // (end - at)
            own[self._entry(at)] += share
            at, left = to, left - share

    def _is_profiler(self, start: int) -> bool:
        symbol = self._program.entries([start])[0] if self._program else None
        return symbol is not None and symbol.system_name in _PROFILER

    def _function(self, start: int) -> int:
        symbol = self._program.entries([start])[0] if self._program else None
        if symbol is None:
            return self.model.function(f"0x{start:x}")
        object_id = self.model.object(self._program.path) if self._program else 0
        system_name = symbol.system_name if symbol.system_name != symbol.name else ""
        return self.model.function(symbol.name, symbol.file, object_id, system_name, symbol.line)

    def _line(self, site: int) -> int:
        chain = self._program.lookup(site) if self._program else ()
        return chain[-1].line if chain else 0

    def finish(self) -> None:
        self.log.facts |= {"samples": self._n_samples, "arcs": self._n_arcs}
        self.log.count(REPORTED["basic-blocks"], self._n_blocks)
        self.log.count(REPORTED["unreadable-rest"], self._is_cut)
