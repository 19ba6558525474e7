"""The table `series`: a row for each row of a trend and point.

name  file  line  object  label  place  point       value   profiles  samples  total
f     a.c                        0      2026-03-01  0.0210  20        2000000  20000000000
f     a.c                        1      2026-03-02  0.0211  20        2000000  20000000000
"""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.bridges.rows.as_table import CAPACITY, Rows
from fastprof.core._typing import Any
from fastprof.core.arrow_column import Decoder
from fastprof.verbs.cells import Columns
from fastprof.verbs.trend import Trend


class SeriesTable:
    """The table for readers of Arrow streams (DuckDB, Polars, pyarrow, pandas); its rows are dicts."""

    def __init__(self, found: Trend) -> None:
        self._found = found

    def __iter__(self) -> Iterator[dict[str, Any]]:
        decoder = Decoder()
        for rows in self.parts():
            yield from decoder.rows(len(rows), rows.columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from fastprof.core import _arrow

        parts = [*self.parts()]
        items = ((rows.c, len(rows), rows.columns) for rows in parts)
        return _arrow.stream(items, parts[0].columns, lambda: parts[0].metadata)

    def parts(self, most: int = CAPACITY) -> Iterator[Rows]:
        """The table in parts of about `most` rows; one of no rows if there are none."""
        found, n = self._found, max(1, len(self._found.points))
        step = max(1, most // n)
        metadata = {"table": "series", "over": found.over, "by": found.by, "value": found.value, "per": found.per or ""}
        for first in range(0, max(1, len(found.rows)), step):
            some = found.rows[first : first + step]
            columns = Columns()
            for name in ("name", "file", "line", "object", "label"):
                cells = [getattr(row, name) for row in some for _ in range(n)]
                if name == "line":
                    columns.add_costs(name, [cell or None for cell in cells])
                else:
                    columns.add_texts(name, cells)
            columns.add_costs("place", [*range(n)] * len(some))
            columns.add_texts("point", [point.name for point in found.points] * len(some))
            columns.add_reals("value", [value for row in some for value in row.values])
            for name in ("profiles", "samples", "total"):
                unit = found.unit if name == "total" else ""
                columns.add_costs(name, [getattr(point, name) for point in found.points] * len(some), unit)
            yield columns.rows(n * len(some), metadata)
