"""LEB128: seven bits a byte, the lowest first, the top bit set if more follow."""


def varint(n: int) -> bytes:
    """A number of 64 bits; a negative one is taken modulo 2^64."""
    found = bytearray()
    n &= (1 << 64) - 1
    while n > 0x7F:
        found.append(n & 0x7F | 0x80)
        n >>= 7
    found.append(n)
    return bytes(found)


def varint_at(data: bytes, at: int) -> tuple[int, int]:
    """The number at an offset, and its end.  Errors: IndexError at the end of the data, ValueError beyond 10 bytes."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of more than 10 bytes")
