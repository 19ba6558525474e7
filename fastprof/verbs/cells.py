"""Columns of an Arrow table from cells in Python: for tables that are a result, not a run over a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastprof.bridges.rows.as_table import Rows, utf8
from fastprof.core._c import ffi
from fastprof.core._typing import Any, Pointer
from fastprof.core.arrow_column import REAL, ArrowColumn, Texts
from fastprof.core.c_memory import address_of
from fastprof.core.errors import FastprofError
from fastprof.core.options import INT64
from fastprof.core.version import __version__


class Columns:
    """Columns of cells, and the owners of their memory."""

    def __init__(self) -> None:
        self.found: list[ArrowColumn] = []
        self.owners: list[object] = []

    def add_texts(self, name: str, cells: Sequence[str]) -> None:
        """An empty text is a missing value."""
        ids: dict[str, int] = {}
        items = ffi.new("int32_t[]", [ids.setdefault(cell, len(ids)) for cell in cells] or [0])
        words = Texts.of([utf8(text) for text in ids])
        valid = _bits([bool(cell) for cell in cells])
        self._add(ArrowColumn(name.encode(), b"i", address_of(items), True, address_of(valid), words), items, valid)

    def add_reals(self, name: str, cells: Sequence[float | None], *, nullable: bool = False) -> None:
        """`nullable`: other parts of the column may lack cells."""
        self._add_numbers(name, REAL, "double[]", cells, {}, nullable=nullable)

    def add_costs(self, name: str, cells: Sequence[int | None], unit: str = "", *, nullable: bool = False) -> None:
        """Errors: FastprofError for a cost that has more than 64 bits."""
        for cost in cells:
            if cost is not None and not -INT64 <= cost <= INT64:
                raise FastprofError(f"{name}: the cost {cost} does not fit 64 bits; .csv and .json hold it")
        metadata = {b"unit": utf8(unit).encode()} if unit else {}
        self._add_numbers(name, b"l", "int64_t[]", cells, metadata, nullable=nullable)

    def _add_numbers(
        self,
        name: str,
        format_: bytes,
        type_: str,
        cells: Sequence[Any],
        metadata: dict[bytes, bytes],
        *,
        nullable: bool,
    ) -> None:
        """None is a missing value."""
        has_bits = nullable or None in cells
        items = ffi.new(type_, [0 if cell is None else cell for cell in cells] or [0])
        valid = _bits([cell is not None for cell in cells]) if has_bits else ffi.new("uint8_t[]", 1)
        at = address_of(valid) if has_bits else 0
        self._add(
            ArrowColumn(name.encode(), format_, address_of(items), has_bits, at, metadata=metadata),
            items,
            valid,
        )

    def _add(self, column: ArrowColumn, *owners: object) -> None:
        self.found.append(column)
        self.owners += owners

    def rows(self, n: int, metadata: Mapping[str, str]) -> Rows:
        """The table of n rows."""
        texts = {"version": __version__, **metadata}
        encoded = {key.encode(): utf8(text).encode() for key, text in texts.items()}
        return Rows(self.owners, n, self.found, encoded)


def _bits(cells: Sequence[bool]) -> Pointer[int]:
    bits = bytearray(len(cells) // 8 + 1)
    for i, cell in enumerate(cells):
        if cell:
            bits[i >> 3] |= 1 << (i & 7)
    return ffi.new("uint8_t[]", bytes(bits))


def write(tables: Any, output: str, target: Any) -> None:
    """Write tables of the same columns, one after the other, as an Arrow stream or as Parquet (`target`)."""
    from fastprof.core import engine
    from fastprof.core.log import Log
    from fastprof.core.model import Model
    from fastprof.core.options import Options
    from fastprof.core.sink import Sink

    with Sink(output) as sink:
        engine.write(iter(tables), target.writer_class()(Model(), sink, Options(), Log()))
        sink.commit()
