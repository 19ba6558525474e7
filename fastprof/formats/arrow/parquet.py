"""Writes a table as Parquet; csrc/arrow/pages.h encodes the pages.

    "PAR1" | row groups | metadata | length of the metadata u32 | "PAR1"
    row group     a chunk for each column
    chunk         [dictionary page] data page
    page          header | content, compressed

The numbers of fields below are those of parquet.thrift.  A chunk has one data page, so it needs no index of pages: its
statistics are those of the chunk.
Source: github.com/apache/parquet-format.
"""

from base64 import b64encode
from collections.abc import Mapping

import zstandard

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.arrow_column import REAL, WIDTHS, ArrowColumn, Texts
from fastprof.core.c_memory import enough, owned
from fastprof.core.version import __version__
from fastprof.formats.arrow.schema import schema
from fastprof.formats.arrow.thrift import Value, binary, boolean, byte, i32, i64, items, struct
from fastprof.formats.arrow.write import TableWriter

_MAGIC = b"PAR1"
# Columns that are smaller as differences: most numbers are distinct or, of `depth`, one apart.  As dictionaries they
# would take half as much space again; to try both would take 5 % more instructions.
_DIFFERENCES = ("id", "ts", "dur", "self", "depth", "parent")
_LEVEL = 1  # of zstandard
_DICTIONARY = 16 << 20  # bytes, beyond which a row group is divided
_LONGEST = 1 << 30  # the same for one of few rows, an error; lengths of pages have 31 bits
_FEW = 8  # rows that are not divided: a byte of a validity bitmap
_STATED = 64  # bytes of texts in statistics

_INT32, _INT64, _DOUBLE, _BYTE_ARRAY = 1, 2, 5, 6
_UTF8 = 0
_UNSIGNED = {1: 11, 2: 12, 4: 13, 8: 14}  # by width
_REQUIRED, _OPTIONAL = 0, 1
_RLE, _ZSTD = 3, 6
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2


