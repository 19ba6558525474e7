"""Functions by values of a label, for `top --matrix`: which host spends its time differently from all others.

               web1       web2       web3       median    outlier
    f        90  9 %   600 40 %    80  8 %        9 %     web2  +31
    g       910 91 %   900 60 %   920 92 %       91 %     web2  -31

Shares are of the column's total, so columns of unequal totals compare.  Rows and columns that differ most from the
medians come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fastprof.core._typing import NamedTuple
from fastprof.core.model import Model
from fastprof.core.unknown_names import known, text_of


class Column(NamedTuple):
    """A value of the label."""

    name: str
    total: int
    difference: float  # half the sum of all differences of its shares from the medians: 0 to about 1


class Row(NamedTuple):
    """A function and its self cost in each column."""

    name: str
    file: str
    object: str
    median: float  # of its shares of the columns' totals
    outlier: str  # the column that differs most from the median
    share: float  # there
    difference: float  # of that share from the median
    costs: tuple[int, ...]


class Matrix(NamedTuple):
    """Costs of functions by values of label `key`.  `rows` are the first of `n_rows`."""

    key: str
    columns: list[Column]
    rows: list[Row]
    n_rows: int

    def shares(self, row: Row) -> list[float]:
        """The shares of a row's costs of the columns' totals."""
        return [cost / column.total for cost, column in zip(row.costs, self.columns, strict=True)]


def matrix_of(
    key: str,
    model: Model,
    cells: Iterator[tuple[str, int, int]],
    matches: Callable[[str], bool],
    least: float,
    n: int,
) -> Matrix:
    """The first n rows; 0: all.  `cells`: value of the label, function, self cost.  Values without cost are left out.

    Rows are those whose name `matches` and whose largest difference is at least `least`.  Memory grows with cells.
    """
    costs: dict[int, dict[str, int]] = {}  # by function and column, without zeros
    totals: dict[str, int] = {}
    for column, function, cost in cells:
        totals[column] = totals.get(column, 0) + cost
        if cost:
            of = costs.setdefault(function, {})
            of[column] = of.get(column, 0) + cost
    totals = {column: total for column, total in totals.items() if total}
    names = sorted(totals)
    moved = dict.fromkeys(totals, 0.0)
    everywhere = 0.0  # to add to each of `moved`
    found: list[tuple[float, float, str, int]] = []
    for function, of in costs.items():
        shares = {column: cost / totals[column] for column, cost in of.items() if column in totals}
        median = _median([*shares.values()], len(totals))
        rest = next((column for column in names if column not in shares), None)  # the first with share 0
        for column, share in shares.items():
            moved[column] += abs(share - median) - abs(median)
        if rest is not None:
            shares[rest] = 0.0
        if not shares:
            continue
        everywhere += abs(median)
        outlier = min(shares, key=lambda column: (-abs(shares[column] - median), column))
        found.append((shares[outlier] - median, median, outlier, function))
    columns = [Column(name, totals[name], (moved[name] + everywhere) / 2) for name in totals]
    columns.sort(key=lambda column: (-round(column.difference, 12), column.name))
    named = [(_names(model, one[-1]), one) for one in found if abs(one[0]) >= least]
    named = [(names, one) for names, one in named if matches(names[0])]
    named.sort(key=lambda one: (-round(abs(one[1][0]), 12), one[0]))
    rows = [_row(names, one, costs[one[-1]], totals, columns) for names, one in named[: n or None]]
    return Matrix(key, columns, rows, len(named))


def _names(model: Model, function: int) -> tuple[str, str, str]:
    """Name, file and object."""
    f = model.get_function(function)
    return text_of(f.name), known(f.file), known(f.object)


def _row(
    names: tuple[str, str, str],
    found: tuple[float, float, str, int],
    costs: dict[str, int],
    totals: dict[str, int],
    columns: Sequence[Column],
) -> Row:
    difference, median, outlier, _ = found
    share = costs.get(outlier, 0) / totals[outlier]
    in_order = tuple(costs.get(column.name, 0) for column in columns)
    return Row(*names, median, outlier, share, difference, in_order)


def _median(values: list[float], n: int) -> float:
    """The median of these values and zeros, n in all."""
    values.sort()
    n_below = sum(value < 0 for value in values)
    n_zeros = n - len(values)

    def at(i: int) -> float:
        if i < n_below:
            return values[i]
        return 0.0 if i < n_below + n_zeros else values[i - n_zeros]

    return (at((n - 1) // 2) + at(n // 2)) / 2
