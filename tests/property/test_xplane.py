"""Profiles of XLA against a slow reader of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.reference import xplane
from tests.reference.xplane import Event, Line, Plane
from tests.unit.test_xplane import expected, rows

NAMES = st.sampled_from(["f", "g", "$a.py:7 h", "$<x> y", "dot.3", ""])
TIMES = st.integers(0, 40)
EVENTS = st.builds(Event, st.integers(1, 4), TIMES, TIMES, st.integers(0, 2))
LINES = st.builds(
    Line, st.integers(-2, 1 << 40), st.just("t"), st.integers(1, 3), st.lists(EVENTS, max_size=8).map(tuple)
)
KINDS = st.dictionaries(st.integers(1, 4), NAMES).map(lambda kinds: tuple(kinds.items()))
PLANES = st.builds(
    Plane, st.sampled_from(["/host:CPU", "/device:TPU:0"]), st.lists(LINES, max_size=4).map(tuple), KINDS
)


@given(st.lists(PLANES, min_size=1, max_size=3))
def test_rows_are_those_of_the_slow_reader(planes: list[Plane]) -> None:
    """Events that do not nest are on lanes, with their times."""
    data = xplane.write(planes)
    assert rows(data) == expected(data)
