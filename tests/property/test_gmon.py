"""Inclusive times of gmon.out against slow ones."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import Counter, defaultdict
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof.core.cycles import cycles
from fastprof.formats.gmon.propagate import inclusive
from tests.reference import gmon

FUNCTION = st.integers(0, 7)
ARCS = st.dictionaries(st.tuples(FUNCTION, FUNCTION), st.integers(0, 1 << 32), max_size=16)


@given(st.dictionaries(FUNCTION, st.integers(0, 1 << 40)), ARCS)
def test_times_are_shared_as_by_the_slow_one(own: dict[int, int], arcs: dict[tuple[int, int], int]) -> None:
    found, expected = inclusive(own, arcs), gmon.inclusive(own, arcs)
    assert found.keys() == expected.keys()
    assert all(abs(found[arc] - expected[arc]) <= 8 * len(arcs) for arc in arcs)  # nanoseconds, rounded


def test_long_chains_of_calls() -> None:
    n = 100_000
    arcs = {(k, k + 1): 1 for k in range(n)}
    found = cycles({**{k: [k + 1] for k in range(n)}, n: []})
    assert found[n] == 0 and found[0] == n
    assert inclusive({n: 5}, arcs)[0, 1] == 5


LOW = 0x1000
RECORD = st.tuples(st.integers(0, 1 << 8), st.integers(0, 1 << 8), st.integers(0, (1 << 32) - 1))
BINS = st.lists(st.integers(0, (1 << 16) - 1), min_size=1, max_size=6)


@given(st.lists(RECORD, max_size=6), BINS, st.integers(1, 1 << 8), st.integers(1, 1000), st.sampled_from(["<Q", ">I"]))
def test_a_file_is_shared_byte_by_byte(
    records: list[tuple[int, int, int]], bins: list[int], length: int, rate: int, layout: str
) -> None:
    """Without a program, functions begin where calls lead to."""
    arcs = [(LOW + site, LOW + callee, n) for site, callee, n in [(0, 0, 1), *records]]
    order, word = layout
    data = b"gmon" + struct.pack(f"{order}i12x", 1)
    head = (LOW, LOW + length, len(bins), rate, b"seconds", b"s", *bins)
    data += struct.pack(f"{order}b{word}{word}ii15sc{len(bins)}H", 0, *head)
    data += b"".join(struct.pack(f"{order}b{word}{word}I", 1, *arc) for arc in arcs)
    starts = sorted({callee for _, callee, _ in arcs})

    def function(address: int) -> int:
        return starts[bisect_right(starts, address) - 1]

    own: dict[int, Fraction] = defaultdict(Fraction)
    for k, count in enumerate(bins):
        first, end = (LOW + length * i // len(bins) for i in (k, k + 1))
        for byte in range(first, max(end, first + 1)):
            own[function(byte)] += Fraction(count * 10**9, rate * (max(end, first + 1) - first))
    calls: Counter[int] = Counter()
    for _, callee, n in arcs:
        calls[callee] += n
    found = {int(row.name, 16): row for row in fastprof.top(data, n=0).rows if row.name[0] != "<"}
    assert {*found} == {*own, *calls, *(function(site) for site, _, _ in arcs)}
    for start, row in found.items():
        assert abs(row.self - own[start]) <= 2 * len(bins) and (row.calls or 0) == calls[start]
    assert sum(row.self for row in found.values()) == sum(n * 10**9 // rate for n in bins)
