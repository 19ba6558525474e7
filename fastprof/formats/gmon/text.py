"""Reads what gprof prints: the flat profile and the call graph.

     98.98      1.68     1.68   700000     0.00     0.00  leaf      flat: %, cumulative, self, calls, per call twice

                    0.24    0.00  100000/700000      other [2]      a caller: self, children, calls
    [3]     98.8    1.68    0.00  700000         leaf [3]           the function: %, self, children
                    7.10    0.00    5000/5000        hash [9]       a callee
    -----------------------------------------------

Source: binutils' gprof/hist.c, gprof/cg_print.c.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from io import BytesIO

from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_window
from fastprof.core.model import Part, ValueType
from fastprof.core.options import INT64, LENIENT
from fastprof.formats.gmon.reported import REPORTED
from fastprof.formats.gmon.rows import GraphReader

_REAL = rb" {0,20}(\d{1,9}\.\d{1,9}|-?nan)"
_NAME = rb" +(\S.*?)(?: <cycle \d+>)? [\[(](\d{1,9})[\])]"
_FLAT = re.compile(_REAL * 3 + rb"(?: +(\d+)" + _REAL * 2 + rb")? +(\S.*)")
_FUNCTION = re.compile(rb"\[\d{1,9}\]?" + _REAL * 3 + rb"(?: +\d+(?:\+\d+)?)?" + _NAME)
_CALL = re.compile(rb"(?:" + _REAL * 2 + rb")? +(\d{1,18})(?:/\d+)?" + _NAME)
_ADDRESS = re.compile(rb"[0-9a-f]+\)")
_FLAT_TITLE, _GRAPH_TITLE = (
    re.compile(rb" time +seconds +seconds "),
    re.compile(rb"index % time +self +children +called "),
)
_HEADING = re.compile(rb"\t\t[\t ]*Call graph(?: \(|$)|granularity: ")  # a call graph must follow
_NEITHER, _IN_FLAT, _IN_GRAPH = range(3)


def _ns(seconds: bytes | None) -> int:
    return round(float(seconds) * 1e9) if seconds and b"nan" not in seconds else 0


def _cut_place(name: bytes) -> tuple[bytes, bytes, int]:
    """The function, the file and the line of `leaf (w.c:4 @ 4012fe)`, which `gprof -l` prints."""
    head, _, address = name.rpartition(b" @ ")
    place, _, line = head.rpartition(b":")
    text, _, file = place.rpartition(b" (")
    if text and line.isdigit() and len(line) < 10 and _ADDRESS.fullmatch(address):
        return text, file, int(line)
    return name, b"", 0


class GprofTextReader(GraphReader):
    """Functions with their own time, and calls with the time that gprof passed to them.

    Loses numbers of calls of a flat profile without a call graph, which are counted."""

    format = "gprof"

    def start(self) -> None:
        comment = b"inclusive times are estimated from numbers of calls, by gprof"
        self.part = self.model.add_part(Part([ValueType("time", "nanoseconds")], comments=[comment]))
        self._lenient: bool = self.options[LENIENT]
        self._place, self._line, self._in = 0, 0, _NEITHER  # offset and number of the line, and which table it is in
        self._tables, self._n_bad, self._is_cut = 0, 0, False
        self._is_due = False  # the heading of the call graph was read, and not yet its table
        self._flat = defaultdict[bytes, int](int)  # own time by name
        self._called = dict[bytes, None]()  # functions of which the flat profile has calls
        self._names = dict[int, bytes]()  # of the call graph, by index
        self._own = dict[int, int]()
        self._arcs = dict[tuple[int, int], tuple[int, int]]()  # calls, and their time
        self._callers, self._at = (
            list[tuple[int, int, int]](),
            0,
        )  # of the entry that is read; its function, 0 = none yet

    def _parse(self, in_: fp_window) -> bool:
        for line in BytesIO(ffi.buffer(in_.p + in_.pos, in_.n - in_.pos)):
            if not line.endswith(b"\n") and not in_.eof:
                return False
            self._place, self._line = in_.base + in_.pos, self._line + 1
            if line.endswith(b"\n"):
                self._read_line(line.rstrip())
            elif self._in != _NEITHER or line.strip():
                self._bad("the file ends inside a line", lib.FP_E_TRUNCATED)
            in_.pos += len(line)
        if in_.eof and self._in == _IN_FLAT and not self._is_due and not self._is_cut:
            self.log.warn(REPORTED["open-flat-profile"], file=self.source.name)
        if in_.eof and (self._in == _IN_GRAPH or self._is_due or not self._tables):
            self._place, self._line = in_.base + in_.pos, self._line + 1
            self._is_cut = True
            self._bad(
                "the file ends inside the call graph" if self._tables else "there is no table", lib.FP_E_TRUNCATED
            )
        return bool(in_.eof)

    def _bad(self, what: str, code: int = lib.FP_E_MALFORMED) -> None:
        if not self._lenient:
            raise self.damaged(what, self._place, code, self._line)
        self._n_bad += 1

    def _read_line(self, line: bytes) -> None:
        if _FLAT_TITLE.match(line) or _GRAPH_TITLE.match(line):
            self._in, self._at = (_IN_FLAT if line[:1] == b" " else _IN_GRAPH), 0
            self._tables, self._is_due = self._tables + 1, self._is_due and self._in != _IN_GRAPH
        elif not line or self._in == _NEITHER:
            self._in, self._is_due = _NEITHER, self._is_due or bool(_HEADING.match(line))
        elif self._in == _IN_FLAT:
            if not (found := _FLAT.fullmatch(line)):
                return self._bad(f"the line is {line[:80].decode('utf-8', 'replace')!r}, expected times and a name")
            time = self._flat[found[7]] + _ns(found[3])
            if time > INT64:
                return self._bad("the sum of a function's times exceeds 2^63 - 1")
            self._flat[found[7]] = time
            if found[4]:
                self._called[found[7]] = None
        else:
            self._read_entry(line)
        return None

    def _read_entry(self, line: bytes) -> None:
        if line.startswith(b"-----"):
            self._at = 0
            self._callers.clear()
        elif found := _FUNCTION.fullmatch(line):
            self._at = int(found[5])
            if re.fullmatch(rb"<cycle \d+ as a whole>", found[4]):
                self._at = -1  # its members have entries of their own
                return
            self._names[self._at], self._own[self._at] = found[4], _ns(found[2])
            for caller, calls, time in self._callers:
                self._arcs[caller, self._at] = calls, time
        elif found := _CALL.fullmatch(line):
            other = int(found[5])
            self._names.setdefault(other, found[4])
            call = min(int(found[3]), (1 << 63) - 1), _ns(found[1]) + _ns(found[2])
            if not self._at:
                self._callers.append((other, *call))
            elif self._at > 0:
                self._arcs[self._at, other] = call
        elif line.strip() != b"<spontaneous>":
            self._bad(f"the line is {line[:80].decode('utf-8', 'replace')!r}, expected an entry of the call graph")

    def _made(self) -> Iterator[tuple[int, ...]]:
        """Of each function its own time, by the flat profile if it is not in the call graph, then its calls."""
        found = {*self._names.values()}
        self._alone = sum(name not in found for name in self._called)
        for name, time in self._flat.items():
            if time and name not in found:
                yield int(lib.FP_COST), self._function(name)[0], 0, *self._function(name)[1:], 0, time
        of: dict[int, list[int]] = {}
        for caller, callee in self._arcs:
            of.setdefault(caller, []).append(callee)
        for index, name in self._names.items():
            function, file, line = self._function(name)
            if own := self._own.get(index, self._flat[name]):
                yield int(lib.FP_COST), function, 0, file, line, 0, own
            for callee in of.get(index, ()):
                calls, time = self._arcs[index, callee]
                yield int(lib.FP_CALL), function, self._function(self._names[callee])[0], file, line, calls, time

    def _function(self, name: bytes) -> tuple[int, int, int]:
        """The function, its file and its line."""
        text, file, line = _cut_place(name)
        return self.model.function(text, file), self.model.intern(file), line

    def finish(self) -> None:
        self.log.facts |= {"functions": len({*self._names.values(), *self._flat}), "arcs": len(self._arcs)}
        self.log.count_all(REPORTED, {"unreadable-lines": self._n_bad - self._is_cut, "unreadable-rest": self._is_cut,
                                      "calls-without-callers": self._alone})  # fmt: skip
