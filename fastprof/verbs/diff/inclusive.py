"""Inclusive costs of the functions of two profiles for `diff`, the same as in `top`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fastprof import bridges, plan
from fastprof.bridges.rows.coarse import by_function
from fastprof.bridges.rows.pair import Pairs
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.chosen_value import ChosenValue
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.verbs.function_costs import FunctionCosts

if TYPE_CHECKING:
    from fractions import Fraction


class Inclusive:
    """Adds up inclusive costs in one value type while rows of all runs pass through; the first `n_old` runs are old.

    Memory grows with functions and the arcs of graphs.
    """

    def __init__(self, model: Model, options: Options, log: Log, n_old: int, n_runs: int) -> None:
        self._model, self._log = model, log
        self._n_old = n_old
        first = ChosenValue(options[bridges.VALUE], bridges.VALUE.flag)
        # a run whose costs are 0 in the default chooses another by itself
        self._values = [first, *(ChosenValue(first.name, bridges.VALUE.flag, like=first) for _ in range(1, n_runs))]
        self._costs = [
            FunctionCosts(model, "function", value, None, arcs=False, cycles=True, inclusive_only=True)
            for value in self._values
        ]
        self._sums: list[memoryview] = []  # by run, then by function
        self._pairs: Pairs | None = None
        self._weights: Sequence[Fraction | int] = []

    def rows(self, pipeline: plan.Pipeline, compared: Callable[[Iterator[Batch]], Iterator[Batch]]) -> Iterator[Batch]:
        """The rows of a pipeline as a graph, with at least one row for each function.
        `compared`: see FunctionCosts.through."""
        rows = self._costs[pipeline.side].through(pipeline, self._log, compared)
        return compared(rows) if pipeline.view == "timeline" else rows

    def pair(self, pairs: Pairs) -> None:
        """Count functions of the old side as their counterparts."""
        self._pairs = pairs

    def end(self, value: str, weights: Sequence[Fraction | int]) -> Inclusive | None:
        """Compute the costs of both sides from the `weights` of the runs, after the last row.

        None: inclusive costs are unknown in the value type of this name.
        """
        known = [of.type is not None and of.type.name == value for of in self._values]
        if not any(known):
            return None
        if not all(costs.inclusive_known for costs in self._costs):
            return None
        for costs in self._costs:
            costs.end()
        self._weights = weights
        for run, costs in enumerate(self._costs):
            functions = by_function(costs.seen, self._model)
            if self._pairs is not None and run < self._n_old:
                self._pairs.replace(functions)
            self._sums.append(costs.regrouped(functions) if known[run] else memoryview(b"").cast("q"))
        return self

    def of(self, functions: Iterable[int]) -> list[list[int]]:
        """The old and the new cost of each function."""
        runs = self.runs_of(functions)
        if len(runs) == 2 and self._weights == [1, 1]:
            return runs
        weighted = [[cost * weight for cost in of] for of, weight in zip(runs, self._weights, strict=True)]
        sides = weighted[: self._n_old], weighted[self._n_old :]
        return [[round(sum(costs)) for costs in zip(*side, strict=True)] for side in sides]

    def runs_of(self, functions: Iterable[int]) -> list[list[int]]:
        """The cost of each function in each run, without weights."""
        return [[sums[id_] if id_ < len(sums) else 0 for id_ in functions] for sums in self._sums]