class ParquetWriter(TableWriter):
    format = "parquet"

    def start(self) -> None:
        self._pages = owned(lib.fp_arrow_pages_new(), "the pages of a table")
        self._compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self._at = 0  # bytes written
        self._groups: list[Value] = []

    def _begin(self, columns: list[ArrowColumn], metadata: dict[bytes, bytes]) -> None:
        self._columns, self._metadata = columns, metadata
        self._write(_MAGIC)

    def _put_rows(self, rows: Any) -> None:
        self._put_range(rows.columns, 0, len(rows))

    def _end(self) -> None:
        kept = b64encode(schema(self._columns, self._metadata))
        footer = struct(
            {
                1: i32(1),
                2: items([_root(len(self._columns)), *map(_element, self._columns)]),
                3: i64(self.written),
                4: items(self._groups),
                5: items([struct({1: binary(b"ARROW:schema"), 2: binary(kept)})]),
                6: binary(f"fastprof version {__version__}".encode()),
                7: items([struct({1: struct({})})] * len(self._columns)),  # statistics are in the order of the types
            }
        ).data
        self._write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    def _write(self, data: bytes) -> None:
        self.sink.write(data)
        self._at += len(data)

    def _put_range(self, columns: list[ArrowColumn], start: int, n: int) -> None:
        """Writes n rows, of which the first is a multiple of 8, as a row group or as several."""
        if not n:
            return
        pages: list[bytes] = []
        chunks: list[Value] = []
        at, n_plain = self._at, 0
        for column in columns:
            if not self._encode(column, start, n):
                half = -(-n // 2 // 8) * 8
                self._put_range(columns, start, half)
                self._put_range(columns, start + half, n - half)
                return
            n_before = len(pages)
            chunk, size = self._chunk(column, n, at, pages)
            chunks.append(chunk)
            at += sum(map(len, pages[n_before:]))
            n_plain += size
        head = {1: items(chunks), 2: i64(n_plain), 3: i64(n), 5: i64(self._at), 6: i64(at - self._at)}
        self._groups.append(struct(head))
        for page in pages:
            self._write(page)

    def _encode(self, column: ArrowColumn, start: int, n: int) -> bool:
        """Whether the column's texts fit a dictionary.  Errors: FastprofError if those of few rows do not."""
        width = WIDTHS[column.format]
        rows = ffi.new("struct fp_arrow_rows *")
        rows.items = ffi.cast("void *", column.items + start * width)
        rows.valid = ffi.cast("uint8_t *", column.valid + start // 8 if column.valid else 0)
        rows.width, rows.is_signed, rows.n = width, column.format.islower(), n
        if column.format == REAL:
            enough(lib.fp_arrow_pages_reals(self._pages, rows))
            return True
        if column.texts is None:
            status = enough(lib.fp_arrow_pages_numbers(self._pages, rows, column.name.decode() in _DIFFERENCES))
            return True
        most = _DICTIONARY if n > _FEW else _LONGEST
        status = lib.fp_arrow_pages_texts(self._pages, rows, _texts(column.texts), most, self.err)
        if status == lib.FP_E_OVERFLOW and n > _FEW:
            return False
        self.check(status)
        return True

    def _chunk(self, column: ArrowColumn, n: int, at: int, pages: list[bytes]) -> tuple[Value, int]:
        """Appends the pages of the encoded column, of which the first is at offset `at`.  Returns their metadata and
        their size if they were not compressed."""
        p = self._pages
        first, encoding = len(pages), int(p.encoding)
        plain = 0
        if p.n_entries:
            head = {7: struct({1: i32(p.n_entries), 2: i32(lib.FP_ARROW_PLAIN)})}
            plain += self._page(_DICTIONARY_PAGE, p.dictionary, head, pages)
        data_at = at + sum(map(len, pages[first:]))
        head = {5: struct({1: i32(n), 2: i32(encoding), 3: i32(_RLE), 4: i32(_RLE)})}
        plain += self._page(_DATA_PAGE, p.data, head, pages)
        used = sum(map(len, pages[first:]))
        encodings = {encoding, _RLE} | ({int(lib.FP_ARROW_PLAIN)} if p.n_entries else set())
        counts = [(_DATA_PAGE, encoding)] + [(_DICTIONARY_PAGE, lib.FP_ARROW_PLAIN)] * (p.n_entries > 0)
        metadata = {
            1: i32(_physical(column)),
            2: items([i32(number) for number in sorted(encodings)]),
            3: items([binary(column.name)]),
            4: i32(_ZSTD),
            5: i64(n),
            6: i64(plain),
            7: i64(used),
            9: i64(data_at),
            11: i64(at) if p.n_entries else None,
            12: self._statistics(column, n),
            13: items([struct({1: i32(kind), 2: i32(number), 3: i32(1)}) for kind, number in counts]),
        }
        return struct({2: i64(0), 3: struct(metadata)}), plain

    def _page(self, kind: int, content: Any, head: Mapping[int, Value | None], pages: list[bytes]) -> int:
        """Appends a page.  Returns its size if it was not compressed."""
        data = self._compress(memoryview(ffi.buffer(content.p, content.n)) if content.n else b"")
        header = struct({1: i32(kind), 2: i32(content.n), 3: i32(len(data)), **head}).data
        pages += [header, data]
        return len(header) + int(content.n)

    def _statistics(self, column: ArrowColumn, n: int) -> Value:
        p = self._pages
        missing = i64(n - p.n_values)
        if not p.n_values or column.format == REAL:
            return struct({3: missing})
        if column.texts is None:
            size = 8 if _physical(column) == _INT64 else 4
            least, greatest = (int(v).to_bytes(8, "little")[:size] for v in (p.least, p.greatest))
            return struct({3: missing, 5: binary(greatest), 6: binary(least)})
        least, greatest = _text(column.texts, p.least), _text(column.texts, p.greatest)
        least_stated, greatest_stated = _cut(least), _above(greatest)
        return struct(
            {
                3: missing,
                5: binary(greatest_stated) if greatest_stated is not None else None,
                6: binary(least_stated),
                7: boolean(greatest_stated == greatest) if greatest_stated is not None else None,
                8: boolean(least_stated == least),
            }
        )


def _texts(texts: Texts) -> Any:
    found = ffi.new("struct fp_arrow_texts *")
    found.offsets = ffi.cast("int64_t *", texts.offsets)
    found.bytes = ffi.cast("uint8_t *", texts.bytes)
    found.n = texts.n
    return found


def _text(texts: Texts, number: int) -> bytes:
    start, end = ffi.unpack(ffi.cast("int64_t *", texts.offsets) + number, 2)
    return bytes(ffi.buffer(ffi.cast("char *", texts.bytes) + start, end - start)) if end > start else b""


def _cut(text: bytes) -> bytes:
    """The text, or its first characters: not greater than the text."""
    return text if len(text) <= _STATED else text[:_STATED].decode("utf-8", "ignore").encode()


def _above(text: bytes) -> bytes | None:
    """The text, or its first characters with the last one replaced by the next: greater than the text.  None if there
    is no next one."""
    if len(text) <= _STATED:
        return text
    found = _cut(text).decode()
    while found:
        following = ord(found[-1]) + 1
        if following < 0x110000:
            return (found[:-1] + chr(0xE000 if following == 0xD800 else following)).encode()
        found = found[:-1]
    return None


def _physical(column: ArrowColumn) -> int:
    if column.texts is not None:
        return _BYTE_ARRAY
    if column.format == REAL:
        return _DOUBLE
    return _INT64 if WIDTHS[column.format] == 8 else _INT32


def _root(n_columns: int) -> Value:
    return struct({4: binary(b"arrow_schema"), 5: i32(n_columns)})


def _element(column: ArrowColumn) -> Value:
    """The schema of a column."""
    converted = logical = None
    if column.texts is not None:
        converted, logical = i32(_UTF8), struct({1: struct({})})
    elif not column.format.islower():
        width = WIDTHS[column.format]
        converted = i32(_UNSIGNED[width])
        logical = struct({10: struct({1: byte(8 * width), 2: boolean(False)})})
    return struct(
        {
            1: i32(_physical(column)),
            3: i32(_OPTIONAL if column.nullable else _REQUIRED),
            4: binary(column.name),
            6: converted,
            10: logical,
        }
    )
