"""Writes a table as an Arrow IPC stream: messages, of which those of rows and of texts have a body of buffers.

    schema | (dictionaries with new texts, rows) ... | end

Buffers are those of Arrow's memory: a bitmap of the rows that have a value, if some lack one, then the items; of texts
their offsets and their bytes.  A dictionary that has grown is written whole, because Polars reads no others.
Source: github.com/apache/arrow, docs/source/format/Columnar.rst.
"""

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.arrow_column import WIDTHS, ArrowColumn, Texts
from fastprof.formats.arrow.schema import DICTIONARY, ROWS, Flat, schema
from fastprof.formats.arrow.write import TableWriter

_ALIGNED = 8  # bytes, at which buffers begin
_END = b"\xff\xff\xff\xff\0\0\0\0"


class ArrowWriter(TableWriter):
    format = "arrow"

    def start(self) -> None:
        self._sent: dict[int, int] = {}  # texts of each dictionary that are written

    def _begin(self, columns: list[ArrowColumn], metadata: dict[bytes, bytes]) -> None:
        self.sink.write(schema(columns, metadata))

    def _put_rows(self, rows: Any) -> None:
        for number, column in enumerate(rows.columns):
            if column.texts is not None and self._sent.get(number) != column.texts.n:
                self._sent[number] = column.texts.n
                self._put(DICTIONARY, column.texts.n, [(column.texts.n, 0)], _of_texts(column.texts), number)
        nodes, buffers = [], []
        for column in rows.columns:
            missing, found = _of_column(column, len(rows))
            nodes.append((len(rows), missing))
            buffers += found
        self._put(ROWS, len(rows), nodes, buffers)

    def _end(self) -> None:
        self.sink.write(_END)

    def _put(self, kind: int, n: int, nodes: list[tuple[int, int]], buffers: list[Any], dictionary: int = 0) -> None:
        """Writes a message.  `nodes`: for each column its rows, and those without a value."""
        places, at = [], 0
        for buffer in buffers:
            places.append((at, len(buffer)))
            at += len(buffer) + -len(buffer) % _ALIGNED
        flat = Flat()
        header = flat.table((8, n), (0, flat.structs(nodes)), (0, flat.structs(places)))
        if kind == DICTIONARY:
            header = flat.table((8, dictionary), (0, header))
        self.sink.write(flat.message(kind, header, at))
        for buffer in buffers:
            self.sink.write(bytes(buffer) + bytes(-len(buffer) % _ALIGNED))


def _buffer(address: int, n: int) -> Any:
    return ffi.buffer(ffi.cast("char *", address), n) if n else b""


def _of_texts(texts: Texts) -> list[Any]:
    n_bytes = ffi.cast("int64_t *", texts.offsets)[texts.n]
    return [b"", _buffer(texts.offsets, 8 * (texts.n + 1)), _buffer(texts.bytes, n_bytes)]


def _of_column(column: ArrowColumn, n: int) -> tuple[int, list[Any]]:
    """The rows without a value; the buffers."""
    width, missing = WIDTHS[column.format], 0
    if column.valid:
        rows = ffi.new("struct fp_arrow_rows *", {"n": n, "valid": ffi.cast("uint8_t *", column.valid)})
        missing = n - lib.fp_arrow_count(rows)
    valid = _buffer(column.valid, (n + 7) // 8) if missing else b""
    return missing, [valid, _buffer(column.items, n * width)]
