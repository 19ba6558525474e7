"""Random stacks, graphs and timelines: the figures of `top` against the slow references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.bridges import room
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.plan import make
from fastprof.verbs.function_costs import Arc, ChosenValue, FunctionCosts
from fastprof.verbs.top import END
from tests.property.test_bridges import CAPACITIES, NAMES, PLACES, VALUES, stacks_profiles
from tests.property.test_xray import CASES
from tests.reference import fold as reference_fold
from tests.reference import top as reference
from tests.reference import xray as reference_xray
from tests.support import product, profiles
from tests.support.profiles import At, Fn, Row, Sample, fn
from tests.support.strategies_xray import Case


def costs(model: Model, by: str, value: str = "v1", second: str | None = None, cycles: bool = True) -> FunctionCosts:
    return FunctionCosts(
        model,
        by,
        ChosenValue(value, "--value"),
        ChosenValue(second, "--sort") if second else None,
        arcs=True,
        cycles=cycles,
    )


def figures(found: FunctionCosts, name: Any) -> dict[Hashable, tuple[int, ...]]:
    """self, inclusive, calls and second by name; each name occurs once."""
    columns = [found.column(c) for c in ("self", "inclusive", "calls", "second")]
    ids = found.largest("self", 1 << 31)
    assert len({name(i) for i in ids}) == len(ids) == found.count
    return {name(i): tuple(column[i] for column in columns) for i in ids}


THINGS = {
    "function": lambda at: at.function,
    "line": lambda at: (at.function, at.file, at.line),
    "file": lambda at: at.file,
    "object": lambda at: at.function.object,
}


@pytest.mark.parametrize("by", THINGS)
@given(samples=stacks_profiles(), capacity=CAPACITIES, least=st.sampled_from([1, 1024]))
def test_stacks(by: str, samples: list[Sample], capacity: int, least: int) -> None:
    model = Model()
    n = len(samples[0].values) if samples else 1
    types = [profiles.ValueType(name) for name in ("v1", "v2", "calls")[:n]]
    found = costs(model, by, second="v2" if n > 1 else None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "LEAST_NODES", least)
        found.stacks(profiles.stacks(model, samples, capacity, types), Options(max_memory=1))
    found.end()

    def name(i: int) -> Hashable:
        if by == "function":
            return fn(model, i)
        if by == "object":
            return model.string(model.row("objects", i)[0]).decode()
        if by == "file":
            return model.string(i).decode()
        function, file, line = found.place(i)
        return fn(model, function), model.string(file).decode(), line

    expected = reference.of_stacks(samples, THINGS[by], 0)
    second = reference.of_stacks(samples, THINGS[by], 1) if n > 1 else {}
    calls = reference.of_stacks(samples, THINGS[by], 2) if n > 2 and by == "function" else {}
    assert figures(found, name) == {
        one: (
            cost.self,
            cost.inclusive,
            calls[one].self if calls else 0,
            second[one].self if second else 0,
        )
        for one, cost in expected.items()
    }


@given(stacks_profiles(), st.sampled_from(["thread", "label"]))
def test_threads_and_labels(samples: list[Sample], by: str) -> None:
    samples = [s._replace(label="" if s.thread == 5 else "x") for s in samples]
    model = Model()
    found = costs(model, by, value="v0")
    found.stacks(profiles.stacks(model, samples, 3), Options())
    names = {0: "(unknown)", 5: "process 7, thread 5", 6: "process 7, thread 6"}
    expected: Counter[str] = Counter()
    for sample in samples:
        expected[names[sample.thread] if by == "thread" else ("k=x" if sample.label else "(none)")] += sample.values[0]
    assert {name: sums[0] for name, sums in found.named.items()} == dict(expected)


ROWS = st.lists(
    st.builds(Row, PLACES, st.none() | st.sampled_from(NAMES), st.integers(0, 2), st.tuples(VALUES, VALUES)),
    max_size=20,
)


@given(st.lists(ROWS, min_size=1, max_size=3), CAPACITIES, st.booleans())
def test_functions_of_graphs(parts: list[list[Row]], capacity: int, cycles: bool) -> None:
    model = Model()
    found = costs(model, "function", "v0", "v1", cycles)
    found.graph(batch for rows in parts for batch in profiles.graph(model, rows, capacity))
    found.end()
    expected, members = reference.of_graph(parts, 0, cycles)
    second, _ = reference.of_graph(parts, 1, cycles)
    got = figures(found, lambda i: fn(model, i))
    assert got == {f: (*cost, second[f].self) for f, cost in expected.items()}
    assert {frozenset(fn(model, i) for i in cycle) for cycle in found.cycle_members().values()} == members
    arcs: Counter[Any] = Counter()
    for row in (row for rows in parts for row in rows if row.callee):
        profiles.add(arcs, (row.at.function, row.callee), (row.values[0], row.calls))
    cycle_of = {f: cycle for cycle in members for f in cycle}
    for into in (True, False):
        listed: Counter[Any] = Counter()
        for i in found.largest("self", 1 << 31):
            all_of_it = found.arcs(i, into)
            for arc in all_of_it:
                pair = fn(model, arc.caller), fn(model, arc.callee)
                assert pair[into] == fn(model, i)
                profiles.add(listed, shown(cycle_of, pair, into), (arc.cost, arc.calls))
            few = sorted(all_of_it, key=arc_key)[:2]
            others = found.largest_arcs(i, into, 2)
            assert sorted(others) == sorted(arc.caller if into else arc.callee for arc in few)
            again = (Arc(*arc) for arc in found.arcs_with(i, into, [*others, *others, 1 << 31]))
            assert sorted(again, key=arc_key) == few
        expected_arcs: Counter[Any] = Counter()
        for (pair, k), figure in arcs.items():
            if end := shown(cycle_of, pair, into):
                expected_arcs[end, k] += figure
        assert listed == expected_arcs


def arc_key(arc: Arc) -> tuple[int, ...]:
    return -abs(arc.cost), -arc.calls, arc.caller, arc.callee


def shown(cycle_of: dict[Fn, Any], pair: tuple[Fn, Fn], into: bool) -> Any:
    """The listed form of a call: a call from outside calls a cycle, not its member."""
    caller, callee = pair
    mine, other = (callee, caller) if into else pair
    cycle = cycle_of.get(callee)
    if cycle is None or cycle_of.get(caller) == cycle:
        return mine, (*other, cycle_of.get(other))
    return None if into else (mine, cycle)


@given(ROWS)
def test_lines_of_graphs(rows: list[Row]) -> None:
    model = Model()
    found = costs(model, "line", "v0")
    found.graph(profiles.graph(model, rows, 3))
    expected: dict[Hashable, list[int]] = {}
    for row in rows:
        sums = expected.setdefault((row.at.function, row.at.file, row.at.line), [0, 0, 0, 0])
        sums[0] += row.values[0] * (row.callee is None)
        sums[1] += row.values[0]
        sums[2] += row.calls * (row.callee is not None)

    def name(i: int) -> Hashable:
        function, file, line = found.place(i)
        return fn(model, function), model.string(file).decode(), line

    assert figures(found, name) == {place: tuple(sums) for place, sums in expected.items()}


@given(CASES)
def test_timelines(case: Case) -> None:
    """Inclusive time counts once, however often a function is on the stack."""
    expected = reference_fold.fold(reference_xray.read(case.data, repair=True))
    opened = product.open_input(case.data)
    options, model = Options(time_unit="ticks"), opened.model
    found = costs(model, "function", "time")
    way = make([[opened.reader]], END, options)
    found.timeline(way.rows(model, opened.log), options, Log())
    found.end()
    got = figures(found, lambda i: fn(model, i).name)
    assert {name: values[:3] for name, values in got.items()} == {
        f"#{f}": (expected.self_ticks[f], expected.inclusive_ticks[f], n) for f, n in expected.calls.items()
    }
    assert not found.cycle_members()


def test_many_blocks_of_a_function_take_memory_for_arcs_only() -> None:
    """Like Xdebug's output: one block per call, callee first.  Equal arcs are merged from time to time."""
    model = Model()
    found = costs(model, "function", "v0", cycles=False)
    place = [At(f, f.file, 1) for f in NAMES]
    calls = [Row(place[n % 5], NAMES[(n + 1) % 6], 1, (n,)) for n in range(30)]
    batches = [*profiles.graph(model, calls, 30)]
    for _ in range(10_000):
        found.graph(batches)
    found.end()
    sums: Counter[Any] = Counter()
    for row in calls:
        profiles.add(sums, row.callee, (row.values[0], 1))
    for i in found.largest("calls", 6):
        assert (found.column("inclusive")[i], found.column("calls")[i]) == (
            sums[fn(model, i), 0] * 10_000,
            sums[fn(model, i), 1] * 10_000,
        ) or not sums[fn(model, i), 1]
