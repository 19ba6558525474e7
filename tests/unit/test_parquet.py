"""Parquet's pages and statistics; tests/unit/test_tables.py has whole files of the corpus."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.core._c import ffi
from fastprof.core.arrow_column import REAL, WIDTHS, ArrowColumn, Texts
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.formats.arrow.ipc import ArrowWriter
from fastprof.formats.arrow.parquet import ParquetWriter, _above, _cut

_TYPES = {b"l": "int64", b"L": "uint64", b"i": "int32", b"I": "uint32", b"S": "uint16", b"C": "uint8"}


def column(
    name: str, format_: bytes, cells: list[int | None], texts: Texts | None = None
) -> tuple[ArrowColumn, object]:
    """The column, and the owner of its memory."""
    n_bytes = WIDTHS[format_]
    items = ffi.from_buffer(b"".join((cell or 0).to_bytes(n_bytes, "little", signed=True) for cell in cells))
    bits = sum(1 << i for i, cell in enumerate(cells) if cell is not None)
    valid = ffi.from_buffer(bits.to_bytes(len(cells) // 8 + 1, "little"))
    items_at, valid_at = (int(ffi.cast("uintptr_t", memory)) for memory in (items, valid))
    return ArrowColumn(name.encode(), format_, items_at, True, valid_at, texts, {}), (items, valid)


class Rows(list[int]):
    """A batch, as the bridge makes it."""

    def __init__(self, n: int, columns: list[ArrowColumn]) -> None:
        super().__init__(range(n))
        self.columns, self.metadata = columns, {b"table": b"samples"}


def written(writer: Any, batches: list[Rows]) -> io.BytesIO:
    out = io.BytesIO()
    made = writer(Model(), SimpleNamespace(write=out.write), Options(), Log())
    made.put_all(batches)
    made.end()
    return out


def portable(*given: Any) -> ParquetWriter:
    """A writer that uses no vector instructions."""
    made = ParquetWriter(*given)
    made._pages.is_portable = 1
    return made


def signed(cell: int | None, format_: bytes) -> int | None:
    """The number whose bytes are those of `cell`, in the type of a column."""
    if cell is None or format_.islower():
        return cell
    return cell % (1 << 8 * WIDTHS[format_])


@st.composite
def numbers(draw: st.DrawFn) -> tuple[bytes, list[int | None]]:
    """Runs, few values, any values, steps; some missing."""
    format_ = draw(st.sampled_from(sorted(_TYPES)))
    most = 1 << 8 * WIDTHS[format_] - 1
    any_ = st.integers(-most, most - 1)
    few = st.sampled_from(draw(st.lists(any_, min_size=1, max_size=5)))
    cell = draw(st.sampled_from([any_, few, st.none() | few, st.none() | any_, st.integers(0, 3)]))
    runs = draw(st.lists(st.tuples(cell, st.sampled_from([1, 1, 2, 7, 8, 9, 40, 300])), min_size=1, max_size=20))
    return format_, [cell for cell, n in runs for _ in range(n)]


@given(numbers(), st.sampled_from(["n", "ts"]))
def test_any_numbers(made: tuple[bytes, list[int | None]], name: str) -> None:
    """`ts` has differences only, `n` whatever is smaller."""
    format_, cells = made
    one, memory = column(name, format_, cells)
    out = written(ParquetWriter, [Rows(len(cells), [one])])
    assert written(portable, [Rows(len(cells), [one])]).getvalue() == out.getvalue()
    want = [signed(cell, format_) for cell in cells]
    found = pyarrow.parquet.read_table(out)
    assert found.schema.field(name).type == _TYPES[format_]
    assert found[name].to_pylist() == want
    stated = pyarrow.parquet.ParquetFile(out).metadata.row_group(0).column(0).statistics
    there = [cell for cell in want if cell is not None]
    assert stated.null_count == len(want) - len(there)
    if there:
        assert (stated.min, stated.max) == (min(there), max(there))
    assert memory


@given(st.lists(st.none() | st.floats(allow_nan=False) | st.just(0.1), min_size=1, max_size=300))
def test_any_reals(cells: list[float | None]) -> None:
    bits = [None if cell is None else int.from_bytes(struct.pack("<d", cell), "little", signed=True) for cell in cells]
    one, memory = column("n", REAL, bits)
    batch = [Rows(len(cells), [one])]
    out = written(ParquetWriter, batch)
    found = pyarrow.parquet.read_table(out)
    assert (found.schema.field("n").type, found["n"].to_pylist()) == ("double", cells)
    assert pyarrow.ipc.open_stream(written(ArrowWriter, batch).getvalue()).read_all()["n"].to_pylist() == cells
    stated = pyarrow.parquet.ParquetFile(out).metadata.row_group(0).column(0).statistics
    assert (stated.null_count, stated.has_min_max) == (cells.count(None), False)
    assert memory


@given(st.lists(st.text(max_size=90), min_size=1, max_size=5, unique=True), st.data())
def test_any_texts(words: list[str], data: st.DataObject) -> None:
    """Statistics enclose the texts."""
    cells = data.draw(st.lists(st.none() | st.integers(0, len(words) - 1), min_size=1, max_size=60))
    one, memory = column("name", b"i", cells, Texts.of(words))
    batch = [Rows(len(cells), [one])]
    want = [None if cell is None else words[cell] for cell in cells]
    out = written(ParquetWriter, batch)
    assert pyarrow.parquet.read_table(out)["name"].to_pylist() == want
    assert pyarrow.ipc.open_stream(written(ArrowWriter, batch).getvalue()).read_all()["name"].to_pylist() == want
    stated = pyarrow.parquet.ParquetFile(out).metadata.row_group(0).column(0).statistics
    there = [cell.encode() for cell in want if cell is not None]
    assert stated.null_count == len(want) - len(there)
    assert stated.has_min_max == bool(there and _above(max(there)) is not None)
    if stated.has_min_max:
        least, greatest = (text.encode() for text in (stated.min, stated.max))
        assert least <= min(there) and greatest >= max(there)
    assert memory


@given(st.text(min_size=60, max_size=80))
def test_long_texts_are_rounded(text: str) -> None:
    encoded = text.encode()
    below, above = _cut(encoded), _above(encoded)
    assert below <= encoded and len(below) <= 64
    assert above is None or (above >= encoded and len(above) <= 65)
    if len(encoded) <= 64:
        assert (below, above) == (encoded, encoded)


@pytest.mark.parametrize(
    ("text", "above"),
    [
        ("x" * 65, "x" * 63 + "y"),
        ("é" * 33, "é" * 31 + "ê"),
        ("x" * 61 + "\ud7ff" + "x", "x" * 61 + "\ue000"),  # not a surrogate
        ("x" * 60 + "\U0010ffff" + "x", "x" * 59 + "y"),
        ("\U0010ffff" * 17, None),
    ],
)
def test_the_next_text(text: str, above: str | None) -> None:
    assert _above(text.encode()) == (above and above.encode())


@pytest.mark.parametrize(("text", "is_exact"), [("x" * 64, True), ("x" * 65, False)])
def test_statistics_say_whether_they_are_exact(text: str, is_exact: bool, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    one, memory = column("name", b"i", [0], Texts.of([text]))
    out.write_bytes(written(ParquetWriter, [Rows(1, [one])]).getvalue())
    query = f"select min_is_exact, max_is_exact from parquet_metadata('{out}')"
    assert duckdb.connect().execute(query).fetchall() == [(is_exact, is_exact)]
    assert memory


def test_many_texts_divide_a_row_group(tmp_path: Path) -> None:
    """A dictionary has at most 16 MiB; 320 names have 20."""
    names = [f"f{i:03}".ljust(1 << 16, "x") for i in range(320)]
    data = "".join(f"{name} {i + 1}\n" for i, name in enumerate(names)).encode()
    fastprof.convert(data, tmp_path / "out.parquet", from_="folded")
    found = pyarrow.parquet.ParquetFile(tmp_path / "out.parquet")
    assert [found.metadata.row_group(i).num_rows for i in range(found.num_row_groups)] == [160, 160]
    assert found.read(["function"])["function"].to_pylist() == names


def test_numbers_that_collide_become_differences() -> None:
    """The hash of a number can be computed in advance: these would all have the slot 0."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    cells: list[int | None] = [(k * inverse) % (1 << 64) for k in range(1, 200)]
    one, memory = column("n", b"L", [cell - (1 << 64) if cell and cell >> 63 else cell for cell in cells])
    out = written(ParquetWriter, [Rows(len(cells), [one])])
    assert pyarrow.parquet.read_table(out)["n"].to_pylist() == cells
    assert not pyarrow.parquet.ParquetFile(out).metadata.row_group(0).column(0).has_dictionary_page
    assert memory
