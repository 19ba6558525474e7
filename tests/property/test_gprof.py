"""The text of gprof against a slow printer of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import fastprof
from tests.reference import gprof

NAMES = ["main", "f(int)", "operator() const", "<lambda>", "a [clone .x]", "7up", "x::y<z (1)>"]
FUNCTION = st.integers(0, len(NAMES) - 1)
COST = st.integers(0, 10**6)
ARCS = st.dictionaries(st.tuples(FUNCTION, FUNCTION), st.tuples(st.integers(1, 1 << 40), COST), max_size=12)


@given(st.lists(COST, min_size=len(NAMES), max_size=len(NAMES)), ARCS, st.integers(0, 5))
def test_a_graph_is_what_was_printed(own: list[int], arcs: gprof.Arcs, seed: int) -> None:
    with fastprof.open(gprof.printed(own, arcs, NAMES, seed).encode(), from_="gprof") as profile:
        rows = [*profile.rows("graph")]
    costs = {row["function"]: row["time"] for row in rows if row["kind"] == "cost"}
    calls = {(row["function"], row["callee"]): (row["calls"], row["time"]) for row in rows if row["kind"] == "call"}
    assert costs == {name: 10**7 * cost for name, cost in zip(NAMES, own, strict=True) if cost}
    assert calls == {(NAMES[a], NAMES[b]): (n, 0 if a == b else 10**7 * time) for (a, b), (n, time) in arcs.items()}
