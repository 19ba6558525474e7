"""A slow, obvious reader of gperftools CPU profiles: header, records, trailer, text."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass


@dataclass
class Profile:
    word: int
    order: str
    version: int
    period_us: int
    chains: Counter[tuple[int, ...]]
    text: bytes
    trailer: bool


def read(data: bytes) -> Profile:
    """Errors: ValueError if the file is not such a profile or ends inside a record."""
    for letter, word in (("I", 4), ("Q", 8)):
        for order in "<>":
            if len(data) < 5 * word:
                continue
            head = struct.unpack_from(f"{order}5{letter}", data)
            if head[0] == 0 and 3 <= head[1] <= 4096 and head[2] <= 1 and head[3] < 1 << 32:
                return _records(data, order, letter, word, head)
    raise ValueError("no header")


def _records(data: bytes, order: str, letter: str, word: int, head: tuple[int, ...]) -> Profile:
    at = (head[1] + 2) * word
    if at > len(data):
        raise ValueError("header cut")
    chains: Counter[tuple[int, ...]] = Counter()
    while at < len(data):
        if len(data) - at < 2 * word:
            raise ValueError("cut")
        count, depth = struct.unpack_from(f"{order}2{letter}", data, at)
        if depth > 65536 or at + (2 + depth) * word > len(data):
            raise ValueError("cut or deep")
        pcs = struct.unpack_from(f"{order}{depth}{letter}", data, at + 2 * word)
        at += (2 + depth) * word
        if (count, pcs) == (0, (0,)):
            return Profile(word, order, head[2], head[3], chains, data[at:], True)
        chains[pcs] += count
    return Profile(word, order, head[2], head[3], chains, b"", False)


def write(
    chains: list[tuple[int, tuple[int, ...]]],
    *,
    word: int = 8,
    order: str = "<",
    version: int = 0,
    period_us: int = 10_000,
    extra_header: tuple[int, ...] = (),
    trailer: bool = True,
    text: bytes = b"",
) -> bytes:
    letter = "I" if word == 4 else "Q"

    def words(*values: int) -> bytes:
        return struct.pack(f"{order}{len(values)}{letter}", *values)

    head = words(0, 3 + len(extra_header), version, period_us, 0, *extra_header)
    records = b"".join(words(count, len(pcs), *pcs) for count, pcs in chains)
    return head + records + (words(0, 1, 0) + text if trailer else b"")
