"""Flight recordings: samples or a timeline, if the target shows both."""

from __future__ import annotations

import gzip
import io
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


def written(source: Any, to: str = "speedscope", **options: Any) -> tuple[bool, fastprof.Log]:
    """Whether speedscope's file has a timeline."""
    out = io.BytesIO()
    log = fastprof.convert(source, out, to=to, **options)
    return b'"evented"' in out.getvalue(), log


@pytest.mark.parametrize("source", [io.BytesIO, Stream, lambda data: Stream(gzip.compress(data))])
def test_a_recording_without_samples_is_a_timeline(source: Any) -> None:
    is_timeline, log = written(source(idle()))
    assert is_timeline
    assert log.rows["events_written"] == 6
    # samples in any chunk come first
    for data in (idle() + sampled(), idle() + nothing() + sampled() + idle(), sampled()):
        is_timeline, log = written(source(data))
        assert not is_timeline
        assert log.rows["samples_written"] == 1
        assert log.not_representable["timed-events"] == 3 * data.count(idle())
    assert written(source(sampled() + idle()), jfr={"events": True})[0]
    assert not written(source(nothing()))[0]
    assert written(source(idle() + nothing() + idle()))[0]


def test_verbs_choose_as_speedscope_does() -> None:
    assert fastprof.info(idle()).facts["view"] == "timeline"
    assert fastprof.info(idle() + sampled()).facts["view"] == "stacks"
    assert {row.name for row in fastprof.top(idle()).rows} == {f"app.Step: {name}" for name in "ABC"}
    with fastprof.open(idle()) as profile:
        assert (profile.view, profile.tables) == ("timeline", ("spans", "events"))
        assert sum(map(len, profile)) == 6
    for source in (io.BytesIO, Stream):
        with fastprof.open(source(sampled() + idle())) as profile:
            assert profile.view == "stacks"
            assert sum(map(len, profile)) == 1
        with fastprof.open(source(idle())) as profile:
            assert sum(map(len, profile)) == 6


def test_several_inputs_are_timelines_only_together(tmp_path: Path) -> None:
    paths = []
    for name, data in (("a", idle()), ("b", idle()), ("c", sampled())):
        paths.append(tmp_path / f"{name}.jfr")
        paths[-1].write_bytes(data)
    assert written(paths[:2])[0]
    is_timeline, log = written(paths)
    assert not is_timeline
    assert log.not_representable["timed-events"] == 6
    assert written([Stream(idle()), paths[0]])[0]


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
