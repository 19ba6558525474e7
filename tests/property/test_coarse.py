"""Rows of functions, lines, files, objects and arcs, against sums in a dictionary."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.bridges.rows.coarse import BY, coarse
from fastprof.core.errors import FastprofError
from fastprof.core.model import Model
from tests.support.profiles import At, Fn, Row, graph, graph_rows

FUNCTIONS = st.builds(
    Fn, st.sampled_from("fgh"), st.sampled_from(["a.c", "b.c"]), st.sampled_from(["", "app"]), st.integers(0, 2)
)
PLACES = st.builds(At, FUNCTIONS, st.sampled_from(["a.c", "inl.h"]), st.integers(0, 3), st.integers(0, 2))
ROWS = st.lists(
    st.builds(Row, PLACES, st.none() | FUNCTIONS, st.integers(0, 5), st.tuples(st.integers(-9, 9), st.integers(-9, 9))),
    max_size=30,
)


def key(row: Row, by: str) -> tuple[Any, ...]:
    """The key under which rows are merged."""
    f, place = row.at.function, row.at
    plain = (f.object, f.file, f.name, f.line)
    callee = row.callee and (row.callee.object, row.callee.file, row.callee.name, row.callee.line)
    return {
        "function": plain,
        "line": (*plain, place.file, place.line),
        "file": ("", place.file, place.file, 0),
        "object": (f.object, "", f.object, 0),
        "arc": (*plain, callee),
    }[by]


@given(ROWS, st.sampled_from([*BY]), st.sampled_from([1, 2, 1000]))
def test_as_sums_in_a_dictionary(rows: list[Row], by: str, capacity: int) -> None:
    model = Model()
    expected: Counter[Any] = Counter()
    for row in rows:
        if row.callee is None or by == "arc":
            calls = (row.calls if row.callee else 0,) if by == "arc" else ()
            for k, value in enumerate((*row.values, *calls)):
                expected[key(row, by), k] += value
    got: Counter[Any] = Counter()
    for _, row in graph_rows(model, coarse(graph(model, rows, capacity), model, by)):
        assert row.at.address == 0
        assert row.at.line == 0 or by == "line"
        for k, value in enumerate(row.values):
            got[key(row, by), k] += value
    assert {k: n for k, n in got.items() if n} == {k: n for k, n in expected.items() if n}


@pytest.mark.parametrize("by", BY)
def test_rows_that_stand_together_become_one(by: str) -> None:
    model = Model()
    f, g = Fn("f", "a.c", "app"), Fn("g", "a.c", "app")
    rows = [Row(At(f, "a.c", 1), None, 0, (n,)) for n in range(5)] + [
        Row(At(f, "a.c", 1), g, 1, (n,)) for n in range(5)
    ]
    found = [row for _, row in graph_rows(model, coarse(graph(model, rows), model, by))]
    expected = [(False, (10, 0)), (True, (10, 5))] if by == "arc" else [(False, (10,))]
    assert [(row.callee is not None, row.values) for row in found] == expected


@pytest.mark.parametrize(
    ("rows", "by", "what"),
    [
        (
            [Row(At(Fn("f"), "a.c", 7), None, 0, (1 << 62,))] * 2,
            "function",
            "line 7 in value type v0 exceeds 2^63 - 1",
        ),
        ([Row(At(Fn("f"), "a.c", 7), Fn("g"), 1 << 63, (1,))], "arc", "line 7 in value type calls exceeds 2^63 - 1"),
    ],
)
def test_what_does_not_fit(rows: list[Row], by: str, what: str) -> None:
    model = Model()
    with pytest.raises(FastprofError) as caught:
        list(coarse(graph(model, rows), model, by))
    assert what in str(caught.value)
