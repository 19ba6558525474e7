"""Perfetto's own trace processor on the traces that we read: every slice, by thread and name, and every stack."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.options import Options
from tests.differential.peers import viewer
from tests.support.conversions import convert_bytes
from tests.support.paths import CORPUS, needs_shared, shared_folder
from tests.support.product import batches, open_input
from tests.unit import (
    test_counters,
    test_perfetto_frames,
    test_perfetto_objects,
    test_perfetto_prints,
    test_perfetto_sched,
)

SLICES = """
  select coalesce(p.pid, p2.pid, 0), coalesce(th.tid, -1), coalesce(s.name, ''), count(*),
    sum(case when s.dur < 0 then 0 else s.dur end), sum(s.dur < 0)
  from slice s left join thread_track tt on s.track_id = tt.id left join thread th using (utid)
  left join process p using (upid) left join process_track pt on s.track_id = pt.id
  left join process p2 on p2.upid = pt.upid group by 1, 2, 3
"""
HEAP = """
  select heap_name, sum(case when size > 0 then size else 0 end), sum(case when size > 0 then count else 0 end),
    -sum(case when size < 0 then size else 0 end)
  from heap_profile_allocation group by 1
"""
SAMPLES = "select count(*) from perf_sample where callsite_id is not null"
OBJECTS = """
  select id, parent_id, name, count, size from experimental_flamegraph('graph', 100, null, {}, null, null) order by id
"""
STATES = """
  select tid, state, sum(dur) from thread_state join thread using (utid) where dur >= 0 and tid > 0 group by 1, 2
