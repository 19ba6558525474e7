"""Random stacks and graphs: the bridges against their slow references."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.bridges import room
from fastprof.bridges.estimate.estimate import to_stacks
from fastprof.bridges.project.project import to_graph
from fastprof.core.log import Log
from fastprof.core.model import Model, ValueType
from fastprof.core.options import Options
from tests.reference import bridges as reference
from tests.support import profiles
from tests.support.profiles import At, Fn, Frame, Row, Sample

CAPACITIES = st.sampled_from([1, 2, 1000])
VALUES = st.integers(-(2**40), 2**40)
OBJECTS = ["", "/usr/bin/app", "/lib/libx.so", "[vdso]"]
FUNCTIONS = st.builds(
    Fn,
    st.sampled_from(["", "f", "g", "h", "operator()(int)"]),
    st.sampled_from(["", "a.c", "b.h"]),
    st.just(""),
    st.integers(0, 1),
)


@st.composite
def frames(draw: Any) -> Frame:
    lines = draw(st.lists(st.tuples(FUNCTIONS, st.integers(0, 3)), max_size=3))
    address = draw(st.sampled_from([0, 0x1000, 0x1004, 2**64 - 1]))
    name = draw(st.sampled_from(OBJECTS))
    mapping = (name, 0x800, 0x2000, 0x100) if name else None
    return Frame(tuple(lines), address, mapping, draw(st.booleans()))


@st.composite
def stacks_profiles(draw: Any) -> Any:
    pool = draw(st.lists(frames(), min_size=1, max_size=5))
    n = draw(st.integers(1, 3))
    sample = st.builds(
        Sample,
        st.lists(st.sampled_from(pool), max_size=7).map(tuple),
        st.tuples(*[VALUES] * n),
        st.sampled_from([0, 5, 6]),
        st.just(""),
        st.just(0),
    )
    return draw(st.lists(sample, max_size=12))


def bridged(samples: list[Sample], capacity: int, **options: Any) -> tuple[Model, list[tuple[int, Row]]]:
    model = Model()
    types = [ValueType("calls", "count"), ValueType("v1"), ValueType("v2")]
    types = types[: len(samples[0].values) if samples else 1]
    batches = profiles.stacks(model, samples, capacity, types)
    rows = profiles.graph_rows(model, to_graph(batches, model, Options(**options), Log()))
    return model, rows


@given(stacks_profiles(), st.booleans())
def test_stacks_to_graph_is_the_reference(samples: list[Sample], inlines: bool) -> None:
    _, rows = bridged(samples, 1000, inlines=inlines)
    found = {(r.at, r.callee): (r.calls, r.values) for _, r in rows}
    assert len(found) == len(rows)
    assert found == reference.graph(samples, inlines, calls=0)


@given(stacks_profiles(), CAPACITIES, st.booleans())
def test_stacks_to_graph_whatever_the_batches(samples: list[Sample], capacity: int, per_thread: bool) -> None:
    model, rows = bridged(samples, capacity, per_thread=per_thread)
    assert rows == bridged(samples, 1000, per_thread=per_thread)[1]
    sums: Counter[Any] = Counter()
    for part, row in rows:
        if row.callee is None:
            profiles.add(sums, model.parts[part].thread or 0, row.values)
    expected: Counter[Any] = Counter()
    for sample in samples:
        profiles.add(expected, sample.thread if per_thread else 0, sample.values)
    assert +sums == +expected
    assert -sums == -expected


@given(stacks_profiles(), CAPACITIES, st.booleans(), st.booleans())
def test_stacks_to_graph_whatever_the_limit(
    samples: list[Sample], capacity: int, per_thread: bool, inlines: bool
) -> None:
    # a negative call count never reduces an arc's count: which ones meet positive counts depends on the limit
    samples = [s._replace(values=(abs(s.values[0]), *s.values[1:])) for s in samples]
    options = {"per_thread": per_thread, "inlines": inlines}
    model, whole = bridged(samples, 1000, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "LEAST_NODES", 1)
        small, rows = bridged(samples, capacity, max_memory=1, **options)
    assert [(vars(small.parts[part]), row) for part, row in rows] == [
        (vars(model.parts[part]), row) for part, row in whole
    ]


@given(stacks_profiles(), st.permutations(range(12)))
def test_order_of_rows_does_not_depend_on_the_order_of_samples(samples: list[Sample], order: list[int]) -> None:
    shuffled = [samples[i] for i in order if i < len(samples)]

    def rows(samples: list[Sample]) -> list[Any]:
        found = bridged(samples, 1000)[1]
        return [(r.at.function[:3], r.at[1:], r.callee and r.callee[:3], r.calls, r.values) for _, r in found]

    assert rows(samples) == rows(shuffled)


NAMES = [Fn(name, f"{name}.c") for name in "abcdef"]
PLACES = st.builds(
    lambda f, line, inlined: At(f, "x.h" if inlined else f.file, line),
    st.sampled_from(NAMES),
    st.integers(1, 2),
    st.booleans(),
)


@st.composite
def graphs(draw: Any, cost: Any) -> Any:
    n = draw(st.integers(1, 2))
    return draw(
        st.lists(
            st.builds(
                Row, PLACES, st.none() | st.sampled_from(NAMES), st.integers(0, 9), st.tuples(*[cost] * n), st.just(0)
            ),
            max_size=14,
        )
    )


def estimated(rows: list[Row], capacity: int = 1000, **options: Any) -> list[Sample]:
    model = Model()
    batches = profiles.graph(model, rows, capacity, ("line",))
    return profiles.samples(model, to_stacks(batches, model, Options(**options), Log()))


def place(frame: Frame) -> At:
    return reference.positions(frame, False)[0]


def as_shown(at: At) -> At:
    """A position as the estimate shows it: a line of another file belongs to a function of that file."""
    return at._replace(function=at.function._replace(file=at.file))


def self_costs(rows: list[Row]) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for row in rows:
        if row.callee is None:
            profiles.add(total, as_shown(row.at), row.values)
    return total


MODES = st.fixed_dictionaries(
    {"stacks": st.sampled_from(["self", "arcs", "estimate"]), "prune": st.sampled_from([0.0, 1e-5, 0.2, 1.0])}
)


@given(graphs(VALUES), MODES, CAPACITIES)
def test_self_costs_are_exact(rows: list[Row], options: dict[str, Any], capacity: int) -> None:
    samples = estimated(rows, capacity, **options)
    total: Counter[Any] = Counter()
    for sample in samples:
        profiles.add(total, place(sample.frames[-1]), sample.values)
        functions = [place(f).function for f in sample.frames]
        assert len({f.name for f in functions}) == len(functions)
        if options["stacks"] == "self":
            assert len(functions) <= 1 or functions[0].name == "[pruned]"
        if options["stacks"] == "arcs":
            assert len(functions) <= 2
    expected = self_costs(rows)
    assert {k: v for k, v in total.items() if v} == {k: v for k, v in expected.items() if v}
    assert samples == estimated(rows, 1000, **options)


def without_cycles(rows: list[Row]) -> list[Row]:
    """Functions only call later ones."""
    return [row for row in rows if row.callee is None or row.callee.name > row.at.function.name]


@given(graphs(st.integers(1, 10**6)).map(without_cycles))
def test_callers_share_as_their_arcs(rows: list[Row]) -> None:
    samples = estimated(rows, prune=0.0)
    found: Counter[Any] = Counter()
    for sample in samples:
        profiles.add(found, tuple(place(f) for f in sample.frames), sample.values)
    expected: dict[Any, Any] = {}
    for function in {row.at.function for row in rows}:
        own = self_costs([row for row in rows if row.at.function == function])
        for path, share in reference.shares(rows, function).items():
            for (at, k), cost in own.items():
                expected[(*map(as_shown, path), at), k] = cost * share
    for key in expected.keys() | found.keys():
        # whole units, rounded once
        assert abs(found[key] - expected.get(key, 0)) < 1 + 1e-6, key


@given(graphs(st.integers(1, 10**6)))
def test_in_cycles_direct_callers_share_as_their_arcs(rows: list[Row]) -> None:
    """Only callers that begin no stack containing the function, and whose arcs have a context."""
    found: Counter[Any] = Counter()
    for sample in estimated(rows, prune=0.0, frames="function"):
        names = [f.lines[0][0].name for f in sample.frames]
        assert "[pruned]" not in names
        found[names[-1]] += sample.values[0]
        found[tuple(names[-2:])] += sample.values[0] if len(names) > 1 else 0
    arcs: Counter[Any] = Counter()
    for row in rows:
        if row.callee and row.callee != row.at.function:
            arcs[row.at.function.name, row.callee.name] += row.values[0]
    for (caller, callee), weight in arcs.items():
        for other, its in [(o, w) for (o, c), w in arcs.items() if c == callee and o != caller]:
            if found[caller, callee] and found[other, callee]:
                # each is in whole units, rounded once
                a, b = found[caller, callee], found[other, callee]
                assert (a - 2) * its <= (b + 2) * weight, (caller, other, callee)


@given(graphs(st.integers(0, 100)))
def test_a_graph_of_estimated_stacks_has_the_same_self_costs(rows: list[Row]) -> None:
    model = Model()
    stacks = to_stacks(profiles.graph(model, rows, 1000, ("line",)), model, Options(), Log())
    again = [row for _, row in profiles.graph_rows(model, to_graph(stacks, model, Options(), Log()))]
    assert +self_costs(again) == +self_costs(rows)
