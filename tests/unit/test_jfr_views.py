"""Flight recordings: samples, a timeline, or both."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

import fastprof
from tests.support.jfrfile import Chunk
from tests.unit.test_jfr import WORK, Stream, spans


def idle() -> bytes:
    """Three events with durations, one without, no sample."""
    chunk = spans()
    chunk.events.pop()
    return chunk.bytes()


def sampled() -> bytes:
    chunk = Chunk()
    chunk.event("jdk.ExecutionSample", 1, chunk.thread("t", 1, 7), chunk.stack([WORK]), chunk.state("S"))
    return chunk.bytes()


def nothing() -> bytes:
    chunk = Chunk()
    chunk.event("jdk.CPULoad", 1, 0.5)
    return chunk.bytes()


def written(source: Any, to: str = "speedscope", **options: Any) -> tuple[list[dict[str, Any]], fastprof.Log]:
    """The profiles in speedscope's file."""
    out = io.BytesIO()
    log = fastprof.convert(source, out, to=to, **options)
    return json.loads(out.getvalue())["profiles"] if to == "speedscope" else [], log


def times(profiles: list[dict[str, Any]]) -> list[list[tuple[str, int]]]:
    return [[(event["type"], event["at"]) for event in profile["events"]] for profile in profiles]


def kinds(source: Any, **options: Any) -> set[str]:
    return {profile["type"] for profile in written(source, **options)[0]}


@pytest.mark.parametrize("source", [io.BytesIO, Stream, lambda data: Stream(gzip.compress(data))])
def test_a_recording_without_samples_is_a_timeline(source: Any) -> None:
    profiles, log = written(source(idle()))
    assert {profile["type"] for profile in profiles} == {"evented"}
    assert log.rows == {"events_written": 6}
    assert kinds(source(nothing())) == {"sampled"}
    assert kinds(source(idle() + nothing() + idle())) == {"evented"}


@pytest.mark.parametrize("source", [io.BytesIO, Stream, lambda data: Stream(gzip.compress(data))])
def test_speedscope_shows_samples_and_the_timeline(source: Any) -> None:
    for data in (idle() + sampled(), idle() + nothing() + sampled() + idle(), sampled() + idle(), sampled()):
        profiles, log = written(source(data))
        n = data.count(idle())
        assert [profile["type"] for profile in profiles] == ["sampled"] + ["evented"] * bool(n) * 2
        assert log.rows == ({"samples_written": 1, "events_written": 6 * n} if n else {"samples_written": 1})
        assert "timed-events" not in log.not_representable
        instants = n + data.count(nothing())
        assert log.not_representable["side-events" if not n else "events"] == instants
        alone, events = written(source(data), jfr={"events": True})
        assert (times(profiles[1:]) == times(alone)) == bool(n)
        assert log.repairs == events.repairs  # once each


def test_filters_that_only_samples_have_leave_the_timeline_out(tmp_path: Path) -> None:
    data = sampled() + idle()
    assert kinds(data, threads=(7,), time_range="0%:") == {"sampled", "evented"}
    for options in ({"label": ("thread_name=t",)}, {"split": "thread"}):
        paths = [tmp_path / "x.speedscope.json"]
        log = fastprof.convert(data, paths[0], **options)
        assert log.not_representable["timed-events"] == 3
        assert not log.rows["events_written"]


def test_both_views_come_back() -> None:
    out, again = io.BytesIO(), io.BytesIO()
    data = sampled() + idle()
    log = fastprof.convert(data, out, to="speedscope")
    assert log.not_representable["start-time"] == 1
    assert fastprof.info(out.getvalue()).facts["totals"] == fastprof.info(sampled()).facts["totals"]
    assert [row.name for row in fastprof.top(out.getvalue()).rows] == [row.name for row in fastprof.top(data).rows]
    names = {f"app.Step: {name}" for name in "ABC"}
    assert {row.name for row in fastprof.top(out.getvalue(), speedscope={"evented": True}).rows} == names
    trace = io.BytesIO()
    fastprof.convert(out.getvalue(), trace, to="trace-event")
    assert {event["name"] for event in json.loads(trace.getvalue())["traceEvents"] if event["ph"] == "B"} == names
    log = fastprof.convert(out.getvalue(), again, to="speedscope")
    assert again.getvalue() == out.getvalue()
    assert "other-profiles" not in log.not_representable
    assert fastprof.convert(out.getvalue(), io.BytesIO(), to="folded").not_representable["other-profiles"] == 2


