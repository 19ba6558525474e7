"""Hidden functions of a graph: their costs and calls become those of their callers.

    main -> f 30, g -> f 10, f -> h 16, f self 24     without f     main -> h 12, main self 18, g -> h 4, g self 6

Exact for functions with one caller.  Otherwise the costs are divided in proportion to the inclusive costs of the arcs
into the function, each value type by its own, or by their calls if these are 0: an estimate, which is stated.  What a
function costs beyond its arcs has no caller, so its self cost is that of `[hidden]`.
Whole numbers are divided without losing a unit.

Memory: the distinct arcs from and to hidden functions.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import lib
from fastprof.core._typing import Any
from fastprof.core.chosen_value import own_calls, recorded_inclusive
from fastprof.core.engine import CAPACITY
from fastprof.core.errors import FastprofError, inputs_of, printable
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, empty
from fastprof.core.options import INT64

MOST = 1 << 22  # arcs made in a part
_NOWHERE = (0, 0, 0, 0)

Position = tuple[int, int, int, int]  # file, line, address, basic block
Caller = tuple[int, Position]


class _Arc:
    """Calls and inclusive costs."""

    __slots__ = ("count", "values")

    def __init__(self, n_values: int) -> None:
        self.count, self.values = 0, [0] * n_values

    def add(self, count: int, values: list[int]) -> None:
        self.count += count
        for k, value in enumerate(values):
            self.values[k] += value


class HiddenArcs:
    """Takes the rows of hidden functions, and gives those of their callers at the end of each part."""

    def __init__(self, model: Model, c: Any) -> None:
        """`c`: struct fp_transform."""
        self._model, self._c = model, c
        self._part, self._n_values = -1, 0
        self._divided, self._made = set[int](), 0
        self._clear()

    def _clear(self) -> None:
        self._own: dict[int, list[int]] = {}  # by hidden function
        self._into: dict[int, dict[Caller, _Arc]] = {}
        self._from: dict[int, dict[int, _Arc]] = {}
        self._costs: dict[Caller, list[int]] = {}  # of functions that are shown
        self._calls: dict[tuple[int, Position, int], _Arc] = {}

    def take(self, batch: Batch) -> None:
        """Take the rows of hidden functions from a batch, and drop those that are not shown."""
        c, n = self._c, len(batch)
        marks = bytes(c.marks[0:n]) if n else b""
        at = marks.find(lib.FP_TRANSFORM_HELD)
        if at >= 0:
            self._begin(batch)
        while at >= 0:
            self._row(batch.c, at)
            at = marks.find(lib.FP_TRANSFORM_HELD, at + 1)
        lib.fp_transform_keep(c, batch.c)

    def _begin(self, batch: Batch) -> None:
        self._n_values = int(batch.c.n_values)
        self._positions = self._model.parts[batch.part].positions

    def _row(self, c: Any, i: int) -> None:
        values = [int(c.values[k * c.cap + i]) for k in range(self._n_values)]
        function = int(c.function[i])
        if c.kind[i] == lib.FP_COST:
            _add(self._own, function, values)
            return
        address = int(c.address[i]) if "instr" in self._positions else 0
        bb = int(c.bb[i]) if "bb" in self._positions else 0
        position = int(c.file[i]), int(c.line[i]), address, bb
        self._arc((function, position), int(c.callee[i]), int(c.count[i]), values)

    def _is_hidden(self, function: int) -> bool:
        return bool(lib.fp_transform_hides(self._c, function, 0))

    def _arc(self, caller: Caller, callee: int, count: int, values: list[int]) -> None:
        """Add an arc to those into and from hidden functions, or to those shown."""
        function, position = caller
        from_hidden, to_hidden = self._is_hidden(function), self._is_hidden(callee)
        if (from_hidden and function == callee) or (
            not from_hidden and not to_hidden and lib.fp_transform_merges(self._c, function, callee)
        ):
            return
        if from_hidden:
            caller = function, _NOWHERE
            self._from.setdefault(function, {}).setdefault(callee, _Arc(len(values))).add(count, values)
        if to_hidden:
            self._into.setdefault(callee, {}).setdefault(caller, _Arc(len(values))).add(count, values)
        if not from_hidden and not to_hidden:
            self._calls.setdefault((function, position, callee), _Arc(len(values))).add(count, values)

    # ---- the end of a part

    def ended(self, part: int) -> Iterator[Batch]:
        """The rows that the callers of the previous part's hidden functions get, if `part` is another one."""
        if part == self._part:
            return
        if self._part >= 0 and (self._own or self._into or self._from):
            types = self._model.parts[self._part].value_types
            self._made = 0
            for function in sorted({*self._own, *self._into, *self._from}):
                self._remove(function, types)
            yield from self._batches()
            self._clear()
        self._part = part

    def _remove(self, function: int, types: Any) -> None:
        callers, callees = self._into.pop(function, {}), self._from.pop(function, {})
        for other, _ in callers:
            self._from.get(other, {}).pop(function, None)
        for callee in callees:
            self._into.get(callee, {}).pop((function, _NOWHERE), None)
        n = self._n_values
        own, counts = self._own.pop(function, [0] * n), [arc.count for arc in callers.values()]
        self._made += (len(callers) + 1) * len(callees)
        if self._made > MOST:
            name = printable(self._model.get_function(function).name.decode("utf-8", "backslashreplace"))
            raise FastprofError(
                f"{inputs_of(self._model)}hiding {name:.80}, with {len(callers):,} callers and {len(callees):,}"
                f" callees, would make more than {MOST:,} call arcs"
            )
        ways: list[list[int]] = []  # by value type: the weights of callers, and of none
        for k in range(n):
            recorded = recorded_inclusive(types, k)
            column = recorded if recorded >= 0 else k
            into = [max(0, arc.values[column]) for arc in callers.values()]
            whole = own[column] if recorded >= 0 else own[k] + sum(arc.values[k] for arc in callees.values())
            ways.append([*into, max(0, whole - sum(into))])
            if not any(ways[-1]):
                ways[-1] = [*(counts if any(counts) else [1] * len(counts)), 0 if counts else 1]
        is_shared = len({other for other, _ in callers}) + any(way[-1] for way in ways) > 1
        if is_shared and (any(own) or callees):
            self._divided.add(function)
        self._share(function, callers, callees, own, ways, types)

    def _share(
        self,
        function: int,
        callers: dict[Caller, _Arc],
        callees: dict[int, _Arc],
        own: list[int],
        ways: list[list[int]],
        types: Any,
    ) -> None:
        """Give a function's costs and calls to its callers, the last of `ways` being none."""
        n = self._n_values
        kept = [k for k in range(n) if not _is_of_function(types, k)]
        own = [own[k] if k in kept else 0 for k in range(n)]
        parts = [_divided(own[k], ways[k]) for k in range(n)]
        nobody: Caller = int(self._c.hidden), _NOWHERE
        for i, caller in enumerate([*callers, nobody]):
            mine = [parts[k][i] for k in range(n)]
            if not any(mine):
                continue
            if self._is_hidden(caller[0]) and caller is not nobody:
                _add(self._own, caller[0], mine)
            else:
                _add(self._costs, caller, mine)
        counts = [arc.count for arc in callers.values()]
        for callee, arc in callees.items():
            shares = [_divided(arc.values[k], ways[k]) for k in range(n)]
            calls = _divided(arc.count, counts if any(counts) else [1] * len(counts)) if counts else []
            for i, caller in enumerate(callers):
                self._arc(caller, callee, calls[i], [shares[k][i] for k in range(n)])

    def _batches(self) -> Iterator[Batch]:
        rows: list[tuple[int, int, Position, int, int, list[int]]] = [
            (lib.FP_COST, function, position, 0, 0, values) for (function, position), values in self._costs.items()
        ]
        rows += [
            (lib.FP_CALL, function, position, callee, arc.count, arc.values)
            for (function, position, callee), arc in self._calls.items()
        ]
        capacity = CAPACITY["graph"]
        out = Batch("graph", capacity, self._n_values)
        for first in range(0, len(rows), capacity):
            c, some = out.c, rows[first : first + capacity]
            c.part, c.n, c.n_values = self._part, len(some), self._n_values
            for i, (kind, function, (file, line, address, bb), callee, count, values) in enumerate(some):
                if count > INT64 or any(abs(value) > INT64 for value in values):
                    raise FastprofError(f"{inputs_of(self._model)}the costs of hidden functions exceed 2^63 - 1")
                c.kind[i], c.function[i], c.callee[i], c.count[i] = kind, function, callee, count
                c.file[i], c.line[i], c.address[i], c.bb[i] = file, line, address, bb
                c.target_file[i] = c.target_line[i] = c.target_address[i] = c.target_bb[i] = c.count2[i] = 0
                for k, value in enumerate(values):
                    c.values[k * c.cap + i] = value
            yield out
            empty(out)

    def log_to(self, log: Log) -> None:
        if self._divided:
            log.warn(REPORTED["divided-costs"], inputs=inputs_of(self._model), n=f"{len(self._divided):,}")


def _is_of_function(types: Any, k: int) -> bool:
    """Whether a column of cost rows has what only their own function has: its calls, its inclusive cost."""
    return k == own_calls(types) or any(recorded_inclusive(types, other) == k != other for other in range(len(types)))


def _add(to: dict[Any, list[int]], key: Any, values: list[int]) -> None:
    known = to.setdefault(key, [0] * len(values))
    for k, value in enumerate(values):
        known[k] += value


def _divided(value: int, ways: list[int]) -> list[int]:
    """A whole number in proportion to weights, of which some are above 0."""
    found, so_far, given, whole = list[int](), 0, 0, sum(ways)
    for way in ways:
        so_far += way
        found.append(value * so_far // whole - given)
        given += found[-1]
    return found
