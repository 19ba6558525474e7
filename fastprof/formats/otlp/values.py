"""Attribute values that are neither text nor integers, as text."""

import struct

from fastprof.core._typing import Any
from fastprof.core.varint import varint_at

_DEEPEST = 100  # levels of arrays and lists of keys, as in protobuf's own readers


def text_of(data: bytes, strings: list[bytes] | None = None) -> bytes:
    """An AnyValue: a double as JSON, bytes in hexadecimal, arrays and lists of keys as JSON."""
    value = decode(data)
    if isinstance(value, bytes):
        return value.hex().encode()
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    import json

    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogateescape")


def texts_of(data: bytes) -> list[bytes]:
    """The texts of an array, or a single text."""
    value = decode(data)
    found = value if isinstance(value, list) else [value]
    return [one.encode("utf-8", "surrogateescape") for one in found if isinstance(one, str)]


def _plain(value: Any) -> Any:
    """Replace bytes, which JSON lacks, by hexadecimal digits."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


def decode(data: bytes, depth: int = 0) -> Any:
    """An AnyValue as a Python object.  Errors: IndexError, ValueError."""
    if depth == _DEEPEST:
        raise ValueError
    value: Any = None
    for number, wire, content in _fields(data):
        match number, wire:
            case 1, 2:
                value = content.decode("utf-8", "surrogateescape")
            case 2, 0:
                value = bool(content)
            case 3, 0:
                value = content - (content >> 63 << 64)
            case 4, 1:
                value = struct.unpack("<d", content)[0]
            case 5, 2:
                value = [decode(one, depth + 1) for n, w, one in _fields(content) if (n, w) == (1, 2)]
            case 6, 2:
                value = dict(_pair(one, depth + 1) for n, w, one in _fields(content) if (n, w) == (1, 2))
            case 7, 2:
                value = content
            case _:
                pass
    return value


def _pair(data: bytes, depth: int) -> tuple[str, Any]:
    key, value = "", None
    for number, wire, content in _fields(data):
        if (number, wire) == (1, 2):
            key = content.decode("utf-8", "surrogateescape")
        elif (number, wire) == (2, 2):
            value = decode(content, depth)
    return key, value


def _fields(data: bytes) -> list[tuple[int, int, Any]]:
    """(number, wire type, content) of a message."""
    found: list[tuple[int, int, Any]] = []
    at = 0
    while at < len(data):
        tag, at = varint_at(data, at)
        wire = tag & 7
        content: Any
        if wire == 0:
            content, at = varint_at(data, at)
            content &= (1 << 64) - 1
        else:
            n, at = varint_at(data, at) if wire == 2 else ({1: 8, 5: 4}.get(wire, len(data)), at)
            content = data[at : at + n]
            if len(content) < n or wire not in (1, 2, 5):
                raise ValueError
            at += n
        found.append((tag >> 3, wire, content))
    return found
