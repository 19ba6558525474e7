"""The result of `diff`, as plain objects."""

from __future__ import annotations

import os

from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.log import Log

if TYPE_CHECKING:
    from typing import NamedTuple as Record

    from fastprof.verbs.diff.overlap import Overlap
else:
    from fastprof.core._typing import Record


class Runs(NamedTuple):
    """The scaled costs of several profiles a side, and the probability that they differ this much by chance."""

    old: tuple[float, ...]
    new: tuple[float, ...]
    p: float | None  # of Welch's test; None: a side has a single profile

    @staticmethod
    def spread(costs: tuple[float, ...]) -> float | None:
        """The standard deviation in percent of the mean."""
        from statistics import fmean, stdev

        mean = fmean(costs)
        return 100 * stdev(costs) / abs(mean) if len(costs) > 1 and mean else None


class Value(NamedTuple):
    """A value type and the total self cost of each side; of several profiles the mean."""

    name: str
    unit: str
    old: int
    new: int


class Change(NamedTuple):
    """A function (file, object, line of a file, or call) and its costs, one for each value."""

    name: str
    file: str
    object: str
    line: int  # of a function its first one; 0: unknown
    callee: str  # by arc, else ""
    old: tuple[int, ...]
    new: tuple[int, ...]
    inclusive: tuple[int, int] | None = None  # by function: old and new, in values[shown]; None: unknown
    runs: Runs | None = None  # with several profiles a side: the costs by which the row is sorted
    label: str = ""  # by label:KEY,function: the values of the labels


class Failure(NamedTuple):
    """A total or a row that grew by more than `fail_over` allows."""

    name: str
    limit: float  # percent
    old: int
    new: int


class Difference(Record):
    """The result of `diff`.  `rows` are sorted by the difference in values[shown], largest first."""

    old: str
    new: str
    by: str
    values: list[Value]
    shown: int
    rows: list[Change]
    n_changed: int  # number of rows that differ; `rows` may have only the first
    log: Log
    sort: str = "self"
    runs: tuple[Runs, ...] = ()  # of several profiles: the totals of `values`
    n_noise: int = 0  # number of rows that differ by chance, not in `rows`
    failed: tuple[Failure, ...] = ()  # of `fail_over`
    overlap: Overlap | None = None  # with `stats`

    def changed(self) -> list[Change]:
        """The rows that differ in the cost by which they are sorted."""
        return [row for row in self.rows if self.sides(row)[0] != self.sides(row)[1]]

    def sides(self, row: Change) -> tuple[int, int]:
        """The old and the new cost by which a row is sorted."""
        if self.sort == "inclusive":
            return row.inclusive or (0, 0)
        return row.old[self.shown], row.new[self.shown]

    def _repr_html_(self) -> str:
        """For notebooks: the changed rows, with figures as `diff` prints them, exact ones on hovering."""
        from fastprof.core.figures import of_value
        from fastprof.core.html import figures, notes, table

        k = self.shown
        costs = "old", "new", "difference", "inclusive old", "inclusive new"
        head = *costs, "p", "label", "function", "callee", "file", "line", "object"
        if not self.values:
            return table(head[:0], (), f"{self.old} and {self.new}: no values") + notes(self.log)
        cells = [
            (
                row.old[k],
                row.new[k],
                row.new[k] - row.old[k],
                *(row.inclusive or (None, None)),
                row.runs.p if row.runs else None,
                row.label,
                row.name,
                row.callee,
                os.path.basename(row.file),
                row.line or None,
                os.path.basename(row.object),
            )
            for row in self.changed()
        ]
        kept = [i for i, name in enumerate(head) if name in head[:3] or {row[i] for row in cells} - {None, ""}]
        value = self.values[k]
        whole = max(abs(value.old), abs(value.new))
        scaled = [figures([row[i] for row in cells], value.unit or value.name, whole) for i in range(5)]
        titles = [*(f"{name} {unit}".strip() for name, (unit, _) in zip(costs, scaled, strict=True)), *head[5:]]
        cells = [(*(column[at] for _, column in scaled), *row[5:]) for at, row in enumerate(cells)]
        old, new = os.path.basename(self.old), os.path.basename(self.new)
        names = f"{old} → {new}" if old != new else f"{self.old} → {self.new}"
        caption = f"{names}: {of_value([value.old, value.new], value.name, value.unit)}"
        if not cells:
            return table((), (), f"{caption}, no function differs") + notes(self.log)
        return table([titles[i] for i in kept], ([row[i] for i in kept] for row in cells), caption) + notes(self.log)

    def columns(self, rows: list[Change] | None = None) -> dict[str, list[Any]]:
        """The rows as columns, for data frames: each value, old and new, and what identifies a row."""
        rows = self.rows if rows is None else rows
        found: dict[str, list[Any]] = {}
        for k, value in enumerate(self.values):
            found[f"{value.name} old"] = [row.old[k] for row in rows]
            found[f"{value.name} new"] = [row.new[k] for row in rows]
        for i, side in enumerate(("old", "new")):
            found[f"inclusive {side}"] = [row.inclusive[i] if row.inclusive else None for row in rows]
        found["p"] = [row.runs.p if row.runs else None for row in rows]
        names = ("label", "name", "callee", "file", "line", "object")
        return found | {name: [getattr(row, name) for row in rows] for name in names}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """`columns()` for readers of Arrow streams, with units."""
        from fastprof.core.arrow_column import stream_of

        units = {f"{value.name} {side}": value.unit for value in self.values for side in ("old", "new")}
        units |= {f"inclusive {side}": self.values[self.shown].unit for side in ("old", "new") if self.values}
        return stream_of(self.columns(), units)

    def __str__(self) -> str:
        """The table of `fastprof diff`."""
        from fastprof.core.printed import printed

        return printed("cli.diff:text", self)

    def grown(self, percent: float) -> list[Value]:
        """The values whose totals grew by more than `percent`; from 0 any growth is more."""
        return [value for value in self.values if exceeds(value.old, value.new, percent)]


def growth(old: int, new: int) -> float:
    """The growth in percent of `old`, which is not 0."""
    return 100 * (new - old) / abs(old)


def exceeds(old: int, new: int, percent: float) -> bool:
    """Whether a cost grew by more than `percent`; from 0 any growth is more."""
    return new > old and (not old or growth(old, new) > percent)
