"""Flight recordings against ../shared/tools/jfr/expect.py, async-profiler's converter and Pyroscope's parser."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

import fastprof
from fastprof.core._c import lib
from fastprof.core.engine import read
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.formats.jfr.chunk import COLUMNS, HEADER_NBYTES, header, metric_of
from fastprof.formats.jfr.read import JfrReader
from tests.differential.pprof_raw import raw
from tests.support.paths import SHARED, needs_shared

pytestmark = needs_shared

Frame = tuple[str, str, int, int, str]  # name, name with descriptor, line, bytecode index + 1, library
SUFFIXES = {"Interpreted": "_[0]", "JIT compiled": "_[j]", "Inlined": "_[i]", "C1 compiled": "_[1]", "Kernel": "_[k]"}
KIND = re.compile(r"_\[.\](?=;|$)")
MOST_NBYTES = 60_000  # stored size of a file: expect.py is slow

# The field that is summed for the second value of a metric.
FIELDS = {
    lib.FP_JFR_CPU_TIME: "samplingPeriod",
    lib.FP_JFR_IN_TLAB: "tlabSize",
    lib.FP_JFR_OUTSIDE_TLAB: "allocationSize",
    lib.FP_JFR_ALLOC_SAMPLE: "weight",
    lib.FP_JFR_MONITOR: "duration",
    lib.FP_JFR_WAIT: "duration",
    lib.FP_JFR_PARK: "duration",
    lib.FP_JFR_SLEEP: "duration",
    lib.FP_JFR_MALLOC: "size",
    lib.FP_JFR_METHOD_TRACE: "duration",
}
# expect.py is right about intact chunks; of a damaged one it reads less, because it only follows the header's offsets.
READS_LESS = {
    "edge-bad-constants-offset.jfr",
    "edge-bad-metadata-is-event.jfr",
    "edge-bad-size-small.jfr",
}
# It counts events only after decoding them; here every complete event counts.
COUNTS_LESS = {
    "edge-bad-array-huge.jfr",
    "edge-bad-event-too-short.jfr",
    "edge-bad-type-holds-itself.jfr",
    "edge-bad-type-undefined.jfr",
}


class Kind(NamedTuple):
    """Samples of one metric, except that CPU and wall-clock samples are together."""

    stacks: Counter[tuple[Frame, ...]]
    threads: Counter[tuple[str, int]]  # name, id
    times: list[int]  # first, last
    amount: list[int]


def new_kind() -> Kind:
    return Kind(Counter(), Counter(), [1 << 64, -1], [0])


def kind_of(metric: int) -> int:
    return lib.FP_JFR_CPU if metric == lib.FP_JFR_WALL else metric


def recordings(least: int = 1, most: int = MOST_NBYTES) -> list[Path]:
    found = sorted((SHARED / "data/jfr").glob("*.jfr*")) if SHARED else []
    return [path for path in found if least <= path.stat().st_size <= most]


@cache
def expect() -> Any:
    assert SHARED is not None
    spec = importlib.util.spec_from_file_location("expect", SHARED / "tools/jfr/expect.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["expect"] = module
    spec.loader.exec_module(module)
    return module


def expected_frame(frame: tuple[Any, ...]) -> Frame:
    class_, method, descriptor, line, bytecode, type_ = frame
    if descriptor in ("()L;", "(Lk;)L;"):  # not Java's: the class is a library
        name = (method or "" if class_ or method else "[unknown]") + SUFFIXES.get(type_, "")
        return name, "", 0, 0, class_ or ""
    name = f"{class_}." if class_ else ""
    name = name + (method or "") if class_ or method else "[unknown]"
    whole = name + descriptor if descriptor else ""
    name += SUFFIXES.get(type_, "")
    return name, "" if whole == name else whole, max(line, 0), max(bytecode + 1, 0), ""


def expected(table: Any) -> dict[int, Kind]:
    kinds: dict[int, Kind] = defaultdict(new_kind)
    for name, events in table.ev.items():
        if not events.count or not (metric := metric_of(name)):
            continue
        kind = kinds[kind_of(metric - 1)]
        with_stack = 0
        for (_, frames), sums in events.stack.items():
            kind.stacks[tuple(map(expected_frame, frames))] += sums[""]
            with_stack += sums[""]
        kind.stacks[()] += events.count - with_stack
        for (java_name, java_id, os_id, virtual), n in events.thread.items():
            shown = f"virtual-{java_id}" if virtual and not java_name else java_name or ""
            kind.threads[shown, (os_id or java_id or 0) & 0xFFFFFFFF] += n
        kind.times[:] = [min(kind.times[0], max(events.first, 0)), max(kind.times[1], max(events.last, 0))]
        kind.amount[0] += events.sums.get(FIELDS.get(metric - 1), 0)
    return kinds


class Reading:
    """The product's result for a file."""

    def __init__(self, path: Path, *, summed: bool = False) -> None:
        self.model, self.log = Model(), Log()
        self.stacks: dict[int, tuple[Frame, ...]] = {0: ()}
        self.frames: dict[int, Frame] = {}
        self.kinds: dict[int, Kind] = defaultdict(new_kind)
        reader = JfrReader(Source(str(path)), self.model, Options(lenient=True, kinds=True), self.log)
        reader.summed = summed
        for batch in read(reader):
            names = [type_.name for type_ in self.model.parts[batch.part].value_types]
            columns = {metric: names.index(one[0]) for metric, one in COLUMNS.items() if one[0] in names}
            values = [batch.values(k).tolist() for k in range(batch.c.n_values)]
            for i in range(len(batch)):
                metric = next(metric for metric, k in columns.items() if values[k][i])
                k = columns[metric]
                amount = values[k + 1][i] if COLUMNS[metric][1] and k + 1 < len(values) else 0
                n = int(batch.c.count[i]) if summed else 1
                self.add(self.kinds[kind_of(metric)], batch, i, n, int(amount))
        self.counts = {name: n for name, n in self.log.facts["events"].items() if n}

    def text(self, id_: int) -> str:
        return self.model.string(id_).decode("utf-8", "surrogatepass")

    def add(self, kind: Kind, batch: Any, i: int, n: int, amount: int) -> None:
        kind.stacks[self.stack(int(batch["stack"][i]))] += n
        if thread := int(batch["thread"][i]):
            kind.threads[self.name(int(batch["label"][i])), self.model.row("threads", thread)[2]] += n
        time = int(batch["time"][i])
        kind.times[:] = [min(kind.times[0], time), max(kind.times[1], time)]
        kind.amount[0] += amount

    def name(self, label: int) -> str:
        while label:
            row = self.model.row("labels", label)
            if self.text(row[1]) == "thread_name":
                return self.text(row[2])
            label = row[0]
        return ""

    def stack(self, node: int) -> tuple[Frame, ...]:
        found, at = [], node
        while node not in self.stacks and at:
            at, frame = self.model.row("stacks", at)
            found.append(self.frames.get(frame) or self.frame(frame))
        return self.stacks.setdefault(node, tuple(found))

    def frame(self, frame: int) -> Frame:
        function, line, column, _ = self.model.row("lines", self.model.row("frames", frame)[-1])
        object_, _, name, whole, _ = self.model.row("functions", function)
        library = self.text(self.model.row("objects", object_)[0]) if object_ else ""
        return self.frames.setdefault(frame, (self.text(name), self.text(whole), line, column, library))


@pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
def test_tables(path: Path) -> None:
    """Counts, threads, times, sums, and every stack with lines, bytecode indexes and kinds of frames."""
    table = expect().Table(str(path))
    if any(re.match(r"version 0", loss) for loss in table.loss):
        with pytest.raises(fastprof.FastprofError, match=r"version is 0\.9"):
            Reading(path)
        return
    try:
        found = Reading(path)
    except fastprof.FastprofError:
        assert not table.ev
        return
    if path.name in READS_LESS:
        assert sum(found.counts.values()) >= sum(events.count for events in table.ev.values())
        return
    if path.name not in COUNTS_LESS:
        assert found.counts == {name: events.count for name, events in table.ev.items() if events.count}
    kinds = expected(table)
    assert found.kinds.keys() == kinds.keys()
    for metric, kind in kinds.items():
        here = found.kinds[metric]
        assert +here.stacks == +kind.stacks
        assert here.threads == kind.threads
        for one, other in zip(here.times, kind.times, strict=True):
            assert abs(one - other) <= 1  # expect.py rounds through a double
        if metric in FIELDS:
            assert here.amount[0] == pytest.approx(kind.amount[0], abs=1)


# ---- the tables of the other files

FRAME = re.compile(r"(.*?)( \S*)? (-?\d+) (-?\d+) ([A-Z].*|\?)", re.DOTALL)
Shown = tuple[str, int, int, str]  # name, line, bytecode index + 1, suffix


