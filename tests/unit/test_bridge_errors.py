"""Overflows are errors that name the input, the value type and the limit, but no position in a file.

Every error about a file's contents begins with the file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import convert
from fastprof.bridges.estimate import estimate
from fastprof.bridges.fold import fold
from fastprof.bridges.project import project
from fastprof.bridges.rows.compute import compute
from fastprof.bridges.rows.symbolize import symbolize
from fastprof.bridges.sums.aggregate import aggregate
from fastprof.bridges.sums.sorted_runs import Words
from fastprof.bridges.sums.sum import to_sum
from fastprof.core._c import ffi, lib
from fastprof.core.errors import FastprofError, FormatError, check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from tests.support import profiles
from tests.support.paths import REPO
from tests.support.profiles import At, Fn, Frame, Row, Sample

INT64, UINT64 = 2**63 - 1, 2**64 - 1
MAIN, SUB, LEAF = Fn("main", "m.c"), Fn("sub", "s.c"), Fn("leaf", "l.c")
TYPES = [ValueType("Calls", "count"), ValueType("cpu", "nanoseconds")]


def message(run: Callable[[Model], Iterable[Any]]) -> str:
    """The message of the error raised by `run`, whose input is named x.prof."""
    model = Model()
    model.inputs = ["x.prof"]
    with pytest.raises(FastprofError) as caught:
        list(run(model))
    assert not isinstance(caught.value, FormatError)
    return str(caught.value)


def stack(*functions: Fn, line: int = 1) -> tuple[Frame, ...]:
    return tuple(Frame(((f, line),)) for f in functions)


def samples(*found: tuple[tuple[Frame, ...], int, int]) -> list[Sample]:
    return [Sample(frames, values) for frames, *values_ in found for values in [tuple(values_)]]


TWICE = samples((stack(MAIN), 0, INT64), (stack(MAIN), 0, 1))


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        (TWICE, "the sum of a stack's samples in value type cpu exceeds 2^63 - 1"),
        (
            samples((stack(MAIN, LEAF), 0, INT64), (stack(SUB, LEAF), 0, 1)),
            "the self cost of a position in value type cpu exceeds 2^63 - 1",
        ),
        (
            samples((stack(MAIN, SUB), 0, INT64), (stack(MAIN, SUB, LEAF), 0, 1)),
            "the inclusive cost of a call stack in value type cpu exceeds 2^63 - 1",
        ),
        (
            samples((stack(MAIN, SUB, line=2), 0, INT64), (stack(MAIN, SUB, line=3), 0, -INT64))
            + samples((stack(Fn("root"), MAIN), 0, -5), (stack(Fn("root"), LEAF), 0, -INT64)),
            "the inclusive cost of a call stack in value type cpu exceeds 2^63 - 1",
        ),
    ],
)
def test_stacks_to_graph(rows: list[Sample], what: str) -> None:
    def run(model: Model) -> Iterator[Batch]:
        return project.to_graph(profiles.stacks(model, rows, types=TYPES), model, Options(), Log())

    assert message(run) == f"x.prof: stacks to graph: {what}"


def test_stacks_to_graph_the_calls_of_an_arc() -> None:
    """Recursion: the arc's cost is that of its outermost calls, its count that of all; negative counts do not count."""
    deeper = [stack(MAIN, *[LEAF, LEAF] * n) for n in range(1, 8)]
    rows = samples(*((frames, INT64 if i % 2 else -INT64, 0) for i, frames in enumerate(deeper)))

    def run(model: Model) -> Iterator[Batch]:
        return project.to_graph(profiles.stacks(model, rows, types=TYPES), model, Options(), Log())

    what = "the number of calls of an arc in value type Calls exceeds 2^64 - 1"
    assert message(run) == f"x.prof: stacks to graph: {what}"


def test_stacks_to_graph_the_cost_of_an_arc() -> None:
    """The same arc below two roots."""
    under = [(*stack(MAIN, SUB), Frame(((LEAF, 2),))), (*stack(Fn("root"), MAIN, SUB), Frame(((LEAF, 3),)))]
    rows = samples((under[0], 0, INT64), (under[1], 0, 1))

    def run(model: Model) -> Iterator[Batch]:
        return project.to_graph(profiles.stacks(model, rows, types=TYPES), model, Options(), Log())

    what = "the inclusive cost of a call arc in value type cpu exceeds 2^63 - 1"
    assert message(run) == f"x.prof: stacks to graph: {what}"


def test_an_id_that_is_not_there() -> None:
    def run(bridge: Callable[[Iterator[Batch], Model, Options, Log], Iterator[Batch]]) -> str:
        def broken(model: Model) -> Iterator[Batch]:
            batch = next(profiles.stacks(model, TWICE))
            batch["stack"][0] = 1000
            return bridge(iter([batch]), model, Options(), Log())

        return message(broken)

    what = "the stack of a sample is 1000, expected less than"
    assert run(project.to_graph) == f"x.prof: stacks to graph: {what} 3"  # one is [no stack]
    assert run(symbolize) == f"x.prof: symbols: {what} 2"


