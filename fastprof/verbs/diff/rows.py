"""Selects the rows to show: the largest differences and, for several runs, those that exceed the noise."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import inf
from operator import sub

from fastprof.core._c import lib
from fastprof.core._typing import NamedTuple
from fastprof.core.model import Batch
from fastprof.verbs.diff.difference import Change, Runs
from fastprof.verbs.diff.significance import least_significant


class RowOptions(NamedTuple):
    """The options of `diff` that do not apply to its sides."""

    by: str
    by_name: bool  # functions are paired across builds
    n: int | None
    sort: str
    threshold: float
    alpha: float  # significance of several runs
    watched: frozenset[str] = frozenset()  # names of rows checked by the gate


class Rows:
    """Collects rows: at most `options.n`, unless they are `tested`, which happens after the last one."""

    def __init__(self, options: RowOptions, least_costs: Sequence[float], *, tested: bool) -> None:
        """`least_costs`: thresholds for old and new; rows below both do not count."""
        self._options, self._least_costs, self._tested = options, least_costs, tested
        self._most = None if tested else options.n
        self._heap: list[tuple[float, int, Change]] = []  # size of the difference, position, row
        self._number = 0
        self._n_changed = self._n_tested = 0
        self._n_noise = 0
        self._ps: list[float] = []

    def sizes(self, batch: Batch, sides: Sequence[Sequence[int]]) -> list[float]:
        """The size of each row's difference; -1 for a row that does not count."""
        old, new = sides
        in_percent = self._options.sort == "percent"
        if in_percent:
            sizes = [size_of(x, y, in_percent) for x, y in zip(old, new, strict=True)]
        else:
            sizes = [*map(abs, map(sub, new, old))]
        if any(self._least_costs):
            for i, (x, y) in enumerate(zip(old, new, strict=True)):
                if abs(x) < self._least_costs[0] and abs(y) < self._least_costs[1]:
                    sizes[i] = -1
        if self._options.by == "arc":
            sizes = [size if kind == lib.FP_CALL else -1 for size, kind in zip(sizes, batch["kind"], strict=True)]
        self._n_changed += len([*filter(None, sizes)]) - sizes.count(-1)
        return sizes

    def test(self, sizes: list[float], runs: Sequence[Runs | None]) -> None:
        """Drop rows whose difference is noise regardless of other rows."""
        for i, size in enumerate(sizes if self._tested else ()):
            if size > 0:
                its = runs[i]
                p = its.p or 0 if its else 0
                self._n_tested += 1
                if p > self._options.alpha:
                    sizes[i] = -1
                else:
                    self._ps.append(p)

    @property
    def _least(self) -> float:
        return self._heap[0][0] if self._most is not None and len(self._heap) == self._most and self._heap else -1

    def candidates(self, sizes: list[float]) -> list[int]:
        """The indexes of rows that may be shown."""
        least = self._least
        if self._most == 0 or max(sizes, default=-1) <= least:
            return []
        return [i for i, size in enumerate(sizes) if size > least]

    def add(self, size: float, change: Callable[[], Change]) -> None:
        if size <= self._least:
            return
        self._number -= 1  # of equal differences the first are kept
        row = size, self._number, change()
        if self._most is None or len(self._heap) < self._most:
            heapq.heappush(self._heap, row)
        else:
            heapq.heapreplace(self._heap, row)

    def end(self) -> tuple[list[Change], int, int]:
        """The rows (unsorted), the number that differ and, of several runs, the number that differ by chance."""
        if not self._tested:
            return [row for _, _, row in self._heap], self._n_changed, 0
        least = least_significant(self._ps, self._n_tested, self._options.alpha)
        kept = [row for size, _, row in self._heap if size > 0 and row.runs and (row.runs.p or 0) <= least]
        return kept, len(kept), self._n_changed - len(kept)


def size_of(old: int, new: int, in_percent: bool) -> float:
    """The size of a difference.  In percent, new rows sort before all others."""
    size = abs(new - old)
    return size if not in_percent or not size else size / abs(old) if old else inf
