"""A matrix as an Arrow table: a row per function, the columns of its CSV, then one of exact costs per label value.

name  file  object  median  outlier  share  difference  web1  web2  web3
f     a.c           0.09    web2     0.40         0.31    90   600    80
"""

from __future__ import annotations

from collections.abc import Sequence

from fastprof.bridges.rows.as_table import Rows, unused, utf8
from fastprof.core._c import ffi
from fastprof.core.column import REAL, Column, Texts
from fastprof.core.errors import FastprofError
from fastprof.core.model import ValueType
from fastprof.core.options import INT64
from fastprof.core.owner import address_of
from fastprof.core.version import __version__
from fastprof.verbs.top.matrix import Matrix, Row


class _Columns:
    """Columns of cells in Python, and the owners of their memory."""

    def __init__(self) -> None:
        self.found: list[Column] = []
        self.owners: list[object] = []

    def add_texts(self, name: str, cells: Sequence[str]) -> None:
        """An empty text is a missing value."""
        texts = [*dict.fromkeys(cells)]
        ids = {text: i for i, text in enumerate(texts)}
        items = ffi.new("int32_t[]", [ids[cell] for cell in cells] or [0])
        bits = bytearray(len(cells) // 8 + 1)
        for i, cell in enumerate(cells):
            if cell:
                bits[i >> 3] |= 1 << (i & 7)
        valid = ffi.new("uint8_t[]", bytes(bits))
        words = Texts.of([utf8(text) for text in texts])
        self._add(Column(name.encode(), b"i", address_of(items), True, address_of(valid), words), items, valid)

    def add_reals(self, name: str, cells: Sequence[float]) -> None:
        items = ffi.new("double[]", [*cells] or [0.0])
        self._add(Column(name.encode(), REAL, address_of(items)), items)

    def add_costs(self, name: str, cells: Sequence[int], unit: str) -> None:
        """Errors: FastprofError for a cost that has more than 64 bits."""
        for cost in cells:
            if not -INT64 <= cost <= INT64:
                raise FastprofError(f"{name}: the cost {cost} does not fit 64 bits; .csv and .json hold it")
        items = ffi.new("int64_t[]", [*cells] or [0])
        metadata = {b"unit": utf8(unit).encode()} if unit else {}
        self._add(Column(name.encode(), b"l", address_of(items), metadata=metadata), items)

    def _add(self, column: Column, *owners: object) -> None:
        self.found.append(column)
        self.owners += owners


def table(found: Matrix, value: ValueType) -> Rows:
    """The rows.  A label value with the name of another column gets a number: `name_2`.

    Errors: FastprofError for a cost that has more than 64 bits.
    """
    columns = _Columns()
    for name in Row._fields[:-1]:
        cells = [getattr(row, name) for row in found.rows]
        if name in ("median", "share", "difference"):
            columns.add_reals(name, cells)
        else:
            columns.add_texts(name, cells)
    taken = {*Row._fields[:-1]}
    for i, column in enumerate(found.columns):
        name = unused(utf8(column.name), taken)
        taken.add(name.casefold())
        columns.add_costs(name, [row.costs[i] for row in found.rows], value.unit)
    metadata = {"version": __version__, "table": "matrix", "key": found.key, "value": value.name}
    return Rows(
        columns.owners, len(found.rows), columns.found, {key.encode(): utf8(v).encode() for key, v in metadata.items()}
    )
