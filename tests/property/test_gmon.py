"""Inclusive times of gmon.out against slow ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fastprof.formats.gmon.propagate import cycles, inclusive
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
    assert cycles(arcs)[n] == 0 and cycles(arcs)[0] == n
    assert inclusive({n: 5}, arcs)[0, 1] == 5
