"""A column in the form of Arrow's C data interface: addresses, and the owner of their memory; its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate, chain, repeat

from fastprof.core._c import ffi
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.c_memory import address_of


class Texts(NamedTuple):
    """Distinct texts; a column has their indices.  `owner` keeps the memory."""

    n: int
    offsets: int  # address of n + 1 64-bit offsets into the bytes
    bytes: int  # address
    owner: object

    @staticmethod
    def of(texts: list[str]) -> Texts:
        encoded = [text.encode("utf-8", "replace") for text in texts]
        ends = [*accumulate(map(len, encoded), initial=0)]
        offsets, joined = ffi.new("int64_t[]", ends), ffi.new("uint8_t[]", b"".join(encoded) or b"\0")
        return Texts(len(texts), address_of(offsets), address_of(joined), (offsets, joined))


class ArrowColumn(NamedTuple):
    """`format`: that of the items in Arrow's notation; `valid`: the address of one bit per item, or 0."""

    name: bytes
    format: bytes
    items: int  # address
    nullable: bool = False
    valid: int = 0
    texts: Texts | None = None
    metadata: dict[bytes, bytes] | None = None

    def without_items(self) -> ArrowColumn:
        """The column of a schema, which keeps no memory."""
        return self._replace(items=0, valid=0, texts=self.texts and Texts(0, 0, 0, None))

    def is_like(self, other: ArrowColumn) -> bool:
        """Whether both can be batches of the same column of a stream."""
        return (self.name, self.format) == (other.name, other.format)


REAL = b"g"  # the format of floating-point numbers of 64 bits; all others are integers
WIDTHS = {b"l": 8, b"L": 8, b"i": 4, b"I": 4, b"S": 2, b"C": 1, REAL: 8}  # bytes of an item by its format
_ITEMS = {b"l": "q", b"L": "Q", b"i": "i", b"I": "I", b"S": "H", b"C": "B", REAL: "d"}  # as in `struct`
_BITS = [[byte >> k & 1 for k in range(8)] for byte in range(256)]
_AT_A_TIME = 4096  # rows; a multiple of 8, because a byte of the validity bitmap covers 8


@lru_cache(64)
def _row_of(names: tuple[str, ...]) -> Callable[..., dict[str, Any]]:
    """A function from the values of these columns to a dict: a literal takes half the time of dict(zip(...)).  The
    names, which come from files, are only in literals of strings."""
    values = [f"v{i}" for i in range(len(names))]
    literal = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    return eval(f"lambda {', '.join(values)}: {{{literal}}}")  # type: ignore[no-any-return]


class Decoder:
    """Rows of columns as dicts.  Caches texts: a batch has the texts of earlier batches, followed by new ones."""

    def __init__(self) -> None:
        self._texts: dict[bytes, list[str]] = {}

    def rows(self, n: int, columns: list[ArrowColumn]) -> Iterator[dict[str, Any]]:
        row = _row_of(tuple(column.name.decode("utf-8", "replace") for column in columns))
        for start in range(0, n, _AT_A_TIME):
            count = min(_AT_A_TIME, n - start)
            yield from map(row, *(self._cells(column, start, count) for column in columns))

    def _cells(self, column: ArrowColumn, start: int, n: int) -> Iterable[Any]:
        width = WIDTHS[column.format]
        data = ffi.buffer(ffi.cast("uint8_t *", column.items) + start * width, n * width)
        cells: list[Any] = memoryview(data).cast(_ITEMS[column.format]).tolist()  # type: ignore[call-overload]
        words = self._words(column.name, column.texts) if column.texts else None
        mask = None
        if column.valid:
            bits = bytes(ffi.buffer(ffi.cast("uint8_t *", column.valid) + start // 8, (n + 7) // 8))
            mask = [*chain.from_iterable(map(_BITS.__getitem__, bits))][:n]
            if not any(mask):
                return repeat(None, n)
        if mask is None or all(mask):
            return cells if words is None else map(words.__getitem__, cells)
        if words is None:
            return [cell if yes else None for cell, yes in zip(cells, mask, strict=True)]
        return [words[cell] if yes else None for cell, yes in zip(cells, mask, strict=True)]

    def _words(self, name: bytes, texts: Texts) -> list[str]:
        found = self._texts.setdefault(name, [])
        offsets = ffi.cast("int64_t *", texts.offsets)
        for k in range(len(found), texts.n):
            text = ffi.buffer(ffi.cast("char *", texts.bytes) + offsets[k], offsets[k + 1] - offsets[k])
            found.append(bytes(text).decode("utf-8", "replace"))
        return found


def encoded_metadata(metadata: dict[bytes, bytes]) -> bytes:
    """Metadata in the encoding of Arrow's C data interface: 32-bit counts and lengths in the machine's byte order."""
    from sys import byteorder

    parts = [len(metadata).to_bytes(4, byteorder)]
    for text in (text for pair in metadata.items() for text in pair):
        parts += [len(text).to_bytes(4, byteorder), text]
    return b"".join(parts)


# Columns of results that are texts or floating-point numbers, also without values.
_TEXTS = {"label", "thread", "name", "file", "object", "callee", "path", "text", "outlier"}
_REALS = {"self_share", "cumulated_share", "inclusive_share", "median", "share", "difference", "p"}


def _column_of(name: str, cells: list[Any], unit: str) -> tuple[ArrowColumn, object]:
    """Values as a column, and the owner of its memory: texts, floats, or integers of 64 bits."""
    there = [cell is not None for cell in cells]
    is_real = any(isinstance(cell, float) for cell in cells) or (name in _REALS and not any(there))
    texts, format_ = None, REAL if is_real else b"l"
    if any(isinstance(cell, str) for cell in cells) or (name in _TEXTS and not any(there)):
        words = {cell: number for number, cell in enumerate(dict.fromkeys(filter(None, cells)), 1)}
        texts, cells, format_ = Texts.of(["", *words]), [words.get(cell, 0) for cell in cells], b"i"
    elif format_ == b"l" and any(cell is not None and cell >> 63 for cell in cells if cell is None or cell >= 0):
        format_ = b"L"  # addresses
    types = {b"i": "int32_t[]", b"l": "int64_t[]", b"L": "uint64_t[]", REAL: "double[]"}
    items = ffi.new(types[format_], [cell or 0 for cell in cells] or 1)
    bits = bytes(sum(there[i + k] << k for k in range(min(8, len(there) - i))) for i in range(0, len(there), 8))
    valid = ffi.new("uint8_t[]", bits or b"\0") if not all(there) else None
    metadata = {b"unit": unit.encode()} if unit else None
    column = ArrowColumn(
        name.encode(), format_, address_of(items), True, address_of(valid) if valid else 0, texts, metadata
    )
    return column, (items, valid, texts)


def stream_of(table: Mapping[str, list[Any]], units: Mapping[str, str]) -> object:
    """A capsule "arrow_array_stream" of the columns of a result; `units` by name."""
    from fastprof.core import _arrow

    found = [_column_of(name, cells, units.get(name, "")) for name, cells in table.items()]
    columns = [column for column, _ in found]
    n = len(next(iter(table.values()), []))
    return _arrow.stream(iter([([owner for _, owner in found], n, columns)]), columns)