@pytest.mark.parametrize("column", [0, 1])
def test_sums_of_stacks(column: int) -> None:
    values = [[0, 0], [0, 0]]
    values[0][column], values[1][column] = INT64, 1
    rows = [Sample(stack(MAIN), tuple(v)) for v in values]
    found = message(lambda m: to_sum(profiles.stacks(m, rows, types=TYPES), m, Options(), Log()))
    name = TYPES[column].name
    assert found == f"x.prof: sums of stacks: the sum of a stack's samples in value type {name} exceeds 2^63 - 1"


@pytest.mark.parametrize("name", ["before", "after"])
def test_sums_of_functions_in_stacks(tmp_path: Path, name: str) -> None:
    """Inclusive costs are in columns of their own, as many as are asked for."""
    high, low = f"{INT64} 0", "1 0"
    if name == "after":
        high, low = (" ".join(reversed(text.split())) for text in (high, low))
    path = tmp_path / "x.folded"
    path.write_text(f"a;b {high}\na;c {low}\n")
    with pytest.raises(FastprofError) as caught:
        fastprof.top(path, value=name)
    assert str(caught.value) == f"{path}: top: the sum of samples in value type {name} exceeds 2^63 - 1"


def test_several_inputs(tmp_path: Path) -> None:
    for name in ("a.cg", "b.cg", "c.cg"):
        (tmp_path / name).write_bytes(b"events: Ir\nfl=a.c\nfn=f\n7 4611686018427387904\n")
    inputs = [str(tmp_path / name) for name in ("a.cg", "b.cg", "c.cg")]
    with pytest.raises(FastprofError) as caught:
        convert(inputs, str(tmp_path / "out.callgrind"))
    what = "the cost of a position at line 7 in value type Ir exceeds 2^63 - 1"
    assert str(caught.value) == f"{inputs[0]} and 2 more: sums of a graph: {what}"


def row(values: tuple[int, ...], callee: Fn | None = None, count: int = 0, line: int = 1) -> Row:
    return Row(At(MAIN, "m.c", line), callee, count, values)


ROWS = {
    "cost": [row((0, INT64)), row((0, 1))],
    "call": [row((0, INT64), SUB, 1), row((0, 1), SUB, 1)],
    "count": [row((0, 0), SUB, UINT64), row((0, 0), SUB, 1)],
}


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("cost", "the self cost of a position in value type v1 exceeds 2^63 - 1"),
        ("call", "the inclusive cost of a call arc in value type v1 exceeds 2^63 - 1"),
        ("count", "the number of all calls exceeds 2^63 - 1"),
    ],
)
def test_graph_to_stacks(rows: str, what: str) -> None:
    found = message(lambda m: estimate.to_stacks(profiles.graph(m, ROWS[rows]), m, Options(), Log()))
    assert found == f"x.prof: graph to stacks: {what}"


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("cost", "the cost of a position at line 1 in value type v1 exceeds 2^63 - 1"),
        ("call", "the cost of calls at a position at line 1 in value type v1 exceeds 2^63 - 1"),
        ("count", "the number of calls at a position at line 1 exceeds 2^64 - 1"),
    ],
)
def test_sums_of_a_graph(rows: str, what: str) -> None:
    found = message(lambda m: aggregate(profiles.graph(m, ROWS[rows]), m, Options(), Log()))
    assert found == f"x.prof: sums of a graph: {what}"


@pytest.mark.parametrize("kind", ["JUMP", "JCND"])
def test_sums_of_jumps(kind: str) -> None:
    def run(model: Model) -> Iterator[Batch]:
        batch = next(profiles.graph(model, [row((0,), SUB, UINT64), row((0,), SUB, 1)]))
        for i in range(2):
            batch["kind"][i] = getattr(lib, f"FP_{kind}")
            batch["count2"][i] = batch["count"][i]
            batch["count"][i] = 1 if kind == "JCND" else batch["count"][i]
        return aggregate([batch], model, Options(), Log())

    what = "the number of jumps at a position at line 1 exceeds 2^64 - 1"
    assert message(run) == f"x.prof: sums of a graph: {what}"


def test_computed_events() -> None:
    def run(model: Model) -> Iterator[Batch]:
        batch = next(profiles.graph(model, [row((INT64,))]))
        model.parts[0].extra["inherited"] = [ValueType("X", formula="2 v0")]
        return compute([batch], model, Options(), Log())

    assert message(run) == "x.prof: inherited event X: a value exceeds 2^63 - 1"


