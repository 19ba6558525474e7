"""Thrift's compact protocol, in which Parquet has its metadata.

    struct   fields, each: its number less the previous one << 4 | type, then the value; a 0 at the end
    integer  zigzag varint;   bytes: length varint, then the bytes
    list     number of items << 4 | type of the items, or from 15 items on f0 | type, number varint; then the items
    boolean  true or false is the type

    15 0e 15 04 00    field 1 = 7, field 2 = 2

Source: github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastprof.core._typing import NamedTuple
from fastprof.core.varint import varint

_TRUE, _FALSE, _BYTE, _I32, _I64, _BYTES, _LIST, _STRUCT = 1, 2, 3, 5, 6, 8, 9, 12


class Value(NamedTuple):
    type: int
    data: bytes


def i32(n: int) -> Value:
    return Value(_I32, varint(n << 1 ^ n >> 63))


def i64(n: int) -> Value:
    return Value(_I64, varint(n << 1 ^ n >> 63))


def byte(n: int) -> Value:
    return Value(_BYTE, bytes((n,)))


def boolean(yes: bool) -> Value:
    return Value(_TRUE if yes else _FALSE, b"")


def binary(data: bytes) -> Value:
    return Value(_BYTES, varint(len(data)) + data)


def items(values: list[Value]) -> Value:
    """A list, which is not empty or one of structs."""
    n, type_ = len(values), values[0].type if values else _STRUCT
    head = bytes((n << 4 | type_,)) if n < 15 else bytes((0xF0 | type_,)) + varint(n)
    return Value(_LIST, head + b"".join([value.data for value in values]))


def struct(fields: Mapping[int, Value | None]) -> Value:
    """Fields by number, in ascending order; None: a missing one."""
    found, last = bytearray(), 0
    for number, value in fields.items():
        if value is not None:
            found.append((number - last) << 4 | value.type)
            found += value.data
            last = number
    found.append(0)
    return Value(_STRUCT, bytes(found))
