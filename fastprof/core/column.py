"""A column as Arrow's C data interface wants it: addresses, and what keeps the memory behind them."""

from __future__ import annotations

from itertools import accumulate

from fastprof.core._c import ffi
from fastprof.core._typing import Any, NamedTuple


def address_of(pointer: Any) -> int:
    """Of a C object: compiled modules take addresses as numbers.  The object is not kept alive by that."""
    return int(ffi.cast("uintptr_t", pointer))


class Texts(NamedTuple):
    """Distinct texts, the values of a column that holds their numbers.  `owner` keeps the memory."""

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
    """`format` is Arrow's, of the items; `valid` the address of a bit for each item, or 0."""

    name: bytes
    format: bytes
    items: int  # address
    nullable: bool = False
    valid: int = 0
    texts: Texts | None = None
    metadata: dict[bytes, bytes] | None = None

    def is_like(self, other: Column) -> bool:
        """Whether both can be columns of the same stream."""
        return (self.name, self.format) == (other.name, other.format)


def encoded_metadata(metadata: dict[bytes, bytes]) -> bytes:
    """As Arrow's C data interface has it: 32-bit counts and lengths, in the machine's byte order."""
    from sys import byteorder

    parts = [len(metadata).to_bytes(4, byteorder)]
    for text in (text for pair in metadata.items() for text in pair):
        parts += [len(text).to_bytes(4, byteorder), text]
    return b"".join(parts)
