"""Graph -> stacks: worked examples, pruning, and graphs that no program produces."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fastprof import convert, merge
from fastprof.bridges.estimate import estimate as bridge
from fastprof.bridges.estimate.estimate import to_stacks
from fastprof.core._c import lib
from fastprof.core.errors import FastprofError
from fastprof.core.log import Log
from fastprof.core.model import Model, Part
from fastprof.core.options import Options
from tests.support import profiles
from tests.support.profiles import At, Fn, Row

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


def estimate(rows: list[Row], log: Log | None = None, **options: Any) -> dict[str, tuple[int, ...]]:
    """ "root>...>leaf" -> values."""
    model = Model()
    batches = to_stacks(profiles.graph(model, rows), model, Options(**options), log or Log())
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


def test_functions_that_are_called_by_name_in_another_file_are_warned_of() -> None:
    elsewhere, there = Fn("sleep", "main.c"), Fn("sleep", "libc.c")
    rows = [call("main", elsewhere, 30), cost("main", 10), cost(there, 30)]
    log = Log()
    assert estimate(rows, log) == {"main": (10,), "sleep": (30,)}
    assert log.warnings == [
        "75.0 % of the cost is below 1 function without callers; functions of the same name in another file or object "
        "are called but have no costs"
    ]
    log = Log()
    estimate([*rows, cost(elsewhere, 1)], log)
    assert not log.warnings


FREE = Fn("free")


@pytest.mark.parametrize(
    ("more", "unshown"),
    [
        ([], 0),
        ([call("c", FREE, 0, 7)], 1),  # nothing below it costs anything
        ([call("c", FREE, 0, 7), call(FREE, "c", 0, 1)], 2),
        ([call("c", FREE, 0, 7), call("c", FREE, 0, 7, line=9), cost(FREE, 0, 0)], 2),
        ([call("c", "c", 5, 1)], 1),  # a function is on a stack once
        ([call("c", "d", 3, 1), cost("d", 3, 1)], 0),
    ],
)
def test_arcs_that_no_stack_shows_are_counted(more: list[Row], unshown: int) -> None:
    log = Log()
    estimate([*DIAMOND, *more], log, frames="line")
    assert log.not_representable.get("unshown-arcs", 0) == unshown


def test_without_callers_no_stack_shows_an_arc() -> None:
    log = Log()
    estimate(DIAMOND, log, stacks="self")
    assert log.not_representable["unshown-arcs"] == 4


def test_example_of_the_docs() -> None:
    log = Log()
    assert estimate(DIAMOND, log) == {
        "main>a": (10, 1),
        "main>b": (5, 0),
        "main>a>c": (20, 4),
        "main>b>c": (5, 1),
    }
    assert log.not_representable == {"call-counts": 4, "part-addresses": 1}
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
    batches = list(to_stacks(profiles.graph(model, DIAMOND), model, Options(), Log()))
    assert any(b"estimated" in c for c in model.parts[batches[0].part].comments)


def test_the_first_event_is_the_one_to_be_shown_first() -> None:
    model = Model()
    batches = list(to_stacks(profiles.graph(model, DIAMOND), model, Options(), Log()))
    part = model.parts[batches[0].part]
    assert len(part.value_types) == 2
    assert part.extra["default_sample_type"] == part.value_types[0].name


def test_pruned_shares_keep_their_place_in_the_total() -> None:
    rows = [call(name(n), "c", 1 if n else 901) for n in range(100)] + [cost("c", 1000)]
    log = Log()
    assert estimate(rows, log, prune=0.01) == {"f0>c": (901,), "[pruned]>c": (99,)}
    assert log.warnings == [
        "9.9 % of the cost is under [pruned], without all of its callers; a smaller prune= shows more"
    ]
    # costs below contexts that are too small keep their last callers, unless these are also too small
    rows = [call(name(n), "b", 1) for n in range(1000)] + [call("b", "c", 1000), cost("c", 1000)]
    assert estimate(rows, prune=0.01) == {"[pruned]>b>c": (1000,)}
    rows = [call(name(n), "b", 2) for n in range(1000)] + [call("b", "c", 1500), call("c", "a", 500), cost("c", 1000)]
    rows += [cost("a", 500), call("b", "d", 9), cost("d", 9)]
    log = Log()
    assert estimate(rows, log, prune=0.01) == {"[pruned]>b>c": (1000,), "[pruned]>b>c>a": (500,), "[pruned]>d": (9,)}
    assert log.warnings[0].startswith("100.0 % of the cost is under [pruned]")
    # partly: main > b > c is large enough, the other callers of b are not
    rows = [call("main", "b", 500)] + [call(name(n), "b", 1) for n in range(500)]
    rows += [call("b", "c", 1000), cost("c", 1000)]
    assert estimate(rows, prune=0.01) == {"main>b>c": (500,), "[pruned]>b>c": (500,)}
    # too small on average over the value types
    rows = [call("a", "c", 1, 50), call("b", "c", 99, 50), cost("c", 100, 100)]
    assert estimate(rows, prune=0.1) == {"b>c": (99, 99), "[pruned]>c": (1, 1)}
    rows = [call("a", "c", 10, 50), call("b", "c", 90, 50), cost("c", 100, 100)]
    assert estimate(rows, prune=0.1) == {"a>c": (10, 10), "b>c": (90, 90)}


def test_a_loss_names_the_process_where_a_part_has_no_thread(tmp_path: Path) -> None:
    (tmp_path / "in.callgrind").write_text("pid: 7\nevents: Ir\nfn=main\n1 100\ncfn=f\ncalls=1 1\n1 1\nfn=f\n1 1\n")
    log = convert(tmp_path / "in.callgrind", tmp_path / "out.pb", to="pprof", prune=0.5, labels=["process"])
    assert log.warnings[0].startswith("process 7: 1.0 % of the cost is under [pruned]")
    part = "thread: 2\nevents: Ir\nfn=main\n1 100\ncfn=f\ncalls=1 1\n1 1\nfn=f\n1 1\n"
    for pid in (7, 8):
        (tmp_path / f"{pid}.callgrind").write_text(f"pid: {pid}\n{part}")
    inputs = [tmp_path / "7.callgrind", tmp_path / "8.callgrind"]
    log = merge(inputs, tmp_path / "out.pb", to="pprof", prune=0.5, labels=["process", "thread"])
    assert [text.partition(": ")[0] for text in log.warnings] == ["process 7, thread 2", "process 8, thread 2"]


def test_rounding_leaves_nothing_over() -> None:
    rows = [call(name(n), "c", 1) for n in range(7)] + [cost("c", 100), cost("c", -3, line=9)]
    found = estimate(rows)
    assert sum(v for (v,) in found.values()) == 97
    # a single sample goes to the most likely stack
    rows = [call("a", "c", 20), call("b", "c", 50), call("d", "c", 30), cost("c", 1)]
    assert estimate(rows) == {"b>c": (1,)}


def test_cost_beyond_the_callers_has_no_caller() -> None:
    rows = [cost("main", 1), call("main", "a", 30), cost("a", 40)]
    assert estimate(rows) == {"main": (1,), "main>a": (30,), "a": (10,)}


def test_cycles_end() -> None:
    assert estimate([cost("a", 5), call("a", "a", 50)]) == {"a": (5,)}
    # no outside caller: the stack begins with the most expensive function
    assert estimate([cost("a", 5), call("a", "b", 9), call("b", "a", 9)]) == {"a": (5,)}
    rows = [cost("a", 5), cost("b", 3), call("a", "b", 9), call("b", "a", 9)]
    assert estimate(rows) == {"a": (2,), "a>b": (2,), "b": (1,), "b>a": (3,)}
    # the docs' example
    rows = [call("main", "a", 60), call("main", "b", 40), call("a", "b", 30), call("b", "a", 20), cost("a", 80)]
    assert estimate(rows) == {"main>a": (60,), "main>b>a": (20,)}


def test_a_cycle_without_callers_begins_with_what_costs_more_than_the_calls_into_it() -> None:
    # exec > main > exec > load: of a's 100, b has 95, of which a has 5 again
    rows = [cost("a", 5), call("a", "b", 95), call("a", "c", 5), cost("b", 90), call("b", "a", 5), cost("c", 5)]
    assert estimate(rows) == {"a": (5,), "a>b": (90,), "a>c": (5,)}
    # a caller from outside takes its part
    rows = [*rows, cost("main", 1), call("main", "b", 50), cost("b", 50)]
    found = estimate(rows)
    assert sum(v for (v,) in found.values()) == 151
    assert sum(v for path, (v,) in found.items() if path.startswith("main")) == pytest.approx(51, abs=2)
    assert {path.split(">")[0] for path in found} == {"main", "a"}


def test_what_a_cycle_calls_gets_all_of_its_cost() -> None:
    rows = [call("main", "a", 100), call("a", "b", 900), call("b", "a", 800), call("a", "c", 60), call("b", "d", 40)]
    rows += [cost("c", 60), cost("d", 40)]
    assert estimate(rows) == {"main>a>c": (60,), "main>a>b>d": (40,)}


def test_zero_arcs_are_shared_by_calls_then_evenly() -> None:
    rows = [call("a", "c", 0, count=3), call("b", "c", 0, count=1), cost("c", 8), call("main", "d", 1), cost("d", 1)]
    assert estimate(rows) == {"a>c": (6,), "b>c": (2,), "main>d": (1,)}
    rows = [call("a", "c", 0, count=0), call("b", "c", 0, count=0), cost("c", 8)]
    assert estimate(rows) == {"a>c": (4,), "b>c": (4,)}


def test_negative_costs_of_differences() -> None:
    assert estimate([call("a", "c", -30), call("b", "c", 10), cost("c", -20)]) == {"a>c": (-15,), "b>c": (-5,)}
    assert estimate([call("a", "c", -(2**63)), cost("c", -(2**63))]) == {"a>c": (-(2**63),)}


def limited(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    """Set the limits of estimates."""

    class Limited(bridge._Group):
        def __init__(self, model: Model, by: str, prune: float) -> None:
            super().__init__(model, by, prune)
            for limit, value in limits.items():
                assert getattr(self.c, limit) > value
                setattr(self.c, limit, value)

    monkeypatch.setattr(bridge, "_Group", Limited)


@pytest.mark.parametrize("prune", [1e-2, 1e-4])
def test_everything_calls_everything(prune: float) -> None:
    functions = [name(n) for n in range(60)]
    rows = [call(f, g, 10) for f in functions for g in functions] + [cost(f, 1000) for f in functions]
    model = Model()
    batches = to_stacks(profiles.graph(model, rows), model, Options(prune=prune), Log())
    assert sum(sum(b.values(0)) for b in batches) == 60_000
    assert model.count("stacks") < 60 / prune


def test_the_number_of_contexts_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [[name(10 * k + n) for n in range(10)] for k in range(8)]  # 10^7 paths to the last layer
    rows = [call(f, g, 10 + n) for above, below in pairwise(layers) for f in above for n, g in enumerate(below)]
    rows.append(cost(layers[-1][0], 10**9))
    limited(monkeypatch, max_contexts=5000)
    model, log = Model(), Log()
    total = n = 0
    for b in to_stacks(profiles.graph(model, rows), model, Options(prune=0.0), log):
        total += sum(b.values(0))
        n += len(b)
    assert total == 10**9
    assert n <= 5100
    assert model.count("stacks") < 5100
    assert log.warnings[0].startswith("too many call paths for prune=0: pruned below ")
    assert "under [pruned]" in log.warnings[1]


def test_a_very_long_chain_is_cut() -> None:
    depth = lib.FP_ESTIMATE_DEPTH
    own = {depth: 2, 2 * depth: 3, 3 * depth - 1: 7}

    def path(first: int, last: int) -> str:
        return ">".join(f"f{n}" for n in range(first, last + 1))

    rows = [cost(name(n), value) for n, value in own.items()]
    rows += [
        call(name(n), name(n + 1), sum(value for at, value in own.items() if at > n)) for n in range(3 * depth - 1)
    ]
    assert estimate(rows) == {
        path(0, depth): (2,),
        "[pruned]>" + path(depth, 2 * depth): (3,),
        "[pruned]>" + path(2 * depth, 3 * depth - 1): (7,),
    }


def test_details_go_when_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """First the lines of cheap functions, then the names of the cheapest."""
    big = [cost("a", 1000, line=n) for n in range(1, 4)] + [cost("b", 10, line=n) for n in range(1, 40)]
    tiny = [cost(name(n), 1, line=n) for n in range(100)]
    callers = [call("main", "a", 3000), call("main", "b", 390)]
    model, log = Model(), Log()
    batches = to_stacks(profiles.graph(model, big + tiny + callers), model, Options(prune=1e-2), log)
    assert len(profiles.samples(model, batches)) == 142  # one stack per line
    assert len(log.warnings) == 0

    limited(monkeypatch, most_rows=50)
    model, log = Model(), Log()
    batches = to_stacks(profiles.graph(model, big + tiny + callers), model, Options(prune=1e-2), log)
    samples = profiles.samples(model, batches)
    assert len(samples) <= 101  # 1 / prune is more than 50
    lines = {(s.frames[-1].lines[0][0].name, s.frames[-1].lines[0][1]): s.values[0] for s in samples}
    assert {k: v for k, v in lines.items() if k[0] == "a"} == {("a", 1): 1000, ("a", 2): 1000, ("a", 3): 1000}
    assert sum(v for k, v in lines.items() if k[0] == "b") == 390
    assert lines["b", 0] > 0
    assert lines["[pruned]", 0] > 0
    assert sum(lines.values()) == 3490
    assert any("functions whose names do not fit" in w for w in log.warnings)
    assert any("not all lines fit" in w for w in log.warnings)


def test_details_that_come_again_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred dumps of the same program have as many places as one."""
    rows = [cost(name(n), n + 1, line=n) for n in range(40)]
    expected = {k: (v * 100,) for k, (v,) in estimate(rows, prune=1e-2).items()}
    limited(monkeypatch, most_rows=60)
    model, log = Model(), Log()
    batches = to_stacks(profiles.graph(model, rows * 100, 30), model, Options(prune=1e-2), log)
    assert {s.frames[-1].lines[0][0].name: s.values for s in profiles.samples(model, batches)} == expected
    assert not log.warnings


