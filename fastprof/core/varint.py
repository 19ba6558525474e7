"""LEB128: seven bits a byte, the lowest first, the top bit set if more follow."""

from __future__ import annotations


def varint(n: int) -> bytes:
    """A number of 64 bits; a negative one is taken modulo 2^64."""
    found = bytearray()
    n &= (1 << 64) - 1
    while n > 0x7F:
        found.append(n & 0x7F | 0x80)
        n >>= 7
    found.append(n)
    return bytes(found)