def stated_stack(text: str) -> tuple[Shown, ...]:
    """A stack of a table.  Classes without a name are left out."""
    found = []
    for frame in json.loads(text).split(" | ") if text != '""' else []:
        if frame == "...":
            continue
        match = FRAME.fullmatch(frame)
        assert match is not None, frame
        name, descriptor, line, bytecode, type_ = match.groups()
        name = "[unknown]" if name == "?.?" else name.removeprefix("?.").removeprefix(".")
        is_native = descriptor in (" ()L;", " (Lk;)L;")
        place = (0, 0) if is_native else (max(int(line), 0), max(int(bytecode) + 1, 0))
        found.append((name, *place, SUFFIXES.get(type_, "")))
    return tuple(found)


def shown_stack(stack: tuple[Frame, ...]) -> tuple[Shown, ...]:
    found = []
    for name, _, line, bytecode, library in stack:
        suffix = name[-4:] if KIND.search(name) else ""
        name = name.removesuffix(suffix)
        found.append((f"{library}.{name}" if library else name, line, bytecode, suffix))
    return tuple(found)


class Stated(NamedTuple):
    """What a table states about samples of one metric."""

    stacks: Counter[tuple[Shown, ...]]  # the first 25 of each type
    threads: Counter[tuple[str, int]]
    n: Counter[str]  # by type


def table_of(path: Path) -> Path:
    return path.parent / "expected" / (path.name.removesuffix(".gz").removesuffix(".jfr") + ".tsv.gz")


def stated(path: Path) -> tuple[Counter[str], dict[int, Stated]]:
    """Counts of events, and samples, of the table next to a recording."""
    counts, kinds = Counter[str](), dict[int, Stated]()
    for line in gzip.decompress(table_of(path).read_bytes()).decode().splitlines():
        what, type_, *rest = line.split("\t")
        if what == "event":
            counts[type_] += int(rest[0])
        if not (metric := metric_of(type_)) or not counts[type_]:
            continue
        kind = kinds.setdefault(kind_of(metric - 1), Stated(Counter(), Counter(), Counter()))
        if what == "event":
            kind.n[type_] += int(rest[0])
        elif what == "thread":
            n, name, java_id, os_id, virtual = rest
            shown = f"virtual-{java_id}" if virtual == "1" and name in ('""', "null") else json.loads(name) or ""
            kind.threads[shown, (int(os_id) or int(java_id)) & 0xFFFFFFFF] += int(n)
        elif what == "stack":
            kind.stacks[stated_stack(rest[-1])] += int(rest[0])
    return counts, kinds


@pytest.mark.parametrize(
    "path",
    [path for path in recordings(MOST_NBYTES + 1, 1 << 40) if table_of(path).exists()],
    ids=lambda path: path.name,
)
def test_stored_tables(path: Path) -> None:
    """Sums of files that take expect.py long: counts, threads, and the 25 most frequent stacks of each type."""
    counts, kinds = stated(path)
    found = Reading(path, summed=True)
    assert found.counts == {name: n for name, n in counts.items() if n}
    assert found.kinds.keys() == kinds.keys()
    for metric, kind in kinds.items():
        here = found.kinds[metric]
        assert here.stacks.total() == kind.n.total()
        assert here.threads == kind.threads
        stacks: Counter[tuple[Shown, ...]] = Counter()
        for stack, n in here.stacks.items():
            stacks[shown_stack(stack)] += n
        assert kind.stacks <= stacks
        if len(kind.n) == 1:
            assert {stack: stacks[stack] for stack in kind.stacks} == kind.stacks


# ---- peers


def folded(path: Path, values: str, **options: Any) -> Counter[str]:
    data, found, jfr = gzip.decompress(path.read_bytes()), Counter[str](), cast("Any", options)
    for value in values.split():
        out = io.BytesIO()
        fastprof.convert(io.BytesIO(data), out, to="folded", value=value, jfr=jfr, folded={"nanoseconds": True})
        for line in out.getvalue().decode().splitlines():
            stack, _, n = line.rpartition(" ")
            found[stack] += int(n)
    return found