def test_sums_that_do_not_fit_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, most_rows=3)
    rows = [cost(name(n), 2**61, line=line) for n in range(40) for line in range(3)]
    model = Model()
    batches = to_stacks(profiles.graph(model, rows), model, Options(prune=0.5), Log())
    assert sum(v for s in profiles.samples(model, batches) for v in s.values) == 120 * 2**61
    with pytest.raises(FastprofError, match=r"the self cost of a position in value type v0 exceeds 2\^63 - 1"):
        estimate(rows * 2, frames="function", prune=0.0)


def test_many_callers_and_tiny_functions() -> None:
    rows = [call(name(n), "c", 1) for n in range(20_000)] + [cost("c", 20_000)] + [cost(name(n), 0) for n in range(99)]
    assert estimate(rows, prune=1e-3) == {"[pruned]>c": (20_000,)}


def test_code_of_another_file_is_a_line_of_the_function() -> None:
    """It does not become a recursive call of the function."""
    rows = [Row(At(NAMES["a"], "x.h", 7, 0x1000), None, 0, (5,)), cost("a", 3, line=9)]

    def frames(positions: tuple[str, ...] = ("instr", "line"), **options: Any) -> dict[tuple[Any, ...], int]:
        model = Model()
        batches = to_stacks(profiles.graph(model, rows, 9, positions), model, Options(**options), Log())
        return {(s.frames[0].lines, s.frames[0].address): s.values[0] for s in profiles.samples(model, batches)}

    inlined, plain = Fn("a", "x.h"), NAMES["a"]
    assert frames() == {(((inlined, 7),), 0): 5, (((plain, 9),), 0): 3}
    assert frames(frames="address") == {(((inlined, 7),), 0x1000): 5, (((plain, 9),), 0): 3}
    assert frames(frames="function") == {(((plain, 0),), 0): 8}
    # a part's missing positions are not read
    assert frames(("line",), frames="address") == frames()
    assert frames(("instr",)) == {(((inlined, 0),), 0): 5, (((plain, 0),), 0): 3}


