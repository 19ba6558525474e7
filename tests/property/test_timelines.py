"""A timeline of any format as an XRay log: reading and writing it gives the same bytes, from the second time on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastprof.core.errors import FastprofError
from tests.contract.dump import files
from tests.property.test_json_formats import traces
from tests.support.conversions import convert_bytes
from tests.support.paths import CORPUS

NAMES = st.sampled_from(["f", "g", "#1", "#7", "#0", "#268435455", "#268435456", "", "h;i", "\udcff", "f "])


@st.composite
def evented(draw: st.DrawFn) -> bytes:
    """A speedscope document: calls of several threads, some of which do not nest, at any times."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5))
    unit = draw(st.sampled_from(["nanoseconds", "seconds", "none"]))
    found = []
    for i in range(draw(st.integers(1, 3))):
        at, events = draw(st.sampled_from([0, 5, 10**12])), []
        for _ in range(draw(st.integers(0, 12))):
            at += draw(st.sampled_from([0, 1, 1000, 10**7]))
            frame = draw(st.integers(0, len(names) - 1))
            events.append({"type": draw(st.sampled_from("OOC")), "frame": frame, "at": at})
        name = draw(st.sampled_from(["", "thread 7", "process 3, thread 7", f"t{i}"]))
        found.append({"type": "evented", "name": name, "unit": unit, "startValue": 0, "endValue": at, "events": events})
    return json.dumps({"profiles": found, "shared": {"frames": [{"name": name} for name in names]}}).encode()


TIMELINES = st.one_of(
    st.tuples(st.just("speedscope"), evented()),
    st.tuples(st.just("trace-event"), traces()),
)
# Intermediate formats on the way from log to log.
WAYS = ["xray", "archive", "speedscope", "trace-event"]


def written(data: bytes, from_: str, to: str) -> Any:
    return convert_bytes(data, from_, to).data


def becomes_stable(data: bytes, from_: str, way: str) -> None:
    """It is stable once it was read and written, or converted to another format and back.  Before, buffers with equal
    times may be in another order than their threads, and several threads may have the same number."""
    log = written(data, from_, "xray")
    rounds = [log := written(written(log, "xray", way), way, "xray") for _ in range(3)]
    assert rounds[1] == rounds[2]
    if way == "xray":
        assert rounds[0] == rounds[1]


@pytest.mark.parametrize("way", WAYS)
@settings(suppress_health_check=list(HealthCheck))
@given(TIMELINES)
def test_a_log_stays_as_it_is(way: str, timeline: tuple[str, bytes]) -> None:
    from_, data = timeline
    try:
        written(written(data, from_, "xray"), "xray", way)
    except FastprofError:
        return  # neither a log nor the other format can hold any of it
    becomes_stable(data, from_, way)


@pytest.mark.parametrize("way", WAYS)
def test_so_does_every_timeline_of_the_corpus(way: str) -> None:
    found = 0
    for file in files("good"):
        room = file.split("/")[0]
        if room not in ("xray", "speedscope", "trace-event", "archive"):
            continue
        data = (CORPUS / file).read_bytes()
        try:
            written(written(data, room, "xray"), "xray", way)
        except FastprofError:
            continue
        becomes_stable(data, room, way)
        found += 1
    assert found > 20