def test_both_views_share_the_budget() -> None:
    data = (sampled() + idle()) * 30
    whole = io.BytesIO()
    fastprof.convert(data, whole, to="speedscope")
    least = io.BytesIO()
    log = fastprof.convert(data, least, to="speedscope", budget=len(whole.getvalue()) // 2)
    assert len(least.getvalue()) <= len(whole.getvalue()) // 2
    assert log.not_representable["short-calls"] > 0
    assert {profile["type"] for profile in json.loads(least.getvalue())["profiles"]} == {"sampled", "evented"}
    with pytest.raises(fastprof.UsageError, match=r"in \[pruned\] and with all calls merged"):
        fastprof.convert(data, io.BytesIO(), to="speedscope", budget=100)


def test_verbs_choose_as_speedscope_does() -> None:
    assert fastprof.info(idle()).facts["view"] == "timeline"
    assert fastprof.info(idle() + sampled()).facts["view"] == "stacks"
    assert {row.name for row in fastprof.top(idle()).rows} == {f"app.Step: {name}" for name in "ABC"}
    with fastprof.open(idle()) as profile:
        assert (profile.view, profile.tables) == ("timeline", ("spans", "events"))
        assert sum(map(len, profile)) == 7  # with an instant
    for source in (io.BytesIO, Stream):
        with fastprof.open(source(sampled() + idle())) as profile:
            assert profile.view == "stacks"
            assert sum(map(len, profile)) == 1
        with fastprof.open(source(idle())) as profile:
            assert sum(map(len, profile)) == 7  # with an instant


def test_several_inputs_are_timelines_only_together(tmp_path: Path) -> None:
    paths = []
    for name, data in (("a", idle()), ("b", idle()), ("c", sampled())):
        paths.append(tmp_path / f"{name}.jfr")
        paths[-1].write_bytes(data)
    assert kinds(paths[:2]) == {"evented"}
    profiles, log = written(paths)
    assert [profile["type"] for profile in profiles] == ["sampled"] + 4 * ["evented"]
    assert log.rows == {"samples_written": 1, "events_written": 12}
    assert kinds([Stream(idle()), paths[0]]) == {"evented"}


def test_an_idle_recording_has_the_value_types_of_others_where_it_may_be_merged(tmp_path: Path) -> None:
    for to in ("archive", "pprof", "folded", "parquet"):
        log = written(idle(), to)[1]
        assert not log.rows["events_written"]
        assert log.not_representable["timed-events"] == 3
    store = tmp_path / "x.fpa"
    paths = []
    for name, data in (("a", idle()), ("b", sampled())):
        paths.append(tmp_path / f"{name}.jfr")
        paths[-1].write_bytes(data)
    fastprof.archive_add(store, paths)
    assert fastprof.merge([f"{store}:a.jfr", f"{store}:b.jfr"], io.BytesIO(), to="folded").rows == {"stacks_written": 1}


def test_damage_is_reported_as_without_the_choice() -> None:
    for data in (idle()[:-9], idle() + b"FLR", idle() + sampled()[:100]):
        messages = []
        for to in ("speedscope", "pprof"):
            with pytest.raises(fastprof.FastprofError) as error:
                written(data, to)
            messages.append(str(error.value))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("order", [1, -1])
def test_the_older_thread_names_that_of_the_system(order: int) -> None:
    """DestroyJavaVM runs on the operating system's thread of main; events are in any order."""
    chunk = Chunk()
    threads = [chunk.thread("main", 1, 7), chunk.thread("DestroyJavaVM", 9, 7)]
    for i, thread in enumerate(threads[::order]):
        chunk.event("jdk.JavaMonitorEnter", 6 + 9 * i, 7, thread, chunk.stack([WORK]), chunk.class_("a/Lock"))
    profiles, _ = written(chunk.bytes())
    assert {"main (7)" in profile["name"] for profile in profiles} == {True}


def test_a_thread_that_is_renamed_has_its_last_name() -> None:
    chunk = Chunk()
    for i, thread in enumerate([chunk.thread("pool-1", 5, 7), chunk.thread("requests", 5, 7)]):
        chunk.event("jdk.JavaMonitorEnter", 6 + 9 * i, 7, thread, chunk.stack([WORK]), chunk.class_("a/Lock"))
    profiles, _ = written(chunk.bytes())
    assert {"requests (7)" in profile["name"] for profile in profiles} == {True}
