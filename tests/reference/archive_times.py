"""Times of a timeline's chunk, for archive.py."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.reference.archive_bytes import MASK, Bytes


@dataclass
class At:
    ref: int
    frac: int = 1 << 31
    history: int = 0
    jitter: int = 1


class Times:
    def __init__(self, tables: Bytes, words: Bytes, bits: Bytes) -> None:
        first = tables.varint()
        self.q = tables.varint()
        self.has_jitter = tables.u8()
        self.limits = tables.varint(), tables.varint()
        plain, hashed = self.keys(tables), self.keys(tables)
        self.pools = [self.table(tables) for _ in range(8)]
        self.jitters = [self.table(tables) for _ in range(48 if self.has_jitter else 0)]
        self.plain = {key: self.table(tables) for key in plain}
        self.hashed = {key: self.table(tables) for key in hashed}
        assert tables.at == len(tables.data)
        self.words = words
        self.x = [struct.unpack("<I", words.take(4))[0] for _ in range(2)]
        self.bits = int.from_bytes(bits.data, "little")
        self.at: dict[int, At] = {}
        self.last = At(first)

    @staticmethod
    def keys(b: Bytes) -> list[int]:
        key, found = -1, []
        for _ in range(b.varint()):
            key += 1 + b.varint()
            found.append(key)
        return found

    @staticmethod
    def table(b: Bytes) -> list[tuple[int, int]]:
        symbol, found = -1, []
        for _ in range(b.varint()):
            symbol += 1 + b.varint()
            found.append((symbol, b.varint()))
        assert sum(f for _, f in found) in (0, 1024)
        return found

    def symbol(self, coder: int, table: list[tuple[int, int]]) -> int:
        place, c = self.x[coder] % 1024, 0
        for symbol, f in table:
            if place < c + f:
                x = f * (self.x[coder] >> 10) + place - c
                if x < 1 << 16:
                    x = x << 16 | struct.unpack("<H", self.words.take(2))[0]
                self.x[coder] = x
                return symbol
            c += f
        raise AssertionError("an empty table")

    def raw(self, n: int) -> int:
        value = self.bits & ((1 << n) - 1)
        self.bits >>= n
        return value

    def next(self, thread: int, key: int | None, pool: int) -> int:
        if thread not in self.at:
            self.at[thread] = At(self.last.ref, self.last.frac, self.last.history, self.last.jitter)
        at = self.last = self.at[thread]
        table = self.pools[pool]
        if key is not None:
            table = self.plain.get(key, table)
            table = self.hashed.get((key * 27 + at.history) * 2654435761 % 2**32 >> 14, table)
        symbol = self.symbol(0, table)
        at.history = at.history % 9 * 3 + sum(symbol > limit for limit in self.limits)
        if symbol == 504:
            at.ref = (at.ref + self.raw(64)) & MASK
            at.frac = 1 << 31
            return at.ref
        k = symbol
        if symbol >= 32:
            o = (symbol - 32) // 8 + 2
            k = (8 + (symbol - 32) % 8 << o) + self.raw(o)
        exact = (at.ref << 32) + at.frac + k * self.q
        at.ref, at.frac = exact >> 32 & MASK, exact & 0xFFFFFFFF
        if not self.has_jitter:
            return at.ref
        e = self.symbol(1, self.jitters[at.jitter * 16 + (at.frac >> 28)])
        miss = self.raw(64) if e == 3 else e - 1
        at.jitter = 1 if e == 3 else e
        time = (at.ref + miss) & MASK
        if miss not in (-1, 0, 1, MASK) or k > 4096:
            at.ref, at.frac = time, 1 << 31
        else:
            exact = (at.ref << 32) + at.frac + (-1 if miss == MASK else miss) * (1 << 28)
            at.ref, at.frac = exact >> 32 & MASK, exact & 0xFFFFFFFF
        return time