def test_arcs_are_summed_as_stacks_are_made() -> None:
    rows = [call("main", "a", 6, line=3), call("main", "a", 3, line=4), cost("a", 9)]
    model = Model()
    batches = to_stacks(profiles.graph(model, rows), model, Options(), Log())
    lines = {s.frames[0].lines[0][1]: s.values for s in profiles.samples(model, batches)}
    assert lines == {3: (6,), 4: (3,)}
    batches = to_stacks(profiles.graph(model, rows), model, Options(frames="function"), Log())
    assert [(s.frames[0].lines[0][1], s.values) for s in profiles.samples(model, batches)] == [(0, (9,))]


def test_threads_stay_apart_when_asked() -> None:
    model = Model()
    parts = [Part(pid=1, thread=t) for t in (4, 5)]

    def both() -> Any:
        for part in parts:
            yield from profiles.graph(model, [cost("a", part.thread or 0)], part=part)

    batches = to_stacks(both(), model, Options(per_thread=True), Log())
    assert [(s.thread, s.values) for s in profiles.samples(model, batches)] == [(4, (4,)), (5, (5,))]
    model = Model()
    merged = profiles.samples(model, to_stacks(both(), model, Options(), Log()))
    assert [(s.thread, s.values) for s in merged] == [(0, (9,))]


def test_an_empty_graph_is_an_empty_part() -> None:
    model = Model()
    assert [len(b) for b in to_stacks([], model, Options(), Log())] == [0]
    assert len(model.parts) == 1


def test_unknown_ids_are_errors() -> None:
    model = Model()
    for column, kind in (("function", lib.FP_COST), ("callee", lib.FP_CALL), ("file", lib.FP_COST)):
        batch = next(profiles.graph(model, [call("a", "b", 1)]))
        batch["kind"][0] = kind
        batch[column][0] = 10**6
        with pytest.raises(FastprofError, match="1000000, expected less than"):
            list(to_stacks([batch], model, Options(), Log()))
