"""Profiles of XLA: the statements of docs/formats/xplane.md."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import formats
from fastprof.core._c import lib
from fastprof.core.errors import FormatError
from fastprof.core.source import Source
from tests.reference import xplane
from tests.reference.xplane import Event, Line, Plane, entry, field
from tests.support.paths import CORPUS

GOOD = CORPUS / "xplane" / "good"


def rows(data: bytes | Path, **options: Any) -> Counter[xplane.Row]:
    """Calls and events as the reference has them; calls of Python have the place in front."""
    found: Counter[xplane.Row] = Counter()
    calls = dict[int, list[tuple[str, int]]]()
    with fastprof.open(data, from_="xplane", **options) as profile:
        model, names = profile._model, profile._model.names
        rows = [
            (op, time, thread, batch.payload(i).decode() if op == lib.FP_OP_CUSTOM else function)
            for batch in profile
            for i, (op, time, thread, function) in enumerate(
                zip(*(batch[name] for name in ("op", "time", "thread", "function")), strict=True)
            )
        ]
        for op, time, thread, what in rows:
            input_, pid, tid = model.row("threads", thread)
            key = names.first(input_), pid
            where = names.processes[key].decode(), names.threads[*key, tid].decode()
            if op == lib.FP_OP_ENTER:
                one = model.get_function(what)
                place = f"{one.file.decode()}:{one.line} " if one.line else ""
                calls.setdefault(thread, []).append((place + one.name.decode(), time))
            elif op == lib.FP_OP_EXIT:
                name, begin = calls[thread].pop()
                found[*where, name, begin, time - begin] += 1
            else:
                found[*where, what, time, 0] += 1
    assert not any(calls.values())
    return found


def expected(data: bytes) -> Counter[xplane.Row]:
    """The reference's, without the `$` or `$<module>` of Python's calls."""
    found: Counter[xplane.Row] = Counter()
    for (plane, line, name, begin, n), times in xplane.rows(data).items():
        shown = re.sub(r"^\$(?:<\S*> )?(?=.*\S)", "", name) if n else name
        found[plane, line, shown, begin, n] += times
    return found


@pytest.mark.parametrize("path", sorted(GOOD.iterdir()), ids=lambda path: path.name)
def test_rows_are_those_of_the_reference(path: Path) -> None:
    with Source(path.read_bytes()) as source:
        assert formats.claimants(source) == ["xplane"]
    assert rows(path) == expected(path.read_bytes())


def test_rows_are_those_of_the_trace_viewer() -> None:
    """But for pairs of events that the viewer joins, `StartRegion` and `StopRegion`."""
    events = json.loads(gzip.decompress((CORPUS / "xplane" / "cpu.viewer.json.gz").read_bytes()))["traceEvents"]
    thread = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    theirs = Counter(
        (thread[event["tid"]], event["name"], round(event["ts"] * 1000), round(event.get("dur", 0) * 1000))
        for event in events
        if event["ph"] in "Xi" and "Region" not in event["name"]
    )
    ours: Counter[Any] = Counter()
    for (_, line, name, begin, n), times in xplane.rows((GOOD / "cpu.xplane.pb").read_bytes()).items():
        if "Region" not in name:
            ours[line, name, round(begin / 1000), round(n / 1000)] += times
    assert ours == theirs and theirs.total() > 300
    assert rows(GOOD / "cpu.xplane.pb").total() == 465


def test_names_categories_and_ids() -> None:
    log = fastprof.info(GOOD / "cpu.xplane.pb")
    assert log.facts["ticks_per_second"] == 10**12 if "ticks_per_second" in log.facts else True
    assert log.not_representable == {"event-statistics": 694} and not log.losses
    device = Plane(
        "/device:TPU:0",
        (Line(1, "XLA Ops", 5, (Event(3, 0, 9), Event(4, 20, 5), Event(7, 30, 1))), Line(1 << 63, "Steps", 5)),
        ((3, "%fusion.1 = f32[8]"), (4, "$layers.py:12 forward")),
        ((3, "convolution"),),
    )
    with fastprof.open(xplane.write([device])) as profile:
        found = {(row["function"], row["category"]) for row in profile.rows("spans")}
        assert profile.log.repairs == {"unnamed-events": 1}
    assert found == {("%fusion.1 = f32[8]", "convolution"), ("forward", "python"), ("#7", None)}


def test_display_names_and_categories_by_reference() -> None:
    kind = field(1, 3) + field(2, "%long") + field(4, "short") + field(5, field(1, 2) + field(7, 9))
    keys = entry(5, 2, field(2, "hlo_category")) + entry(5, 9, field(2, "data formatting"))
    lines = field(3, field(1, 1) + field(4, field(1, 3) + field(2, 1) + field(3, 2)) + field(11, "shown"))
    data = field(1, field(2, "/device:GPU:0") + lines + entry(4, 3, kind) + keys)
    with fastprof.open(data) as profile:
        (row,) = profile.rows("spans")
    assert (row["function"], row["category"]) == ("short", "data formatting")
    assert fastprof.top(data, by="thread").rows[0].name == "/device:GPU:0 (1): shown (1)"


def test_times_with_a_date() -> None:
    """They count from a midnight before."""
    day, start = 86_400 * 10**9, 1_795_886_769_398_976_753
    lines = (Line(1, "a", start, (Event(1, 5, 7),)), Line(2, "b", start - 10**9, (Event(1, 0, 1),)))
    data = xplane.write([Plane("/host:CPU", lines, ((1, "f"),))])
    base = start // day * day - day
    assert {(begin, n) for _, _, _, begin, n in rows(data)} == {
        ((start - base) * 1000 + 5, 7),
        ((start - 10**9 - base) * 1000, 1),
    }
    assert fastprof.info(data).facts["times_from_ns"] == base


HOST = "/host:CPU"


@pytest.mark.parametrize(
    "lines",
    [
        (Line(1, "a", 0, (Event(1, -5, 7),)),),
        (Line(1, "a", 0, (Event(1, 5, -7),)),),
        (Line(1, "a", 10**15 * 4, (Event(1, (1 << 63) - 1, 1 << 62),)),),
        (Line(1, "a", -5, (Event(1, 0, 1),)),),
        (Line(1, "a", 1 << 61, (Event(1, 0, 1),)), Line(2, "b", 5, (Event(1, 0, 1), Event(1, 0, 1)))),
    ],
)
def test_times_that_do_not_fit(lines: tuple[Line, ...]) -> None:
    data = xplane.write([Plane(HOST, lines, ((1, "f"),))])
    with pytest.raises(FormatError, match="the time of an event does not fit"):
        fastprof.info(data)
    log = fastprof.info(data, lenient=True)
    assert log.losses == {"untimed-events": len(lines[-1].events)}


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (b"\x1a\x05\x20\x01\x12\x01\x41", "another type"),  # a line whose events are a number
        (b"\x1a\x04\x22\x09ab", "longer than its message"),
        (b"\x1a\x04\x22\x02\x08\x80", "malformed event"),
        (b"\x1a\x06\x22\x02\x08\x01\x18\x05", "follows its events"),
        (b"\x1a\x02\x08\x80", "malformed field"),
        (b"\x22\x08\x08\x01\x12\x04\x2a\x02\x08\x80", "malformed stat"),
    ],
)
def test_damage_is_skipped_if_lenient(inside: bytes, message: str) -> None:
    good = xplane.plane(Plane(HOST, (Line(1, "a", 0, (Event(1, 0, 1),)),), ((1, "f"),)))
    data = field(1, field(2, HOST) + inside) + field(1, good)
    with pytest.raises(FormatError, match=message) as found:
        fastprof.info(data)
    assert 0 < found.value.offset < len(data) - len(good)
    log = fastprof.info(data, lenient=True)
    assert log.losses == {"damaged-records": 1}
    assert fastprof.top(data, lenient=True).rows[0].name == "f"


def test_sums_of_events_and_messages_of_the_profiler() -> None:
    line = field(3, field(1, 1) + field(4, field(1, 1) + field(5, 9)) + field(4, field(1, 1) + field(3, 4)))
    data = field(1, field(2, HOST) + line) + field(2, "device busy") + field(3, "events were dropped")
    log = fastprof.info(data)
    assert log.not_representable["aggregated-events"] == 1
    assert [str(one).partition("reported: ")[2] for one in log.warnings] == ["device busy", "events were dropped"]


def test_overlapping_events_are_on_lanes() -> None:
    events = (Event(1, 0, 10), Event(2, 5, 10), Event(1, 20, 1))
    data = xplane.write([Plane(HOST, (Line(1, "a", 0, events),), ((1, "f"), (2, "g")))])
    assert rows(data) == expected(data)
    assert fastprof.info(data).repairs == {"overlapping-events": 1}


def test_names_behind_a_large_field() -> None:
    """What is not read takes no memory, whatever its size: fields are skipped across windows."""
    large = field(4, field(1, 9) + field(2, field(3, bytes(1 << 20)) + field(2, "x")))
    good = Plane(HOST, (Line(1, "a", 0, (Event(1, 0, 1),)),), ((1, "f"),))
    data = field(1, field(2, "/host:metadata") + large) + field(1, xplane.plane(good))
    assert fastprof.top(data).rows[0].name == "f"
