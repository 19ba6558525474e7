"""The archive's metadata encoding: the part of CBOR (RFC 8949) that plain values need.

None, bool, int of any size up to 64 bits, float, str, bytes, list, dict;
tuple (an array under tag 60500, so that it comes back as a tuple) and the
model's ValueType (the array of its fields under tag 60501).  _cbor.pyx decodes it.
"""

from __future__ import annotations

import struct

from fastprof.core._typing import Any
from fastprof.core.model import ValueType
from fastprof.formats.archive._cbor import TUPLE_TAG, VALUE_TYPE_TAG, checked
from fastprof.formats.archive._cbor import CborError as CborError
from fastprof.formats.archive._cbor import loads as loads


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
            _encode(checked(key), out)
            _encode(item, out)
    else:
        raise CborError(f"a {type(value).__name__} cannot be stored")
