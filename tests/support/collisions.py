"""Keys that collide under the constants of the hash tables: csrc/core/model.h, fold_private.h, numbers.h.

A key is selected if its search begins in one 64th of the table; selected keys then far outnumber the slots there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

FIRST, SECOND = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93  # the constants that fp_mix xors into its words
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
PART = 64


def _mix(a: Words, b: Words) -> Words:
    """fp_mix: the two halves of a 128-bit product, xored."""
    a, b = a ^ np.uint64(FIRST), b ^ np.uint64(SECOND)
    a0, a1, b0, b1 = a & LOW, a >> HALF, b & LOW, b >> HALF
    middle = (a0 * b0 >> HALF) + (a1 * b0 & LOW) + (a0 * b1 & LOW)
    high = a1 * b1 + (a1 * b0 >> HALF) + (a0 * b1 >> HALF) + (middle >> HALF)
    return (a * b) ^ high


def row_hashes(*columns: Words | int) -> Words:
    """fp_table_hash of many rows, column by column."""
    words = [np.asarray(column, np.uint64) for column in columns]
    hashed: Words = np.asarray([len(words)], np.uint64)
    for i in range(0, len(words) - 1, 2):
        hashed = _mix(hashed, words[i] | words[i + 1] << HALF)
    return (_mix(hashed, words[-1]) if len(words) % 2 else hashed) & LOW


def near(n: int, hashes: Callable[[Words], Words], first: int = 1) -> list[int]:
    """n numbers from `first` on, whose rows begin in a 64th of a table for n rows."""
    slots, found = 64, list[int]()
    while slots // 4 * 3 <= n:
        slots *= 2
    while len(found) < n:
        numbers = np.arange(first, first + (1 << 16), dtype=np.uint64)
        found += numbers[(hashes(numbers) & np.uint64(slots - 1)) < slots // PART].tolist()
        first += 1 << 16
    return found[:n]


def near_pairs(n: int, is_near: Callable[[Words, Words], NDArray[np.bool_]]) -> list[tuple[int, int]]:
    """Pairs of numbers from 1 to n that collide."""
    numbers = np.arange(1, n + 1, dtype=np.uint64)
    return [(i, j) for i in range(1, n + 1) for j in numbers[is_near(np.uint64(i), numbers)].tolist()]


def near_arcs(n: int) -> list[tuple[int, int]]:
    """Pairs of caller and callee, functions from 1 to n."""
    return near_pairs(n, lambda caller, callee: (caller << HALF | callee) * np.uint64(FIRST) >> np.uint64(58) == 0)


def near_stacks(n: int) -> list[tuple[int, int]]:
    """Pairs of node and frame, both from 1 to n, in a table of up to 2^19 slots."""
    slots = 1 << 13
    while slots // 4 * 3 <= n * n // PART:
        slots *= 2
    return near_pairs(n, lambda node, frame: (row_hashes(node, frame) & np.uint64(slots - 1)) < slots // PART)


def near_numbers(n: int) -> list[int]:
    """Numbers of Callgrind names, 63 bits: the product with the constant is below 2^32, and its upper half is the
    hash."""
    inverse = pow(FIRST, -1, 1 << 64)
    found = (k * inverse % (1 << 64) for k in range(1, 3 * n))
    return [number for number in found if number < 1 << 63][:n]


def near_strings(n: int) -> list[bytes]:
    """The first eight of 32 bytes make one factor 0, and the last sixteen are equal: so is the hash.

    The sum of fp_hash_bytes begins with the length, and this is too short for a second one.
    """
    return [(FIRST ^ 32).to_bytes(8, "little") + b"%08xsixteen bytes .." % i for i in range(n)]
