"""Counters, events and states of threads in the page of `report`: those of the input, at their times."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import report
from tests.support import perfettotrace as t
from tests.support.pages import Page
from tests.support.paths import CORPUS, needs_shared, shared_data
from tests.unit.test_counters import described, firefox_counters
from tests.unit.test_counters import value as perfetto_value
from tests.unit.test_jfr import counters as jfr_counters
from tests.unit.test_perfetto_sched import LONG


def written(tmp_path: Path, events: list[dict[str, Any]], **options: Any) -> Page:
    (tmp_path / "t.json").write_text(json.dumps(events))
    report(tmp_path / "t.json", tmp_path / "page.html", from_="trace-event", **options)
    return Page(tmp_path / "page.html")


def call(ts: float, dur: float, tid: int = 8) -> dict[str, Any]:
    return {"ph": "X", "pid": 7, "tid": tid, "name": "main", "ts": ts, "dur": dur}


def value(ts: float, number: float, name: str = "heap", tid: int = 8) -> dict[str, Any]:
    return {"ph": "C", "pid": 7, "tid": tid, "name": name, "ts": ts, "args": {"value": number}}


def event(ts: float, name: str, tid: int = 8) -> dict[str, Any]:
    return {"ph": "i", "pid": 7, "tid": tid, "name": name, "ts": ts}


def counters_of(page: Page) -> dict[str, list[tuple[float, float]]]:
    """The points of each counter."""
    found, at, columns = {}, 0, page.columns
    for counter, size in zip(page.head["tracks"]["counters"], columns["counter size"], strict=True):
        times = accumulate(columns["counter time"][at : at + size])
        found[counter["name"]] = [*zip(times, columns["counter value"][at : at + size], strict=True)]
        at += size
    return found


def rows_of(page: Page, kind: str, first: str, *others: str) -> list[tuple[Any, ...]]:
    """Of each mark or state: its thread, time, name, and `others`."""
    found, now, before = list[tuple[Any, ...]](), 0.0, -1
    tracks, columns = page.head["tracks"], page.columns
    names = tracks["events" if kind == "mark" else "states"]
    rows = zip(*(columns[f"{kind} {name}"] for name in ("thread", first, "name", *others)), strict=True)
    for thread, step, name, *more in rows:
        now = step + (now if thread == before else 0)
        before = thread
        found.append((tracks["threads"][thread], now, names[name], *more))
    return found


def test_counters_and_events_of_a_trace(tmp_path: Path) -> None:
    page = written(
        tmp_path,
        [
            call(10, 80),
            *(value(ts, number) for ts, number in ((5, 1), (20, 3), (30, 3), (40, 2.5))),
            value(50, -4, "queue", tid=9),
            *(event(ts, name) for ts, name in ((12, "gc"), (15, "flush"), (95, "gc"))),
            event(15, "gc", tid=9),
        ],
    )
    # the axis begins with the first value; 3 twice is one point
    assert counters_of(page) == {"heap": [(0, 1), (15e3, 3), (35e3, 2.5)], "queue": [(45e3, -4)]}
    heap = page.head["tracks"]["counters"][0]
    assert (heap["n"], heap["least"], heap["most"]) == (4, 1, 3) and page.head["time"]["length"] == 90e3
    main, other = "process 7, thread 8", "process 7, thread 9"
    assert rows_of(page, "mark", "time", "count") == [
        (main, 7e3, "gc", 1),
        (main, 10e3, "flush", 1),
        (main, 90e3, "gc", 1),
        (other, 10e3, "gc", 1),
    ]
    assert page.head["tracks"]["n_events"] == 4
    assert not page.head["logged"]["not_shown"]  # they are shown


def test_of_many_values_the_extremes_are_kept(tmp_path: Path) -> None:
    numbers = [(7 * i) % 101 for i in range(40_000)]
    numbers[12_345], numbers[30_000] = 5_000, -3
    page = written(tmp_path, [call(0, 40_000), *(value(ts, number) for ts, number in enumerate(numbers))])
    points = counters_of(page)["heap"]
    assert 4_000 < len(points) <= 12_000 and page.head["tracks"]["is_thinned"]
    assert {(12_345e3, 5_000), (30_000e3, -3), (0, 0), (39_999e3, numbers[-1])} <= {*points}
    assert all(numbers[round(time / 1000)] == number for time, number in points)
    for first in range(0, 40_000, 100):  # no stretch of a page's pixel loses its extremes by much
        mine = [number for time, number in points if first * 1000 <= time < (first + 100) * 1000]
        assert max(mine) >= sorted(numbers[first : first + 100])[-6]
    whole = counters_of(written(tmp_path, [call(0, 40_000), *(value(ts, n) for ts, n in enumerate(numbers))], prune=0))
    assert len(whole["heap"]) == 40_000


def test_many_counters_and_events_are_bounded(tmp_path: Path) -> None:
    events = [call(0, 50_000)]
    events += [value(i, i % 7, f"c{i % 300}") for i in range(3_000)]
    events += [event(i, f"e{i % 6_000}") for i in range(30_000)]
    page = written(tmp_path, events)
    tracks = page.head["tracks"]
    assert len(tracks["counters"]) == 64 and tracks["left_out"] > 64
    marks = rows_of(page, "mark", "time", "count")
    assert len(marks) <= 8_000 and sum(count for *_, count in marks) == 30_000 == tracks["n_events"]
    assert "[unknown]" in tracks["events"] and len(page.bytes) < 1_000_000


def test_payloads_that_are_no_text_are_hexadecimal(tmp_path: Path) -> None:
    path = tmp_path / "e.xray"
    fastprof.convert(CORPUS / "archive/good/timeline.fpa", path)
    report(path, tmp_path / "page.html")
    tracks = Page(tmp_path / "page.html").head.get("tracks")
    assert tracks is None or all(name.isprintable() for name in tracks["events"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("jfr/real-17-lock.jfr.gz", {"jfr": {"events": True}}, marks=needs_shared),
        ("firefox/good/gecko-24.json", {"firefox": {"markers": True}}),
    ],
)
def test_states_beside_samples_are_the_timeline(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    """Of each state as much time as the calls of the timeline have, which an option shows instead of samples."""
    path = CORPUS / name if "good" in name else shared_data(name)
    report(path, tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    states, sums = rows_of(page, "state", "begin", "duration"), dict[str, float]()
    for _, begin, state, duration in states:
        assert 0 <= begin <= begin + duration <= page.head["samples"]["length"]
        sums[state] = sums.get(state, 0) + duration
    expected = dict[str, float]()
    for row in fastprof.open(path, **options).rows("spans"):
        expected[row["function"]] = expected.get(row["function"], 0) + row["dur"]
    assert sums == expected and states
    # those of threads with samples are at these threads
    assert {thread for thread, *_ in states} & {*page.head["threads"]}


@pytest.mark.parametrize("name", ["switch", "sched"])
def test_times_off_the_cpu_are_states_of_threads(name: str, tmp_path: Path) -> None:
    """As long, by thread, as perf.data's value off-cpu; no two of a thread overlap."""
    path = CORPUS / f"recordings/{name}.data"
    report(path, tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    sums, last = dict[str, float](), dict[str, float]()
    for thread, begin, state, duration in rows_of(page, "state", "begin", "duration"):
        assert state == "off-cpu" and begin >= last.get(thread, 0)
        last[thread] = begin + duration
        sums[thread] = sums.get(thread, 0) + duration
    rows = fastprof.top(path, by="thread", value="off-cpu", n=0).rows
    assert sorted(sums.values()) == sorted(row.self for row in rows if row.self) and len(sums) > 1


def test_what_lasts_too_long_does_not_hide_samples(tmp_path: Path) -> None:
    """A monitor of 101 years, in a recording of some milliseconds."""
    report(CORPUS / "jfr/good/made-clock-and-durations.jfr", tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    length = page.head["samples"]["length"]
    assert length < 1e9
    assert all(begin + duration <= length for _, begin, _, duration in rows_of(page, "state", "begin", "duration"))


PERFETTO = b"".join(
    [
        t.packet(track=t.process(1, 10, "app"), flags=t.CLEARED),
        *(
            described(uuid, name, 1, *unit)
            for uuid, name, *unit in (
                (22, "heap", (3, 3)),
                (23, "wait", (3, 1)),
                (24, "power", (6, "mW")),
                (25, "n", (3, 2)),
                (26, "n", (6, "a")),
                (27, "two", (6, "a")),
                (28, "two", (6, "b")),
            )
        ),
        *(perfetto_value(100, track, 5) for track in range(22, 29)),
    ]
)


@pytest.mark.parametrize(
    ("data", "options", "units"),
    [
        (PERFETTO, {}, {"heap": "bytes", "wait": "nanoseconds", "power": "mW", "n": "a"}),
        (firefox_counters(), {"firefox": {"markers": True}}, {"malloc": "bytes", "power": "pWh"}),
        (
            jfr_counters().bytes(),
            {"jfr": {"events": True}},
            {
                "jdk.CPULoad.jvmUser": "share",
                "jdk.CPULoad.machineTotal": "share",
                "jdk.GCHeapSummary.heapUsed": "bytes",
            },
        ),
    ],
)
def test_counters_have_the_units_of_their_source(
    data: bytes, options: dict[str, Any], units: dict[str, str], tmp_path: Path
) -> None:
    """Of a name with two units none."""
    (tmp_path / "in").write_bytes(data)
    report(tmp_path / "in", tmp_path / "page.html", **options)
    counters = Page(tmp_path / "page.html").head["tracks"]["counters"]
    assert {one["name"]: one["unit"] for one in counters if "unit" in one} == units and len(counters) >= len(units)


def test_a_time_range_limits_tracks(tmp_path: Path) -> None:
    events = [call(0, 100), call(200, 100), value(10, 1), value(150, 2), value(220, 3), event(10, "a"), event(220, "b")]
    page = written(tmp_path, events, time_range="0.2ms:0.3ms")
    assert page.head["tracks"]["events"] == ["b"] and counters_of(page) == {"heap": [(20e3, 3)]}
    assert "tracks" not in written(tmp_path, [call(0, 100)]).head


@needs_shared
def test_resident_memory_is_in_the_series(tmp_path: Path) -> None:
    path = shared_data("heaptrack", "ht.zst")
    report(path, tmp_path / "page.html")
    resident = [one["resident_bytes"] for one in fastprof.info(path).facts["snapshots"]]
    assert [one[6] for one in Page(tmp_path / "page.html").head["series"]["snapshots"]] == resident and any(resident)


def test_states_of_the_scheduler_are_next_to_calls(tmp_path: Path) -> None:
    (tmp_path / "t.pftrace").write_bytes(LONG)
    report(tmp_path / "t.pftrace", tmp_path / "page.html")
    page = Page(tmp_path / "page.html")
    found = {
        (thread[-3:-1], state, begin, duration)
        for thread, begin, state, duration in rows_of(page, "state", "begin", "duration")
    }
    # the axis begins with the first switch, at 100
    assert {
        ("11", "running", 0, 30),
        ("11", "blocked", 30, 20),
        ("11", "runnable", 50, 30),
        ("12", "running", 30, 50),
    } <= found
    assert page.head["time"]["threads"] == ["process 10, worker (11)"] == page.head["tracks"]["threads"][:1]
    assert page.name(page.columns["call function"][0]) == "load" and page.columns["call begin"] == [20]
    assert not any("switch" in text for text in page.head["logged"]["not_shown"])


def test_a_trace_without_calls_has_its_counters(tmp_path: Path) -> None:
    page = written(tmp_path, [value(1, 1), event(3, "start"), value(5, 4)])
    assert counters_of(page) == {"heap": [(0, 1), (4e3, 4)]} and page.head["time"]["length"] == 4e3
    assert not page.head["logged"]["not_shown"]
