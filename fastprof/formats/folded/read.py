"""Reads folded stacks (_lexer.pyx)."""

from __future__ import annotations

from fastprof.core._c import ffi
from fastprof.core._typing import TYPE_CHECKING, fp_batch, fp_err, fp_window
from fastprof.core.c_memory import address_of
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.core.reported import coded
from fastprof.core.source import WINDOW
from fastprof.formats.folded import COUNTS, DECIMALS, SUFFIXES, first_stacks
from fastprof.formats.folded._lexer import Lexer
from fastprof.formats.folded.inclusive import SelfCosts, may_include_callees
from fastprof.formats.folded.reported import REPORTED

if TYPE_CHECKING:
    from array import array


_VALUE_TYPES = {
    1: [ValueType("samples", "count")],
    2: [ValueType("before", "count"), ValueType("after", "count")],
}


def _is_count(word: bytes) -> bool:
    whole, _, decimals = word.partition(b".")
    return whole.isdigit() and (not decimals or decimals.isdigit())


def _has_two_counts(line: bytes) -> bool:
    before, _, last = line.replace(b"\t", b" ").rpartition(b" ")
    _, blank, first = before.rstrip(b" ").rpartition(b" ")
    return bool(blank) and _is_count(first) and _is_count(last)


class FoldedReader(NativeReader):
    """Stacks of names.  Loses comments, which are counted."""

    format = "folded"
    view = "stacks"
    renews_stacks = True
    remarks = frozenset({"comments"})

    def start(self) -> None:
        n_counts = self.options[COUNTS]
        if n_counts is None:
            self.source.extend_head()
            lines = first_stacks(self.source.head)
            n_counts = 2 if lines and all(map(_has_two_counts, lines)) else 1
            if n_counts == 2:
                self.log.warn(REPORTED["two-counts"], file=self.source.name)
        self._n_counts = n_counts
        unknown = self.model.intern("[unknown]")
        self._lexer = Lexer(
            address_of(self.model.c),
            self.options[LENIENT],
            n_counts,
            self.options[DECIMALS],
            unknown,
            self.options[SUFFIXES],
        )
        self._selves = (
            self._self_costs() if n_counts == 1 and may_include_callees(first_stacks(self.source.head)) else None
        )
        value_types = [ValueType("ticks", "count")] if self._selves else _VALUE_TYPES[n_counts]
        self.part = self.model.add_part(Part(value_types=list(value_types)))

    def _self_costs(self) -> array[int] | None:
        """The self costs of all lines, if the values are times that include callees."""
        self.source.spool()
        costs = SelfCosts()
        offset, rest = 0, b""
        while costs.is_flame and (data := self.source.read_at(offset, WINDOW)):
            offset += len(data)
            *lines, rest = (rest + data).split(b"\n")
            all(map(costs.add, lines))  # up to the first that is not llvm-xray's
        if costs.is_flame and rest:
            costs.add(rest)
        costs.end()
        if costs.is_unclear:
            self.log.warn(REPORTED["maybe-inclusive"], file=self.source.name)
        return costs.values if costs.is_time else None

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        n, done = int(batch.n), self._lexer.counts["rows"]
        status = self._lexer.feed(address_of(in_), address_of(batch), address_of(err))
        if self._selves:
            selves = self._selves[done : self._lexer.counts["rows"]]
            ffi.memmove(batch.values + n, selves, len(selves) * selves.itemsize)
        return status

    def finish(self) -> None:
        counts, log, name = self._lexer.counts, self.log, self.source.name
        found = coded(REPORTED, counts)
        if self._selves:
            found |= {"trailing-empty-frames": 0, "inclusive-values": len(self._selves)}
        log.count_all(REPORTED, found)
        if counts["rounded_counts"]:
            log.warn(REPORTED["fractions"], file=name, line=counts["first_rounded"])
        if counts["open_end"]:
            log.warn(REPORTED["maybe-cut-off"], file=name)
        log.facts["counts_of_a_line"] = self._n_counts
        log.facts["lines_of_stacks"] = counts["rows"]
