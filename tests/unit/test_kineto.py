"""Traces of PyTorch (Kineto): its own spans, and annotations that begin and end within functions."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastprof
from fastprof.core.options import Options
from tests.support.paths import CORPUS
from tests.support.product import batches, open_input
from tests.unit.test_trace_event import GOOD, KINETO, repairs, spans


@pytest.mark.parametrize("categories", [None, "^(cpu_op|user_annotation)$", "^cpu_op$"])
def test_key_averages(categories: str | None) -> None:
    """Calls, self time and total time of each name as PyTorch's `key_averages` gave them for the same run."""
    lines = (CORPUS / "trace-event/kineto-key-averages.tsv").read_text().splitlines()
    table = [(name, int(calls), float(own), float(total)) for name, calls, own, total in (x.split("\t") for x in lines)]
    annotations = {"step", "Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"}
    expected = {row[0]: row[1:] for row in table if row[0] not in annotations or categories != "^cpu_op$"}
    top = fastprof.top(GOOD / "kineto-key-averages.json.gz", n=0, object=categories)
    assert {row.name for row in top.rows} == expected.keys()
    for row in top.rows:
        calls, own, total = expected[row.name]
        assert row.calls == calls
        assert (row.self / 1000, row.inclusive / 1000) == pytest.approx((own, total), abs=0.0011)


def test_pytorchs_own_totals() -> None:
    """`key_averages` of the same run: spans of the profiler, and annotations beside functions, count no time twice."""
    events_ = json.loads(gzip.decompress(KINETO.read_bytes()))["traceEvents"]
    calls = [event for event in events_ if event["ph"] == "X" and event["cat"] != "Trace"]
    assert {event["tid"] for event in calls} == {26157}
    covered, last = 0, 0.0
    for event in sorted(calls, key=lambda event: event["ts"]):
        covered += max(0, round(1000 * (event["ts"] + event["dur"])) - round(1000 * max(event["ts"], last)))
        last = max(last, event["ts"] + event["dur"])
    top = fastprof.top(KINETO, n=0)
    assert top.total == pytest.approx(covered, abs=1000) and covered < 969_000_000
    rows = {row.name: row for row in top.rows}
    forward = [event for event in calls if event["name"] == "## forward ##"]
    assert (rows["## forward ##"].calls, rows["## forward ##"].inclusive) == (
        len(forward),
        sum(round(1000 * event["dur"]) for event in forward),
    )
    within = [
        event["dur"]
        for event in calls
        if event["name"] == "aten::linear" and any(one["ts"] <= event["ts"] < one["ts"] + one["dur"] for one in forward)
    ]
    assert rows["## forward ##"].self < sum(event["dur"] for event in forward) * 1000 - sum(within) * 1000
    log = fastprof.info(KINETO)
    assert {entry["code"] for entry in log.not_representable.entries()} >= {"profiler-spans"}
    assert "Spans" not in log.facts.get("process_names", {}).values()


def annotated(*calls: tuple[str, str, int, int]) -> bytes:
    keys = ("cat", "name", "ts", "dur")
    listed = [{"ph": "X", "pid": 1, "tid": 7, **dict(zip(keys, call, strict=True))} for call in calls]
    return json.dumps(listed).encode()


F, A = "python_function", "user_annotation"


def test_an_annotation_divides_functions() -> None:
    data = annotated(
        (F, "enter", 0, 10), (F, "c", 1, 7), (A, "a", 5, 95), (F, "f", 20, 10), (F, "exit", 95, 10), (F, "d", 96, 6)
    )
    assert sorted(spans(data)) == sorted(
        [
            ("7", "enter", 0, 5_000),
            ("7", "c", 1_000, 4_000),
            ("7", "a", 5_000, 95_000),
            ("7", "enter", 5_000, 5_000),
            ("7", "c", 5_000, 3_000),
            ("7", "f", 20_000, 10_000),
            ("7", "exit", 95_000, 5_000),
            ("7", "d", 96_000, 4_000),
            ("7", "exit", 100_000, 5_000),
            ("7", "d", 100_000, 2_000),
        ]
    )
    assert repairs(data) == {"divided-calls": 4}


def test_annotations_that_overlap_each_other_get_lanes() -> None:
    data = annotated((A, "a", 0, 10), (A, "b", 5, 20))
    assert repairs(data) == {"overlapping-calls": 1}
    deep = annotated(*((F, f"f{i}", i, 100 - 2 * i) for i in range(20)), (A, "a", 30, 200))
    assert repairs(deep) == {"overlapping-calls": 1}  # one annotation divides few calls


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([F, F, A]), st.sampled_from("fghijk"), st.integers(0, 40), st.integers(0, 30)),
        max_size=12,
    ),
    st.sampled_from([None, 1, 2]),
)
def test_dividing_keeps_every_duration(calls: list[tuple[str, str, int, int]], capacity: int | None) -> None:
    """Whatever overlaps, each name has its time; rows of a lane nest, and their times do not go back."""
    data = annotated(*((cat, name, ts, dur) for cat, name, ts, dur in calls))
    want: Counter[str] = Counter()
    for _, name, _, dur in calls:
        want[name] += 1000 * dur
    got: Counter[str] = Counter()
    open_: dict[int, list[tuple[int, int]]] = {}
    last: dict[int, int] = {}
    opened = open_input(data, Options(), from_="trace-event")
    for batch in batches(opened, capacity):
        columns = (batch[name].tolist() for name in ("op", "time", "thread", "function"))
        for op, time, thread, function in zip(*columns, strict=True):
            assert time >= last.get(thread, 0)
            last[thread] = time
            if op == 0:
                open_.setdefault(thread, []).append((function, time))
            else:
                entered, begin = open_[thread].pop()
                assert entered == function
                got[opened.model.get_function(function).name.decode()] += time - begin
    assert not any(open_.values()) and +got == +want