"""
COUNTERS = "select t.name, c.value from counter c join track t on c.track_id = t.id where t.name != 'x'"
GOOD = CORPUS / "perfetto" / "good"
CALLS = ["basic", "clock-after-use", "compressed", "end-of-outer-name", "ftrace"]
CALLS += ["open-and-orphan", "unordered-sequences", "written"]
REAL = shared_folder("perfetto/read")
# known cases where the trace processor is wrong or answers another question
CHROME = ["real-chromium.pftrace.gz", "real-chromium-cpu.pftrace.gz"]


def slices(data: bytes) -> dict[tuple[int, int, str], list[int]]:
    """(pid, tid or -1 of a lane, name): calls and events, their time, those that never end."""
    opened = open_input(data, Options(**{"perfetto.data": "calls"}), from_="perfetto")
    model, found = opened.model, defaultdict[tuple[int, int, str], list[int]](lambda: [0, 0, 0])
    stacks: dict[int, list[Any]] = {}
    for batch in batches(opened):
        for i, op in enumerate(batch["op"]):
            thread = batch["thread"][i]
            _, pid, tid = model.row("threads", thread)
            tid = -1 if tid > 1 << 30 else tid
            if op == 1:
                key, begin = stacks[thread].pop()
                found[key][1] += batch["time"][i] - begin
                found[key][2] -= 1
            elif op == 5:
                found[pid, tid, batch.payload(i).decode("utf-8", "replace")][0] += 1
            elif op in (0, 3):
                name = model.string(model.row("functions", batch["function"][i])[2]).decode("utf-8", "replace")
                key = pid, tid, name
                found[key][0] += 1
                found[key][2] += 1
                stacks.setdefault(thread, []).append((key, batch["time"][i]))
    return dict(found)


def check_calls(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    (theirs,) = viewer("trace_processor", path, SLICES)
    expected = {(int(p), int(t), n or "[unknown]"): [int(c), int(d), int(o)] for p, t, n, c, d, o in theirs}
    assert expected
    assert slices(data) == expected


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_slices(name: str, tmp_path: Path) -> None:
    data = (GOOD / f"{name}.pftrace").read_bytes()
    if name == "written":  # the payload of an event is our name for it, and an argument for them
        check_totals(data, tmp_path / "trace")
    else:
        check_calls(data, tmp_path / "trace")


def test_prints_of_atrace(tmp_path: Path) -> None:
    check_calls(test_perfetto_prints.TRACE, tmp_path / "trace")


def test_frames_of_android(tmp_path: Path) -> None:
    check_calls(test_perfetto_frames.TRACE, tmp_path / "trace")


def check_totals(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    (theirs,) = viewer("trace_processor", path, SLICES)
    expected, found = Counter[str](), Counter[str]()
    for _, _, name, _, total, _ in theirs:
        expected[name or "[unknown]"] += int(total)
    for (_, _, name), (_, total, _) in slices(data).items():
        found[name] += total
    assert +found == +expected


@needs_shared
@pytest.mark.parametrize("name", CHROME)
def test_calls_of_chromium(name: str, tmp_path: Path) -> None:
    check_totals(gzip.decompress((REAL / name).read_bytes()), tmp_path / "trace")


@needs_shared
@pytest.mark.parametrize("name", [*CHROME, "real-chromium-v8-samples.pftrace.gz"])
def test_names_of_the_processes_of_chromium(name: str, tmp_path: Path) -> None:
    """Several descriptors name a process, some of them after its command line."""
    (tmp_path / "trace").write_bytes(gzip.decompress((REAL / name).read_bytes()))
    (theirs,) = viewer("trace_processor", tmp_path / "trace", "select pid, name from process where pid > 0")
    ours = fastprof.info(tmp_path / "trace").facts["process_names"]
    assert len(ours) > 2
    assert ours == {str(pid): name for pid, name in theirs if str(pid) in ours}


def test_heap_dumps(tmp_path: Path) -> None:
    path = GOOD / "mixed.pftrace"
    (theirs,) = viewer("trace_processor", path, HEAP)
    opened = open_input(path, Options(**{"perfetto.data": "allocations"}), from_="perfetto")
    found = defaultdict[str, list[int]](lambda: [0, 0, 0])
    for batch in batches(opened):
        for i, label in enumerate(batch["label"]):
            heap = opened.model.string(opened.model.row("labels", label)[2]).decode()
            for k, column in enumerate((1, 0, 3)):
                found[heap][k] += batch.values(column)[i]
    assert {name: [int(v) for v in rest] for name, *rest in theirs} == dict(found)


def test_objects_of_a_java_heap(tmp_path: Path) -> None:
    """Paths of the flame graph, whose first frame names the kind of the root, and which has no unreachable objects."""
    (tmp_path / "in").write_bytes(test_perfetto_objects.TRACE)
    (((upid,),),) = viewer("trace_processor", tmp_path / "in", "select upid from process where pid = 10")
    (theirs,) = viewer("trace_processor", tmp_path / "in", OBJECTS.format(upid))
    paths: dict[int, tuple[str, ...]] = {}
    expected = {}
    for id_, parent, name, count, size in theirs:
        class_, _, kind = name.partition(" [")
        paths[id_] = (kind[:-1], class_) if parent is None else (*paths[parent], name)
        expected[paths[id_]] = int(count), int(size)
    ours = test_perfetto_objects.paths(test_perfetto_objects.TRACE)
    assert {path: n for path, n in ours.items() if path[0] != test_perfetto_objects.UNREACHABLE} == expected


@pytest.mark.parametrize("data", [test_perfetto_sched.LONG, test_perfetto_sched.SHORT], ids=["events", "compact"])
def test_states_of_threads(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(data)
    (theirs,) = viewer("trace_processor", tmp_path / "in", STATES)
    found = Counter[tuple[int, str]]()
    for _, tid, name, letter, begin, end in test_perfetto_sched.states(data):
        found[tid, letter or name.title()] += (end or begin) - begin
    assert +found == +Counter({(int(tid), state): int(total) for tid, state, total in theirs})


@pytest.mark.parametrize("to", ["", "perfetto", "trace-event"])
def test_values_of_counters(to: str, tmp_path: Path) -> None:
    """Of the original, and of what we write."""
    data = test_counters.TRACE
    (tmp_path / "in").write_bytes(convert_bytes(data, "perfetto", to).data if to else data)
    (theirs,) = viewer("trace_processor", tmp_path / "in", COUNTERS)
    ours = [payload.partition(" ")[::2] for *_, payload in test_counters.VALUES]
    if not to:  # they drop a value whose track is described later, and Chrome's prints with a category
        ours = [(value, name) for value, name in ours if name not in ("late", "chrome")]
    # of Chrome's counters the names end with a blank, or with the key
    named = [(name.strip().removesuffix(" value"), value) for name, value in theirs]
    expected = sorted((name, float(value)) for value, name in ours)
    assert [name for name, _ in sorted(named)] == [name for name, _ in expected]
    # they read 30000000000000006e-17 as 0.3000000000000001
    assert [value for _, value in sorted(named)] == pytest.approx([value for _, value in expected], rel=1e-14)


def test_samples() -> None:
    path = GOOD / "mixed.pftrace"
    ((theirs,),) = viewer("trace_processor", path, SAMPLES)
    # they count a sample that the recorder skipped
    assert fastprof.info(path, perfetto={"data": "samples"}).facts["records"] == int(theirs[0]) - 1