def timeline(model: Model, *calls: tuple[int, tuple[int, ...], int, int], clock: int = 0) -> Batch:
    """(thread, functions that call each other in this order, their entry, their exit)."""
    batch = Batch("timeline", 1000)
    batch.c.part = model.add_part(Part(extra={"ticks_per_second": clock}))
    functions = [model.function(f.name, f.file) for f in (MAIN, SUB, LEAF)]
    for tid, path, begin, end in calls:
        steps = [(lib.FP_OP_ENTER, f, begin) for f in path] + [(lib.FP_OP_EXIT, f, end) for f in reversed(path)]
        for op, function, time in steps:
            i = batch.c.n
            batch.c.n += 1
            batch["op"][i], batch["function"][i], batch["time"][i] = op, functions[function], time
            batch["thread"][i] = lib.fp_model_thread(model.c, 0, 1, tid)
            batch["cpu"][i] = 0
    return batch


FOLDS = {"graph": fold.to_graph, "stacks": fold.to_stacks}
TIMES = {"graph": "a function", "stacks": "a call path"}


@pytest.mark.parametrize("target", FOLDS)
@pytest.mark.parametrize("open_end", [False, True])
def test_timeline_inclusive_time(target: str, open_end: bool) -> None:
    """Also if the second call is still open when the input ends.  A call path only has its self time."""

    def run(model: Model) -> Iterator[Batch]:
        batch = timeline(model, (1, (0,), 0, UINT64), (2, (0,), 0, UINT64))
        if open_end:
            batch["function"][3] = 0  # an exit without an entry
        return FOLDS[target]([batch], model, Options(), Log())

    what = {
        "graph": "the time of a function's calls in value type time exceeds 2^64 - 1 ticks",
        "stacks": "the self cost of a call path in value type time exceeds 2^63 - 1",
    }[target]
    assert message(run) == f"x.prof: timeline to {target}: {what}"


def test_timeline_own_time_when_the_cpu_changes() -> None:
    def run(model: Model) -> Iterator[Batch]:
        batch = timeline(model, (1, (0,), 0, UINT64), (2, (0, 1), 0, UINT64))
        batch["time"][3], batch["cpu"][3] = UINT64, 1
        return fold.to_stacks([batch], model, Options(labels=("cpu",)), Log())

    what = "the self cost of a call path in value type time exceeds 2^63 - 1"
    assert message(run) == f"x.prof: timeline to stacks: {what}"


@pytest.mark.parametrize("target", FOLDS)
@pytest.mark.parametrize("clock", [0, 1000])
def test_timeline_own_cost(target: str, clock: int) -> None:
    def run(model: Model) -> Iterator[Batch]:
        return FOLDS[target]([timeline(model, (1, (0,), 0, INT64 + 1), clock=clock)], model, Options(), Log())

    what = f"the self cost of {TIMES[target]} in value type time exceeds 2^63 - 1"
    assert message(run) == f"x.prof: timeline to {target}: {what}"


def test_timeline_own_cost_over_several_callers() -> None:
    """A function's inclusive time is the sum over the arcs into it, each of which fits."""

    def run(model: Model) -> Iterator[Batch]:
        batch = timeline(model, (1, (0, 2), 0, UINT64), (2, (1, 2), 0, UINT64))
        return fold.to_graph([batch], model, Options(), Log())

    what = "the time of a function's calls in value type time exceeds 2^64 - 1 ticks"
    assert message(run) == f"x.prof: timeline to graph: {what}"


def test_timeline_total() -> None:
    def run(model: Model) -> Iterator[Batch]:
        return fold.to_graph([timeline(model, (1, (0,), 0, INT64), (2, (1,), 0, 1))], model, Options(), Log())

    assert message(run) == "x.prof: timeline to graph: the total in value type time exceeds 2^63 - 1"


