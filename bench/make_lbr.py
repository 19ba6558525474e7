"""A recording with branch stacks of any size: the records of a small one, repeated.

python bench/make_lbr.py test.lbr 50 big.lbr        50 times its samples, with later times
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

_SAMPLE = 9
_TIME = 24  # offset in a sample: after the header, IP and TID


def repeated(data: bytes, times: int) -> tuple[bytes, list[bytes], bytes]:
    """The header, the pieces of the records, and the sections after them, of a file in little-endian order."""
    at, nbytes = struct.unpack_from("<QQ", data, 40)
    samples, others = [], []
    while at < struct.unpack_from("<Q", data, 40)[0] + nbytes:
        (kind,), (n,) = struct.unpack_from("<I", data, at), struct.unpack_from("<H", data, at + 6)
        (samples if kind == _SAMPLE else others).append(data[at : at + n])
        at += n
    first, last = (struct.unpack_from("<Q", one, _TIME)[0] for one in (samples[0], samples[-1]))
    pieces = [b"".join(others)]
    for k in range(times):
        more = bytearray(b"".join(samples))
        place = 0
        for one in samples:
            struct.pack_into(
                "<Q", more, place + _TIME, struct.unpack_from("<Q", one, _TIME)[0] + k * (last - first + 1)
            )
            place += len(one)
        pieces.append(bytes(more))
    header = bytearray(data[: struct.unpack_from("<Q", data, 40)[0]])
    whole = sum(map(len, pieces))
    struct.pack_into("<Q", header, 48, whole)
    rest = bytearray(data[at:])
    n_features = sum(bin(byte).count("1") for byte in data[72:104])
    for k in range(n_features):
        (place,) = struct.unpack_from("<Q", rest, 16 * k)
        struct.pack_into("<Q", rest, 16 * k, place + whole - nbytes if place else 0)
    return bytes(header), pieces, bytes(rest)


def main() -> None:
    source, times, target = sys.argv[1:]
    header, pieces, rest = repeated(Path(source).read_bytes(), int(times))
    with open(target, "wb") as out:
        out.write(header)
        out.writelines(pieces)
        out.write(rest)


if __name__ == "__main__":
    main()
