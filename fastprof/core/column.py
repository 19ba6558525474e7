"""A column in the form of Arrow's C data interface: addresses, and the owner of their memory; its values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from fastprof.core._c import ffi
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.owner import address_of


class Texts(NamedTuple):
    """Distinct texts; a column has their indices.  `owner` keeps the memory."""

    n: int
    offsets: int  # address of n + 1 64-bit offsets into the bytes
    bytes: int  # address
    owner: object

    @staticmethod
    def of(texts: list[str]) -> Texts:
        encoded = [text.encode() for text in texts]
        ends = [*accumulate(map(len, encoded), initial=0)]
        offsets, joined = ffi.new("int64_t[]", ends), ffi.new("uint8_t[]", b"".join(encoded) or b"\0")
        return Texts(len(texts), address_of(offsets), address_of(joined), (offsets, joined))


class Column(NamedTuple):
    """`format`: that of the items in Arrow's notation; `valid`: the address of one bit per item, or 0."""

    name: bytes
    format: bytes
    items: int  # address
    nullable: bool = False
    valid: int = 0
    texts: Texts | None = None
    metadata: dict[bytes, bytes] | None = None

    def without_items(self) -> Column:
        """The column of a schema, which keeps no memory."""
        return self._replace(items=0, valid=0, texts=self.texts and Texts(0, 0, 0, None))

    def is_like(self, other: Column) -> bool:
        """Whether both can be batches of the same column of a stream."""
        return (self.name, self.format) == (other.name, other.format)


REAL = b"g"  # the format of floating-point numbers of 64 bits; all others are integers
WIDTHS = {b"l": 8, b"L": 8, b"i": 4, b"I": 4, b"S": 2, b"C": 1, REAL: 8}  # bytes of an item by its format
_ITEMS = {
    b"l": "int64_t",
    b"L": "uint64_t",
    b"i": "int32_t",
    b"I": "uint32_t",
    b"S": "uint16_t",
    b"C": "uint8_t",
    REAL: "double",
}
_AT_A_TIME = 4096  # rows; a multiple of 8, because a byte of the validity bitmap covers 8


class Decoder:
    """Rows of columns as dicts.  Caches texts: a batch has the texts of earlier batches, followed by new ones."""

    def __init__(self) -> None:
        self._texts: dict[bytes, list[str]] = {}

    def rows(self, n: int, columns: list[Column]) -> Iterator[dict[str, Any]]:
        names = [column.name.decode("utf-8", "replace") for column in columns]
        for start in range(0, n, _AT_A_TIME):
            count = min(_AT_A_TIME, n - start)
            cells = [self._cells(column, start, count) for column in columns]
            for row in zip(*cells, strict=True):
                yield dict(zip(names, row, strict=True))

    def _cells(self, column: Column, start: int, n: int) -> list[Any]:
        items = ffi.unpack(ffi.cast(f"{_ITEMS[column.format]} *", column.items) + start, n)
        bits = b"\xff" * (n // 8 + 1)
        if column.valid:
            bits = bytes(ffi.buffer(ffi.cast("uint8_t *", column.valid) + start // 8, (n + 7) // 8))
        elif column.texts is None:
            return list(items)
        values = self._words(column.name, column.texts) if column.texts else None
        there = (bits[i >> 3] >> (i & 7) & 1 for i in range(n))
        return [
            (item if values is None else values[item]) if yes else None for item, yes in zip(items, there, strict=True)
        ]

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