def test_timeline_cost_of_an_arc() -> None:
    """An arc's time exceeds any function's self time, and the total if threads overlap."""

    def records(model: Model, nodes: list[int], arcs: list[int]) -> Any:
        out = ffi.new("struct fp_fold_out *", {"model": model.c, "unknown_file": model.intern("???")})
        merges = []
        for width, words in ((lib.FP_NODE_WIDTH, nodes), (lib.FP_ARC_WIDTH, arcs)):
            given = [words, []]
            merge = Words(width).merge(lambda to, n, given=given: pull(to, given.pop(0)))
            merges.append(merge)
        out.nodes, out.arcs = merges[0].c, merges[1].c
        return out, merges

    def pull(to: Any, words: list[int]) -> int:
        to[0 : len(words)] = words
        return len(words)

    def run(nodes: list[int], arcs: list[int], totals: bool = False) -> Callable[[Model], list[int]]:
        def rows(model: Model) -> list[int]:
            for f in (MAIN, SUB):
                model.function(f.name, f.file)
            (out, merges), err = records(model, nodes, arcs), ffi.new("struct fp_err *")
            batch, status = Batch("graph", 10, 2), lib.FP_MORE
            while status == lib.FP_MORE:
                for merge in merges:
                    merge.feed()
                status = lib.fp_fold_totals(out, err) if totals else lib.fp_fold_graph(out, batch.c, err)
                check_sums(status, err, model, "timeline to graph", [ValueType("time"), ValueType("calls")])
            return []

        return rows

    node, key = [0, 1, 5, 1], 1 << 32 | 2
    prefix, limits = "x.prof: timeline to graph: ", ("exceeds 2^63 - 1", "exceeds 2^64 - 1")
    arc_, own = "the inclusive cost of a call arc in value type", "the self cost of a function in value type"
    arc = [0, key, 1, 1, 1]
    assert message(run(node, [0, key, 1, INT64 + 1, 1])) == f"{prefix}{arc_} time {limits[0]}"
    assert message(run(node, [0, key, 1, 1, INT64 + 1])) == f"{prefix}{arc_} calls {limits[0]}"
    for k, name in ((2, "calls"), (3, "time"), (4, "calls")):
        most = [UINT64 if i == k else word for i, word in enumerate(arc)]
        ticks = "the time of a function's calls in value type time exceeds 2^64 - 1 ticks"
        found = f"{prefix}{ticks}" if k == 3 else f"{prefix}{arc_} {name} {limits[1]}"
        assert message(run(node, arc + most)) == found
    for totals in (False, True):
        assert message(run([0, 1, 1, INT64 + 1], [], totals)) == f"{prefix}{own} calls {limits[0]}"
        assert message(run([0, 1, INT64 + 1, 1], [], totals)) == f"{prefix}{own} time {limits[0]}"
        assert message(run([*node, 0, 1, 5, UINT64], [], totals)) == f"{prefix}{own} calls {limits[1]}"
    calls = [0, 1, 1, INT64, 0, 2, 1, 1]
    assert message(run(calls, [], True)) == f"{prefix}the total in value type calls {limits[0]}"


def test_timeline_times_of_another_clock() -> None:
    def run(model: Model) -> Iterator[Batch]:
        batches = [
            timeline(model, (1, (0,), 0, 1), clock=2000),
            timeline(model, (1, (0,), 0, INT64 + 1), clock=1000),
        ]
        return fold.to_functions(batches, model, Options(), Log(), None)

    what = "a time in ticks of the first input's clock exceeds 2^64 - 1"
    assert message(run) == f"x.prof: timeline to graph: {what}"


def test_timelines_of_a_known_and_an_unknown_clock() -> None:
    def run(model: Model) -> Iterator[Batch]:
        batches = [timeline(model, (1, (0,), 0, 1), clock=clock) for clock in (2000, 0)]
        return fold.to_functions(batches, model, Options(), Log(), None)

    assert message(run).startswith("x.prof: the clock frequency of only some inputs is known: use")


def test_summaries_that_do_not_fit_when_they_are_added_up(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        path.write_text(f"# callgrind format\nevents: E\nsummary: {INT64}\nfn=f\n1 1\n\ntotals: 1\n")
    with pytest.raises(FastprofError) as caught:
        fastprof.merge(paths, tmp_path / "out", to="callgrind")
    what = "the sum of the summary: lines in value type E exceeds 2^63 - 1"
    assert str(caught.value) == f"{paths[0]} and 1 more: {what}"


# Subjects of errors that are not about a file: the request, or a process.
_NOT_OF_FILES = (
    "--",
    "<std",
    "Dask: ",
    "a difference has no times",
    "cannot start ",
    "none of the inputs can be read; the last one: ",
    "unknown format ",
    "instructions need one of these programs",
    "sql needs ",
    "standard input",
    "temporary file: ",
    "the process that ran",
    "unknown option",
)


def test_errors_begin_with_the_file() -> None:
    """Errors about a request may begin differently, except in a bridge and a writer: their failures depend on the
    contents of the files."""
    wrong = []
    for path in sorted((REPO / "fastprof").rglob("*.py")):
        if path.name == "elf.py":
            continue  # the reader of a program names it
        kinds = {"FastprofError", "SymbolError", "UnrecognizedError"}
        if path.relative_to(REPO / "fastprof").parts[0] in ("bridges", "formats"):
            kinds.add("UsageError")
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            if ast.unparse(node.exc.func) not in kinds:
                continue
            text = node.exc.args[0]
            begin = text.values[0] if isinstance(text, ast.JoinedStr) else text
            if isinstance(begin, ast.Constant) and not str(begin.value).startswith(_NOT_OF_FILES):
                wrong.append(f"{path.name}:{node.lineno}: {ast.unparse(node.exc)}")
    assert wrong == []
