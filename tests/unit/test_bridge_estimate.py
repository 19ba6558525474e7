"""Graph -> stacks: worked examples, pruning, and graphs that no program ever made."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import pytest

from fastprof.bridges import estimate as bridge
from fastprof.bridges.estimate import MAX_DEPTH, to_stacks
from fastprof.core._c import lib
from fastprof.core.errors import FastprofError
from fastprof.core.model import Model, Part
from fastprof.core.options import Options
from fastprof.core.report import Report
from tests.support import profiles
from tests.support.profiles import At, Fn, Row

LIMIT = "the work for estimated stacks has a limit, which %d of the functions met; callers beyond it are [pruned]"
NAMES = {n: Fn(n, f"{n}.c") for n in ("main", "a", "b", "c", "d")}


def name(n: int) -> Fn:
    return Fn(f"f{n}", "f.c")


def at(f: Fn | str, line: int = 1, address: int = 0) -> At:
    f = NAMES[f] if isinstance(f, str) else f
    return At(f, f.file, line, address)


def cost(f: Fn | str, *values: int, line: int = 1) -> Row:
    return Row(at(f, line), None, 0, values)


def call(caller: Fn | str, callee: Fn | str, *values: int, count: int = 1, line: int = 2) -> Row:
    return Row(at(caller, line), NAMES[callee] if isinstance(callee, str) else callee, count, values)


def estimate(rows: list[Row], report: Report | None = None, **options: Any) -> dict[str, tuple[int, ...]]:
    """ "root>...>leaf" -> values."""
    model = Model()
    batches = to_stacks(profiles.graph(model, rows), model, Options(**options), report or Report())
    out: dict[str, tuple[int, ...]] = {}
    for sample in profiles.samples(model, batches):
        path = ">".join(f.lines[-1][0].name for f in sample.frames)
        out[path] = tuple(x + y for x, y in zip(out.get(path, (0,) * 9), sample.values, strict=False))
    return out


DIAMOND = [
    call("main", "a", 30, 3),
    call("main", "b", 10, 1, line=3),
    call("a", "c", 20, 2),
    call("b", "c", 5, 1),
    cost("c", 25, 5),
    cost("a", 10, 1),
    cost("b", 5, 0),
]


def test_example_of_the_docs() -> None:
    report = Report()
    assert estimate(DIAMOND, report) == {
        "main>a": (10, 1),
        "main>b": (5, 0),
        "main>a>c": (20, 4),
        "main>b>c": (5, 1),
    }
    assert report.not_representable == {"call counts": 4}
    assert estimate(DIAMOND, stacks="arcs") == {
        "main>a": (10, 1),
        "main>b": (5, 0),
        "a>c": (20, 4),
        "b>c": (5, 1),
    }
    assert estimate(DIAMOND, stacks="self") == {"a": (10, 1), "b": (5, 0), "c": (25, 5)}


def test_example_of_the_docs_where_the_estimate_is_wrong() -> None:
    x, y = Fn("x"), Fn("y")
    rows = [call(x, "a", 10), call(y, "a", 90), call("a", "c", 10), call("a", "d", 90), cost("c", 10), cost("d", 90)]
    assert estimate(rows) == {"x>a>c": (1,), "y>a>c": (9,), "x>a>d": (9,), "y>a>d": (81,)}


def test_the_output_says_that_it_is_an_estimate() -> None:
    model = Model()
    batches = list(to_stacks(profiles.graph(model, DIAMOND), model, Options(), Report()))
    assert any(b"estimated" in c for c in model.parts[batches[0].part].comments)


def test_the_first_event_is_the_one_to_be_shown_first() -> None:
    model = Model()
    batches = list(to_stacks(profiles.graph(model, DIAMOND), model, Options(), Report()))
    part = model.parts[batches[0].part]
    assert len(part.value_types) == 2
    assert part.extra["default_sample_type"] == part.value_types[0].name


def test_pruned_shares_keep_their_place_in_the_total() -> None:
    rows = [call(name(n), "c", 1 if n else 901) for n in range(100)] + [cost("c", 1000)]
    report = Report()
    assert estimate(rows, report, prune=0.01) == {"f0>c": (901,), "[pruned]>c": (99,)}
    assert report.facts["stacks pruned"] == 1
    # what is pruned further up keeps the callers that are known
    rows = [call(name(n), "b", 1) for n in range(1000)] + [call("b", "c", 1000), cost("c", 1000)]
    assert estimate(rows, prune=0.01) == {"[pruned]>b>c": (1000,)}
    # a caller that is alone is named, however small
    assert estimate([*rows, cost("a", 5), call("main", "a", 5)], prune=0.1)["main>a"] == (5,)


def test_rounding_leaves_nothing_over() -> None:
    rows = [call(name(n), "c", 1) for n in range(7)] + [cost("c", 100), cost("c", -3, line=9)]
    found = estimate(rows)
    assert sum(v for (v,) in found.values()) == 97


def test_cost_beyond_the_callers_has_no_caller() -> None:
    rows = [cost("main", 1), call("main", "a", 30), cost("a", 40)]
    assert estimate(rows) == {"main": (1,), "main>a": (30,), "a": (10,)}


def test_cycles_end() -> None:
    assert estimate([cost("a", 5), call("a", "a", 50)]) == {"a": (5,)}
    assert estimate([cost("a", 5), call("a", "b", 9), call("b", "a", 9)]) == {"b>a": (5,)}
    rows = [call("main", "a", 60), call("main", "b", 40), call("a", "b", 30), call("b", "a", 20), cost("a", 80)]
    assert estimate(rows) == {"main>a": (60,), "main>b>a": (20,)}


def test_zero_arcs_are_shared_by_calls_then_evenly() -> None:
    rows = [call("a", "c", 0, count=3), call("b", "c", 0, count=1), cost("c", 8), call("main", "d", 1), cost("d", 1)]
    assert estimate(rows) == {"a>c": (6,), "b>c": (2,), "main>d": (1,)}
    rows = [call("a", "c", 0, count=0), call("b", "c", 0, count=0), cost("c", 8)]
    assert estimate(rows) == {"a>c": (4,), "b>c": (4,)}


def test_negative_costs_of_differences() -> None:
    assert estimate([call("a", "c", -30), call("b", "c", 10), cost("c", -20)]) == {"a>c": (-15,), "b>c": (-5,)}
    assert estimate([call("a", "c", -(2**63)), cost("c", -(2**63))]) == {"a>c": (-(2**63),)}


@pytest.mark.parametrize("prune", [1e-2, 1e-4])
def test_everything_calls_everything(prune: float) -> None:
    functions = [name(n) for n in range(60)]
    rows = [call(f, g, 10) for f in functions for g in functions] + [cost(f, 1000) for f in functions]
    model = Model()
    batches = to_stacks(profiles.graph(model, rows), model, Options(prune=prune), Report())
    assert sum(sum(b.values(0)) for b in batches) == 60_000


def test_work_has_a_limit_without_pruning() -> None:
    layers = [[name(10 * k + n) for n in range(10)] for k in range(8)]  # 10^7 paths to the last layer
    rows = [call(f, g, 10) for above, below in pairwise(layers) for f in above for g in below]
    rows.append(cost(layers[-1][0], 10**9))
    model, report = Model(), Report()
    total = n = 0
    for b in to_stacks(profiles.graph(model, rows), model, Options(prune=0.0), report):
        total += sum(b.values(0))
        n += len(b)
    assert total == 10**9
    assert n <= (1 << 18) + 2
    assert report.warnings == [LIMIT % 1]


def test_all_work_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [name(n) for n in range(30)]
    rows = [call(f, g, 10) for f in functions for g in functions] + [cost(f, 1000) for f in functions]
    limit = 20_000

    class Limited(bridge._Group):
        def __init__(self, model: Model) -> None:
            super().__init__(model)
            assert self.c.work_left > 1 << 20
            self.c.work_left = limit

    monkeypatch.setattr(bridge, "_Group", Limited)
    for n_threads in (1, 3):
        model, report = Model(), Report()
        parts = [Part(thread=t + 1) for t in range(n_threads)]
        graphs = chain.from_iterable(profiles.graph(model, rows, part=part) for part in parts)
        batches = to_stacks(graphs, model, Options(prune=0.0, per_thread=True), report)
        assert sum(sum(b.values(0)) for b in batches) == 30_000 * n_threads
        assert model.count("stacks") < limit // 4
        assert report.warnings == [LIMIT % (30 * n_threads)]
    # a function that nobody calls needs no work, nor does one under its callers only
    assert estimate([*rows, cost("main", 1)], prune=0.0)["main"] == (1,)
    report = Report()
    assert len(estimate(rows, report, prune=0.0, stacks="arcs")) == 30 * 29
    assert not report.warnings


def test_a_very_long_chain_is_cut() -> None:
    functions = [name(n) for n in range(3 * MAX_DEPTH)]
    rows = [call(f, g, 7) for f, g in pairwise(functions)] + [cost(functions[-1], 7)]
    (path,) = estimate(rows)
    assert path.count(">") == MAX_DEPTH + 1
    assert path.startswith(f"[pruned]>f{2 * MAX_DEPTH - 1}>")


def test_many_callers_and_tiny_functions() -> None:
    rows = [call(name(n), "c", 1) for n in range(20_000)] + [cost("c", 20_000)] + [cost(name(n), 0) for n in range(99)]
    assert estimate(rows, prune=1e-3) == {"[pruned]>c": (20_000,)}


def test_code_of_another_file_is_inlined_and_addresses_stay() -> None:
    model = Model()
    rows = [Row(At(NAMES["a"], "x.h", 7, 0x1000), None, 0, (5,))]
    (sample,) = profiles.samples(model, to_stacks(profiles.graph(model, rows), model, Options(), Report()))
    assert sample.frames[0].lines == ((Fn("a", "x.h"), 7), (NAMES["a"], 0))
    assert sample.frames[0].address == 0x1000
    # positions that a part does not have are not read
    batches = profiles.graph(model, rows, positions=("line",))
    (sample,) = profiles.samples(model, to_stacks(batches, model, Options(), Report()))
    assert sample.frames[0].address == 0


def test_threads_stay_apart_when_asked() -> None:
    model = Model()
    parts = [Part(pid=1, thread=t) for t in (4, 5)]

    def both() -> Any:
        for part in parts:
            yield from profiles.graph(model, [cost("a", part.thread or 0)], part=part)

    batches = to_stacks(both(), model, Options(per_thread=True), Report())
    assert [(s.thread, s.values) for s in profiles.samples(model, batches)] == [(4, (4,)), (5, (5,))]
    model = Model()
    merged = profiles.samples(model, to_stacks(both(), model, Options(), Report()))
    assert [(s.thread, s.values) for s in merged] == [(0, (9,))]


def test_an_empty_graph_is_an_empty_part() -> None:
    model = Model()
    assert [len(b) for b in to_stacks([], model, Options(), Report())] == [0]
    assert len(model.parts) == 1


def test_unknown_ids_are_errors() -> None:
    model = Model()
    for column, kind in (("function", lib.FP_COST), ("callee", lib.FP_CALL), ("file", lib.FP_COST)):
        batch = next(profiles.graph(model, [call("a", "b", 1)]))
        batch["kind"][0] = kind
        batch[column][0] = 10**6
        with pytest.raises(FastprofError, match="1000000, expected less than"):
            list(to_stacks([batch], model, Options(), Report()))
