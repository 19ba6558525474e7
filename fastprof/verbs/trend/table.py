"""The table `series`: a row for each row of a trend and point.

name  file  line  object  label  place  point       value   inclusive  profiles  samples  total
f     a.c                        0      2026-03-01  0.0210  0.0530     20        2000000  20000000000
f     a.c                        1      2026-03-02  0.0211  0.0531     20        2000000  20000000000
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, repeat

from fastprof.bridges.rows.as_table import CAPACITY, Rows
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.arrow_column import Decoder
from fastprof.verbs.cells import Columns

if TYPE_CHECKING:
    from fastprof.verbs.trend.result import Line, Point


class SeriesTable:
    """The table for readers of Arrow streams (DuckDB, Polars, pyarrow, pandas); its rows are dicts.

    `about`: what was compared, for the metadata.
    """

    def __init__(
        self,
        about: Mapping[str, str],
        points: Sequence[Point],
        rows: Sequence[Line],
        columns: Collection[str] | None = None,
    ) -> None:
        self._about, self._points, self._rows, self._columns = about, points, rows, columns
        self.error: BaseException | None = None  # of the last stream, as of other tables

    def of(self, columns: Collection[str] | None) -> SeriesTable:
        """The same table with these columns, and `place`; None: all."""
        return SeriesTable(self._about, self._points, self._rows, columns)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        decoder = Decoder()
        for rows in self.parts():
            yield from decoder.rows(len(rows), rows.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from fastprof.core import _arrow

        first = next(self.parts(1))
        items = ((rows.c, len(rows), rows.columns) for rows in self.parts())
        return _arrow.stream(items, first.columns, lambda: first.metadata)

    def __arrow_c_schema__(self) -> object:
        from fastprof.core import _arrow

        first = next(self.parts(1))
        return _arrow.schema([column.without_items() for column in first.columns], first.metadata)

    def parts(self, most: int = CAPACITY) -> Iterator[Rows]:
        """The table in parts of about `most` rows; one of no rows if there are none."""
        n = max(1, len(self._points))
        step = max(1, most // n)
        for first in range(0, max(1, len(self._rows)), step):
            yield self._part(self._rows[first : first + step], n)

    def _part(self, some: Sequence[Line], n: int) -> Rows:
        columns, named = Columns(), self._columns

        def wanted(*names: str) -> Iterator[str]:
            return (name for name in names if named is None or name in named)

        for name in wanted("name", "file", "line", "object", "label"):
            cells = chain.from_iterable(repeat(getattr(row, name), n) for row in some)
            if name == "line":
                columns.add_costs(name, [cell or None for cell in cells], nullable=True)
            else:
                columns.add_texts(name, [*cells])
        columns.add_costs("place", [*range(n)] * len(some))
        for name in wanted("point"):
            columns.add_texts(name, [point.name for point in self._points] * len(some))
        for name in wanted("value"):
            columns.add_reals(name, [*chain.from_iterable(row.values for row in some)], nullable=True)
        for name in wanted("inclusive"):
            values = chain.from_iterable(row.inclusive or repeat(None, n) for row in some)
            columns.add_reals(name, [*values], nullable=True)
        for name in wanted("profiles", "samples", "total"):
            unit = self._about["unit"] if name == "total" else ""
            columns.add_costs(name, [getattr(point, name) for point in self._points] * len(some), unit, nullable=True)
        about = {"table": "series", **{key: text for key, text in self._about.items() if key != "unit"}}
        return columns.rows(n * len(some), about)
