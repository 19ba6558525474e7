"""Numbers and metadata of archives, for archive.py."""

from __future__ import annotations

import struct
from typing import Any

MASK = (1 << 64) - 1


def zag(v: int) -> int:
    return v >> 1 if v % 2 == 0 else -(v >> 1) - 1


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, n: int) -> bytes:
        assert self.at + n <= len(self.data)
        self.at += n
        return self.data[self.at - n : self.at]

    def u8(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def delta(self) -> int:
        return zag(self.varint())


def cbor(b: Bytes) -> Any:
    first = b.u8()
    major, info = first >> 5, first & 31
    if first in (0xF4, 0xF5, 0xF6):
        return {0xF4: False, 0xF5: True, 0xF6: None}[first]
    if first == 0xFB:
        return struct.unpack(">d", b.take(8))[0]
    n = info if info < 24 else int.from_bytes(b.take(1 << info - 24), "big")
    if major == 0:
        return n
    if major == 1:
        return -1 - n
    if major == 2:
        return b.take(n)
    if major == 3:
        return b.take(n).decode("utf-8", "surrogatepass")
    if major == 4:
        return [cbor(b) for _ in range(n)]
    if major == 5:
        return {cbor(b): cbor(b) for _ in range(n)}
    assert n in (60500, 60501)
    return tuple(cbor(b))


def varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])


def zig(v: int) -> int:
    return 2 * v if v >= 0 else -2 * v - 1
