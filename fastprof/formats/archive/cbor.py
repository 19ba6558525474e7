"""The archive's metadata encoding: the part of CBOR (RFC 8949) that plain values need.

None, bool, int of any size up to 64 bits, float, str, bytes, list, dict;
tuple (an array under tag 60500, so that it comes back as a tuple) and the
model's ValueType (the array of its fields under tag 60501).
"""

from __future__ import annotations

import struct

from fastprof.core._typing import Any
from fastprof.core.model import ValueType

TUPLE_TAG = 60500
VALUE_TYPE_TAG = 60501
MAX_DEPTH = 32


class CborError(ValueError):
    """Bytes that this encoding cannot have, or a value without an encoding."""


def _head(major: int, value: int) -> bytes:
    if value < 24:
        return bytes((major << 5 | value,))
    for extra, format_ in enumerate((">B", ">H", ">I", ">Q")):
        if value < 1 << (8 << extra):
            return bytes((major << 5 | 24 + extra,)) + struct.pack(format_, value)
    raise CborError(f"{value} does not fit in 64 bits")


def dumps(value: Any) -> bytes:
    """`value` as bytes.  Errors: CborError for a type or number that has no encoding here."""
    out = bytearray()
    _encode(value, out)
    return bytes(out)


def _encode(value: Any, out: bytearray) -> None:
    if value is None:
        out.append(0xF6)
    elif isinstance(value, bool):
        out.append(0xF5 if value else 0xF4)
    elif isinstance(value, int):
        out += _head(0, value) if value >= 0 else _head(1, -1 - value)
    elif isinstance(value, float):
        out.append(0xFB)
        out += struct.pack(">d", value)
    elif isinstance(value, (bytes, bytearray)):
        out += _head(2, len(value)) + value
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        out += _head(3, len(data)) + data
    elif isinstance(value, ValueType):  # a tuple, too
        if not all(isinstance(item, str) for item in value):
            raise CborError(f"{value!r:.120} has a field that is not a text")
        out += _head(6, VALUE_TYPE_TAG)
        _encode(list(value), out)
    elif isinstance(value, (list, tuple)):
        if isinstance(value, tuple):
            out += _head(6, TUPLE_TAG)
        out += _head(4, len(value))
        for item in value:
            _encode(item, out)
    elif isinstance(value, dict):
        out += _head(5, len(value))
        for key, item in value.items():
            _encode(_checked(key), out)
            _encode(item, out)
    else:
        raise CborError(f"a {type(value).__name__} cannot be stored")


class _Room:
    """The memory in bytes that lists and maps may still take."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def take(self, items: int) -> None:
        self.nbytes -= 64 + 8 * items  # approximately: an empty container and its slots
        if self.nbytes < 0:
            raise CborError("lists and maps take more memory than the size of the section justifies")


def loads(data: bytes, room: int = 1 << 62) -> Any:
    """The value encoded in `data`.  Its lists and maps may take about `room` bytes.  Errors: CborError."""
    value, end = _decode(data, 0, 0, _Room(room))
    if end != len(data):
        raise CborError("bytes after the value")
    return value


def _decode(data: bytes, at: int, depth: int, room: _Room) -> tuple[Any, int]:
    if depth > MAX_DEPTH:
        raise CborError("nested too deeply")
    if at >= len(data):
        raise CborError("ends inside a value")
    major, info = data[at] >> 5, data[at] & 31
    at += 1
    if major == 7:
        if info == 27 and at + 8 <= len(data):
            return struct.unpack_from(">d", data, at)[0], at + 8
        if info in (20, 21, 22):
            return (False, True, None)[info - 20], at
        raise CborError("unknown simple value")
    if info < 24:
        n = info
    elif info < 28:
        size = 1 << info - 24
        if at + size > len(data):
            raise CborError("ends inside a number")
        n = int.from_bytes(data[at : at + size], "big")
        at += size
    else:
        raise CborError("indefinite length")
    if major == 0:
        return n, at
    if major == 1:
        return -1 - n, at
    if major in (2, 3):
        if n > len(data) - at:
            raise CborError("ends inside a string")
        text = data[at : at + n]
        try:
            return (text if major == 2 else text.decode("utf-8", "surrogatepass")), at + n
        except UnicodeDecodeError:
            raise CborError("text is not UTF-8") from None
    if major == 6:
        value, at = _decode(data, at, depth + 1, room)
        if n == TUPLE_TAG and isinstance(value, list):
            return tuple(value), at
        if n == VALUE_TYPE_TAG and isinstance(value, list) and all(isinstance(item, str) for item in value):
            try:
                return ValueType(*value), at
            except TypeError:
                pass  # fields added by a later version
        raise CborError(f"unknown tag {n}")
    if n > len(data) - at:  # every item takes a byte or more
        raise CborError("ends inside a list")
    room.take(n)
    if major == 4:
        items = []
        for _ in range(n):
            item, at = _decode(data, at, depth + 1, room)
            items.append(item)
        return items, at
    pairs = {}
    for _ in range(n):
        key, at = _decode(data, at, depth + 1, room)
        value, at = _decode(data, at, depth + 1, room)
        pairs[_checked(key)] = value
    return pairs, at


def _checked(key: Any) -> str | bytes | int:
    """A key of a map.  Tuples are refused: Python's hash of them is public; colliding keys can be constructed."""
    if not isinstance(key, (str, bytes, int)):
        raise CborError(f"a key is {key!r:.80}, expected a text, a byte string or a whole number")
    return key
