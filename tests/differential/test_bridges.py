"""The bridges on real profiles, read by real tools: callgrind_annotate and go tool pprof."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from fastprof import formats
from fastprof.bridges import INLINES
from fastprof.bridges.estimate.estimate import to_stacks
from fastprof.bridges.project.project import to_graph
from fastprof.bridges.rows.symbolize import symbolize
from fastprof.core.engine import read, write
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from tests.differential.peers import need
from tests.reference.bridges import positions
from tests.support import profiles
from tests.support.paths import needs_shared, shared_data

pytestmark = needs_shared
Bridge = Callable[[Iterable[Batch], Model, Options, Log], Iterator[Batch]]


def peer(tool: str, *arguments: str | Path) -> str:
    done = subprocess.run([need(tool), *arguments], capture_output=True, text=True, errors="surrogateescape")
    assert done.returncode == 0, done.stderr
    return done.stdout


def batches_of(path: Path, model: Model, options: Options, log: Log) -> Iterator[Batch]:
    with Source(path) as source:
        reader = formats.detect(source).reader_class()
        yield from read(reader(source, model, options, log))


def convert(path: Path, output: Path, to: str, *bridges: Bridge, **options: object) -> Log:
    model, opts, log = Model(), Options(**options), Log()  # type: ignore[arg-type]
    batches = batches_of(path, model, opts, log)
    for bridge in bridges:
        batches = bridge(batches, model, opts, log)
    writer = formats.get(to).writer_class()
    with Sink(output) as sink:
        write(batches, writer(model, sink, opts, log))
        sink.commit()
    return log


def annotate(path: Path, *options: str) -> tuple[list[int], dict[str, list[int]]]:
    """Totals, and costs by "file:function", of callgrind_annotate, which needs counts of calls above 0."""
    counted = path.with_suffix(".counted")
    counted.write_bytes(re.sub(rb"^calls=0 ", b"calls=1 ", path.read_bytes(), flags=re.MULTILINE))
    text = peer("callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no", *options, counted)
    totals: list[int] = []
    rows: dict[str, list[int]] = {}
    for line in text.splitlines():
        if m := re.fullmatch(r"\s*((?:[-\d,]+|\.)(?:\s+(?:[-\d,]+|\.))*)\s+(\S.*)", line):
            costs = [0 if c == "." else int(c.replace(",", "")) for c in m[1].split()]
            if m[2] == "PROGRAM TOTALS":
                totals = costs
            elif m[2].partition(" [")[0] != "file:function":
                # without the object, which rows under fi= lack, and without [clone .isra.0], which looks alike
                key = re.sub(r"( \[[^][]*(\[[^][]*\])?[^][]*\])+$", "", m[2])
                rows[key] = [a + b for a, b in zip(costs, rows.get(key, [0] * len(costs)), strict=True)]
    return totals, rows


def true_inclusive(path: Path, options: Options, value: int, *bridges: Bridge) -> dict[str, int]:
    """By "file:function": the cost of its samples from its first call on, or in all if nothing calls it.

    The latter only with inlines: callgrind_annotate counts code inlined into a function without callers as another
    function.
    """
    model, log = Model(), Log()
    batches = batches_of(path, model, options, log)
    for bridge in bridges:
        batches = bridge(batches, model, options, log)
    called: Counter[str] = Counter()
    everywhere: Counter[str] = Counter()
    for sample in profiles.samples(model, batches):
        path_ = [p for f in sample.frames or (None,) for p in positions(f, options[INLINES])]
        names = [f"{p.function.file}:{p.function.name}" for p in path_]
        for name in set(names[1:]):
            called[name] += sample.values[value]
        for name in set(names):
            everywhere[name] += sample.values[value]
    return {n: called.get(n, cost) for n, cost in everywhere.items() if n in called or options[INLINES]}


SYMBOLIZED = ["gperftools/recurse/recurse.pb.gz", "gperftools/host/host.pb.gz", "gperftools/threads/threads.pb.gz"]
GO = ["pprof/go-block.pb.gz", "pprof/go-cpulabels.pb.gz", "pprof/go-heap.pb.gz", "pprof/go-goroutine.pb.gz"]
RAW = ["gperftools/recurse/recurse.prof", "gperftools/host/host.prof", "gperftools/threads-be64/threads-be64.prof"]


@pytest.mark.parametrize("inlines", [False, True])
@pytest.mark.parametrize("name", [*SYMBOLIZED, *GO, *RAW][::2])
def test_callgrind_annotate_shows_true_inclusive_costs(name: str, inlines: bool, tmp_path: Path) -> None:
    source, output = shared_data(*name.split("/")), tmp_path / "x.callgrind"
    convert(source, output, "callgrind", symbolize, to_graph, inlines=inlines)
    expected = true_inclusive(source, Options(inlines=inlines), 0, symbolize)
    totals, rows = annotate(output, "--inclusive=yes")
    found = {key: costs[0] for key, costs in rows.items() if key in expected}
    assert {k: v for k, v in found.items() if v} == {k: v for k, v in expected.items() if v}
    assert inlines or totals == annotate(output)[0]


@pytest.mark.parametrize("name", ["recurse", "host"])
def test_same_figures_as_pprof(name: str, tmp_path: Path) -> None:
    """Cumulative times of `pprof -top`; C, so names are unchanged."""
    source, output = shared_data("gperftools", name, f"{name}.pb.gz"), tmp_path / "x.callgrind"
    convert(source, output, "callgrind", to_graph)
    # a function that is also the root of stacks, cut at 254 frames, has more than its calls
    model = Model()
    samples = profiles.samples(model, batches_of(source, model, Options(), Log()))
    roots = {s.frames[0].lines[-1][0].name for s in samples if s.frames[0].lines}
    _, rows = annotate(output, "--inclusive=yes")
    ours: Counter[str] = Counter()
    for key, costs in rows.items():
        ours[key.rpartition(":")[2]] += costs[1]
    compared = 0
    for line in shared_data("gperftools", name, f"{name}.top.txt").read_text().splitlines()[4:]:
        *_, cum, _, function = line.removesuffix(" (inline)").split(maxsplit=5)
        milliseconds = float(cum[:-2]) if cum.endswith("ms") else float(cum[:-1]) * 1000 if cum.endswith("s") else 0.0
        if ours[function] and function not in roots:
            # seconds are shown with two decimals
            assert abs(ours[function] / 1e6 - milliseconds) <= (5 if not cum.endswith("ms") else 0.01), line
            compared += 1
    assert compared >= 6


CALLGRIND = ["mt_default", "mt_instr_jumps", "mt_recs_callers", "shapes_allevents", "xz_stripped", "pyprof2calltree"]


def self_costs(path: Path) -> tuple[list[int], Counter[str]]:
    """Sums of self costs by event, and of the first event by function, as read by our reader."""
    model, options = Model(), Options()
    totals: list[int] = []
    functions: Counter[str] = Counter()
    for _, row in profiles.graph_rows(model, batches_of(path, model, options, Log())):
        if row.callee is None:
            totals = [a + b for a, b in zip(totals or [0] * len(row.values), row.values, strict=True)]
            functions[row.at.function.name] += row.values[0]
    return totals, functions


@pytest.mark.parametrize("stacks", ["self", "arcs", "estimate"])
@pytest.mark.parametrize("name", CALLGRIND)
def test_pprof_shows_the_self_costs_of_callgrind(name: str, stacks: str, tmp_path: Path) -> None:
    source, output = shared_data("callgrind", f"{name}.callgrind"), tmp_path / "x.pb.gz"
    convert(source, output, "pprof", to_stacks, stacks=stacks)
    totals, functions = self_costs(source)
    raw = peer("go", "tool", "pprof", "-raw", "-symbolize=none", output)
    sums: Counter[int] = Counter()
    for line in raw.partition("Samples:")[2].partition("Locations")[0].splitlines():
        if m := re.match(r"\s*([-\d ]+): [\d ]+$", line):
            sums.update(dict(enumerate(map(int, m[1].split()))))
    assert [sums[k] for k in range(len(totals))] == totals

    if stacks != "estimate":
        return  # pprof adds up the same values
    event = Counter[str]()
    top = peer(
        "go",
        "tool",
        "pprof",
        "-top",
        "-sample_index=0",
        "-nodecount=0",
        "-nodefraction=0",
        "-edgefraction=0",
        "-unit=minimum",
        "-symbolize=none",
        output,
    )
    for line in top.partition("flat%")[2].splitlines()[1:]:
        flat, _, _, _, _, function = line.removesuffix(" (inline)").split(maxsplit=5)
        if digits := re.match(r"-?[\d.]+", flat):
            event[function] += round(float(digits[0]))
    # pprof shortens C++ names; those of the largest functions here are plain
    for function, cost in functions.most_common(5):
        assert event.get(function, cost) == cost


@pytest.mark.parametrize("name", ["mt_default", "mt_instr_jumps", "shapes_allevents", "xz_stripped"])
def test_there_and_back_costs_the_same(name: str, tmp_path: Path) -> None:
    """Callgrind -> pprof -> Callgrind: every row's self cost as shown by callgrind_annotate."""
    source, middle, back = shared_data("callgrind", f"{name}.callgrind"), tmp_path / "x.pb.gz", tmp_path / "x.callgrind"
    convert(source, middle, "pprof", to_stacks)
    convert(middle, back, "callgrind", to_graph)
    _, rows = annotate(source)
    again, back_rows = annotate(back)
    assert again == self_costs(source)[0]
    assert {k: v for k, v in back_rows.items() if any(v)} == {k: v for k, v in rows.items() if any(v)}
