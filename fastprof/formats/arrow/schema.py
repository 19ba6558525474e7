"""Arrow's metadata of columns, for IPC streams and for the key ARROW:schema of Parquet, which keeps units and types.

It is a message of FlatBuffers.  Objects are written from the last one to the first, because references lead forward.
Equal vtables are written once:

    table    distance back to its vtable i32 | fields, each aligned to its size; a reference is a distance u32
    vtable   its size u16 | size of the table u16 | for each field its position in the table u16, or 0 if it is missing
    vector   number of items u32 | items
    string   length u32 | bytes | 0

Sources: flatbuffers.dev/internals; github.com/apache/arrow, format/Schema.fbs and Message.fbs.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core.arrow_column import REAL, WIDTHS, ArrowColumn

_VERSION = 4  # V5
SCHEMA, DICTIONARY, ROWS = 1, 2, 3  # kinds of messages
_INT, _REAL, _LARGE_TEXT = 2, 3, 20  # types of columns
_DOUBLE = 2  # precision
_CONTINUES = b"\xff\xff\xff\xff"


class Flat:
    """A message under construction.  The position of an object is its distance from the end."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # the last one first
        self._n = 0  # bytes
        self._vtables: dict[bytes, int] = {}  # their positions

    def _put(self, data: bytes, align: int) -> int:
        """Prepends `data`, so that it begins at a multiple of `align`."""
        padding = -(self._n + len(data)) % align
        self._parts.append(data + bytes(padding))
        self._n += len(data) + padding
        return self._n

    def text(self, text: bytes) -> int:
        return self._put(len(text).to_bytes(4, "little") + text + b"\0", 4)

    def vector(self, items: list[int]) -> int:
        """A vector of references."""
        end = self._n + -self._n % 4
        places = [end + 4 * (len(items) - k) for k in range(len(items))]
        distances = [place - item for place, item in zip(places, items, strict=True)]
        return self._put(b"".join(n.to_bytes(4, "little") for n in (len(items), *distances)), 4)

    def structs(self, items: Iterable[tuple[int, int]]) -> int:
        """A vector of pairs of 64-bit numbers."""
        data = b"".join(n.to_bytes(8, "little") for pair in items for n in pair)
        self._put(data, 8)
        return self._put((len(data) // 16).to_bytes(4, "little"), 4)

    def table(self, *fields: tuple[int, int] | None) -> int:
        """`fields`: (bytes, number), (0, position) for a reference, or None."""
        places, at = [], 4
        for field in fields:
            size = (field[0] or 4) if field else 1
            at += -at % size
            places.append(at if field else 0)
            at += size if field else 0
        at += -at % 8
        end = self._n + -self._n % 8 + at
        vtable = b"".join(n.to_bytes(2, "little") for n in (4 + 2 * len(fields), at, *places))
        is_new = vtable not in self._vtables
        to_vtable = self._vtables.setdefault(vtable, end + len(vtable)) - end
        table = bytearray(at)
        table[:4] = to_vtable.to_bytes(4, "little", signed=True)
        for field, place in zip(fields, places, strict=True):
            if field:
                size, number = field
                data = number.to_bytes(size, "little") if size else (end - place - number).to_bytes(4, "little")
                table[place : place + len(data)] = data
        self._put(bytes(table), 8)
        if is_new:
            self._put(vtable, 1)
        return end

    def pairs(self, pairs: dict[bytes, bytes]) -> int:
        return self.vector([self.table((0, self.text(key)), (0, self.text(text))) for key, text in pairs.items()])

    def message(self, kind: int, header: int, n_body: int = 0) -> bytes:
        """The message, ahead of a body of `n_body` bytes."""
        root = self.table((2, _VERSION), (1, kind), (0, header), (8, n_body))
        n = self._n + 4
        n += -n % 8
        head = (n - root).to_bytes(4, "little") + bytes(n - 4 - self._n)
        return _CONTINUES + n.to_bytes(4, "little") + head + b"".join(reversed(self._parts))


def _field(flat: Flat, number: int, column: ArrowColumn) -> int:
    name = flat.text(column.name)
    metadata = (0, flat.pairs(column.metadata)) if column.metadata else None
    children = flat.vector([])
    integer = flat.table((4, 8 * WIDTHS[column.format]), (1, column.format.islower()))
    kind, type_, dictionary = _INT, integer, None
    if column.texts is not None:
        kind, type_, dictionary = _LARGE_TEXT, flat.table(), (0, flat.table((8, number), (0, integer)))
    elif column.format == REAL:
        kind, type_ = _REAL, flat.table((2, _DOUBLE))
    return flat.table((0, name), (1, column.nullable), (1, kind), (0, type_), dictionary, (0, children), metadata)


def schema(columns: list[ArrowColumn], metadata: dict[bytes, bytes]) -> bytes:
    """The message of a stream's schema.  Columns of texts have dictionaries, numbered like the columns."""
    flat = Flat()
    fields = flat.vector([_field(flat, number, column) for number, column in enumerate(columns)])
    return flat.message(SCHEMA, flat.table(None, (0, fields), (0, flat.pairs(metadata))))