def collapsed(path: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        stack, _, n = line.rpartition(" ")
        found[stack] += int(n)
    return found


# async-profiler names a method once, with the kind of the first frame that it reads: kinds are compared only if all
# frames of a method are of one kind.
CONVERTED = [
    ("real-ap-25-all", "cpu", "samples", {}, True),
    ("real-ap-25-all", "nativemem", "malloc_bytes", {}, True),
    ("real-ap-25-all", "wall-samples", "wall_samples", {}, False),
    ("real-ap-17-wall", "wall-samples", "wall_samples", {}, False),
    ("real-ap-17-ctimer", "cpu", "samples", {}, False),
    ("real-25-cputime", "cputime", "cpu_time_samples", {}, False),
    ("real-11-tlab", "alloc", "alloc_in_new_tlab_objects alloc_outside_tlab_objects", {"class_frames": True}, False),
    ("real-11-tlab", "alloc-total", "alloc_in_new_tlab_bytes alloc_outside_tlab_bytes", {"class_frames": True}, False),
    ("real-17-lock", "lock", "contentions parks", {"class_frames": True}, True),
    ("real-17-lock", "lock-total", "delay park_delay", {"class_frames": True}, True),
]


@pytest.mark.parametrize(("name", "peer", "values", "options", "with_kinds"), CONVERTED)
def test_collapsed_stacks_of_async_profiler(
    name: str, peer: str, values: str, options: dict[str, bool], with_kinds: bool
) -> None:
    assert SHARED is not None
    here = folded(SHARED / f"data/jfr/{name}.jfr.gz", values, kinds=True, **options)
    there = collapsed(SHARED / f"data/jfr/expected/{name}.jfrconv-{peer}.gz")
    if not with_kinds:
        here, there = without(KIND, here), without(KIND, there)
    assert here == there


def without(pattern: re.Pattern[str], stacks: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for stack, n in stacks.items():
        found[pattern.sub("", stack)] += n
    return found


GOLDEN = re.compile(r"(.*?)\.grafana-\d_(memory|process_cpu|wall|mutex|block)_(.*)\.txt\.gz")
LINE = re.compile(r":-?\d+(?=;|$)")
PERIOD = 10_000_000  # nanoseconds, stated by its tests
NAMES = {"live": "inuse_objects", "block_contentions": "parks", "block_delay": "park_delay"}


def goldens(*kinds: str) -> list[Any]:
    found = sorted((SHARED / "data/jfr/expected").glob("*.grafana-?_*.txt.gz")) if SHARED else []
    matches = {path: GOLDEN.fullmatch(path.name) for path in found}
    return [
        pytest.param(path, id=path.name.replace("foreign-grafana-", ""))
        for path, match in matches.items()
        if match is not None and match[2] in kinds
    ]


def golden_values(golden: Path) -> tuple[Path, dict[str, Counter[str]]]:
    """The recording, and the amounts of stacks by value type."""
    match = GOLDEN.fullmatch(golden.name)
    assert SHARED is not None and match is not None
    name, kind, columns = match.groups()
    lines = [line.rpartition(" [") for line in gzip.decompress(golden.read_bytes()).decode().splitlines()]
    found = {}
    for k, column in enumerate(columns.split("+")):
        value = column.rpartition("__")[0]
        stacks = found[NAMES.get(value) or NAMES.get(f"{kind}_{value}", value)] = Counter[str]()
        for stack, _, amounts in lines:
            stacks[stack] += int(amounts.rstrip("]").split()[k])
    return SHARED / f"data/jfr/{name}.jfr.gz", {value: methods(without(LINE, one)) for value, one in found.items()}


def methods(stacks: Counter[str]) -> Counter[str]:
    """Stacks without classes: both sides merge stacks of hidden classes, but name them differently."""
    found: Counter[str] = Counter()
    for stack, n in stacks.items():
        found[";".join(frame.rpartition(".")[2] for frame in stack.split(";"))] += n
    return found


def with_stack(recording: Path, value: str) -> Counter[str]:
    """Its parser drops samples without a stack."""
    here = folded(recording, value, join_classes=True)
    here.pop("[no stack]", None)
    return methods(here)


@pytest.mark.parametrize("golden", goldens("memory"))
def test_goldens_of_pyroscope(golden: Path) -> None:
    """Counts and amounts of every stack."""
    recording, values = golden_values(golden)
    for value, there in values.items():
        assert with_stack(recording, value) == there


@pytest.mark.parametrize("golden", goldens("mutex", "block"))
def test_delays_of_pyroscope(golden: Path) -> None:
    """Its delays are in ticks.  Each of ours is in nanoseconds, rounded down."""
    recording, values = golden_values(golden)
    head = header(gzip.decompress(recording.read_bytes())[:HEADER_NBYTES])
    assert head is not None
    (counts, n), (delays, ticks) = values.items()
    assert with_stack(recording, counts) == n
    here = with_stack(recording, delays)
    assert here.keys() == ticks.keys()
    for stack, ns in here.items():
        exact = Fraction(ticks[stack] * 1_000_000_000, head.ticks_per_second)
        assert exact - n[stack] < ns <= exact


@pytest.mark.parametrize("golden", goldens("process_cpu", "wall"))
def test_execution_samples_of_pyroscope(golden: Path) -> None:
    recording, values = golden_values(golden)
    ((value, there),) = values.items()
    assert as_pyroscope_counts(recording)[value] == Counter({stack: n // PERIOD for stack, n in there.items()})


def as_pyroscope_counts(recording: Path) -> dict[str, Counter[str]]:
    """CPU and wall-clock samples: to its parser a wall-clock sample of a thread that does not sleep is both."""
    found = {"cpu": Counter[str](), "wall": Counter[str]()}
    for stack, metric, n, state in Rows(recording).rows():
        if metric == lib.FP_JFR_WALL:
            found["wall"][stack] += n
        if state != "STATE_SLEEPING":
            found["cpu"][stack] += n
    return {value: methods(stacks) for value, stacks in found.items()}


class Rows:
    """The execution samples of a recording."""

    def __init__(self, recording: Path) -> None:
        self.model = Model()
        data = gzip.decompress(recording.read_bytes())
        self._reader = JfrReader(Source(data), self.model, Options(join_classes=True), Log())

    def rows(self) -> Iterator[tuple[str, int, int, str]]:
        """Stack, metric, count and state, of those with a stack."""
        for batch in read(self._reader):
            names = [type_.name for type_ in self.model.parts[batch.part].value_types]
            columns = {
                metric: batch.values(names.index(COLUMNS[metric][0]))
                for metric in (lib.FP_JFR_CPU, lib.FP_JFR_WALL)
                if COLUMNS[metric][0] in names
            }
            for i in range(len(batch)):
                for metric, values in columns.items():
                    if values[i] and (stack := int(batch["stack"][i])):
                        yield self._stack(stack), metric, int(values[i]), self._state(int(batch["label"][i]))

    def _stack(self, node: int) -> str:
        names = []
        while node:
            node, frame = self.model.row("stacks", node)
            function = self.model.row("lines", self.model.row("frames", frame)[-1])[0]
            names.append(self.model.string(self.model.row("functions", function)[2]).decode())
        return ";".join(reversed(names))

    def _state(self, label: int) -> str:
        while label:
            row = self.model.row("labels", label)
            if self.model.string(row[1]) == b"state":
                return self.model.string(row[2]).decode()
            label = row[0]
        return ""


def test_go_tool_pprof(tmp_path: Path) -> None:
    """It reads our output: samples of every value type add up to those of the folded stacks."""
    assert SHARED is not None
    recording, out = SHARED / "data/jfr/real-ap-25-all.jfr.gz", tmp_path / "out.pb.gz"
    fastprof.convert(str(recording), str(out))
    read_back = raw(out)
    names = [type_.partition("/")[0] for type_ in read_back.types]
    assert {"samples", "wall_samples", "malloc_bytes", "delay"} <= set(names)
    sums = Counter[str]()
    for (_, _, k), n in read_back.samples.items():
        assert isinstance(k, int)
        sums[names[k]] += n
    assert sums == {name: sum(folded(recording, name).values()) for name in names}
