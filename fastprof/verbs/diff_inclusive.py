"""Inclusive costs of the functions of two profiles for `diff`, the same as in `top`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

from fastprof import bridges, plan
from fastprof.core._c import ffi
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.value import Column
from fastprof.verbs.top_costs import Costs

# object, file and name of a function (ids in the model), which identify it on both sides
_Key = tuple[int, int, int]


class Inclusive:
    """Adds up inclusive costs in one value type while rows of all runs pass through; the first `n_old` runs are old.

    Memory grows with functions and the arcs of graphs.
    """

    def __init__(self, model: Model, options: Options, log: Log, n_old: int, n_runs: int) -> None:
        self._model, self._log = model, log
        self._n_old = n_old
        self._value = Column(options[bridges.VALUE], bridges.VALUE.flag)
        self._costs = [
            Costs(model, "function", self._value, None, arcs=False, cycles=True, inclusive_only=True)
            for _ in range(n_runs)
        ]
        self._sums: list[dict[_Key, int]] = []
        self._counterparts: Mapping[int, int] = {}
        self._weights: list[Fraction] = []
        self._known: list[_Key] = []

    def rows(self, pipeline: plan.Pipeline, compared: Callable[[Iterator[Batch]], Iterator[Batch]]) -> Iterator[Batch]:
        """The rows of a pipeline as a graph, with at least one row for each function.  `compared`: as for Costs."""
        rows = self._costs[pipeline.side].through(pipeline, self._log, compared)
        return compared(rows) if pipeline.view == "timeline" else rows

    def pair(self, functions: Mapping[int, int]) -> None:
        """Give functions of the old side the names of their counterparts."""
        self._counterparts = functions

    def end(self, value: str, weights: Sequence[Fraction]) -> Inclusive | None:
        """Compute the costs of both sides from the `weights` of the runs, after the last row.

        None: inclusive costs are unknown in the value type of this name.
        """
        if self._value.type is None or self._value.type.name != value:
            return None
        if not all(costs.inclusive_known for costs in self._costs):
            return None
        for costs in self._costs:
            costs.end()
        self._weights = [*weights]
        keys = self._keys()
        counterparts = {keys[old]: keys[new] for old, new in self._counterparts.items()}
        for run, costs in enumerate(self._costs):
            sums: dict[_Key, int] = {}
            column = costs.column("inclusive")
            for function, seen in enumerate(costs.seen):
                if seen:
                    key = keys[function]
                    if run < self._n_old:
                        key = counterparts.get(key, key)
                    sums[key] = sums.get(key, 0) + column[function]
            self._sums.append(sums)
        return self

    def of(self, batch: Batch) -> list[list[int]]:
        """The old and the new cost of the function of each row."""
        runs = self.runs_of(batch)
        if len(runs) == 2 and self._weights == [1, 1]:
            return runs
        weighted = [[cost * weight for cost in of] for of, weight in zip(runs, self._weights, strict=True)]
        sides = weighted[: self._n_old], weighted[self._n_old :]
        return [[round(sum(costs)) for costs in zip(*side, strict=True)] for side in sides]

    def runs_of(self, batch: Batch) -> list[list[int]]:
        """The cost of the function of each row in each run, without weights."""
        keys = [*map(self._keys().__getitem__, batch["function"])]
        return [[sums.get(key, 0) for key in keys] for sums in self._sums]

    def _keys(self) -> list[_Key]:
        """By function of the model: the first columns of its row."""
        table = self._model.c.functions
        if len(self._known) < table.n:
            words = memoryview(ffi.buffer(table.words, 4 * table.width * table.n)).cast("I")
            self._known = [*zip(*(words[k :: table.width] for k in range(3)), strict=True)]
        return self._known
