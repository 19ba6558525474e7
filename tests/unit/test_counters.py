"""Values of counters in Perfetto's and Chrome's traces, and in what is written of them."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

import fastprof
from fastprof.core.options import Options
from tests.support import perfettotrace as t
from tests.support.conversions import convert_bytes
from tests.support.product import batches, open_input

THREAD, HEAP, RATE, UNKNOWN = 21, 22, 23, 24


def value(time: int, track: int, whole: int, *more: tuple[int, t.Value | None], flags: int = t.NEEDS_STATE) -> bytes:
    return t.packet(time=time, flags=flags, event=t.event(t.COUNTER, *more, (30, whole), track=track))


def described(uuid: int, name: str, parent: int, *fields: tuple[int, t.Value | None]) -> bytes:
    return t.packet(track=t.lane(uuid, name, parent) + t.message((8, t.message(*fields))))


TRACE = b"".join(
    [
        t.packet(track=t.process(1, 10, "app"), flags=t.CLEARED),
        t.packet(track=t.thread(2, 10, 11, "main")),
        described(HEAP, "heap", 1, (4, 1024)),
        described(RATE, "sum", 2, (5, 1)),
        value(100, HEAP, 3),
        value(110, RATE, 5),
        value(120, RATE, -2),
        value(130, UNKNOWN, 9),
        value(140, RATE, 7, flags=t.CLEARED),
        t.packet(
            time=150,
            flags=t.NEEDS_STATE,
            event=t.event(t.COUNTER, track=THREAD) + t.varint(44 << 3 | 1) + struct.pack("<d", 0.1 + 0.2),
        ),
        described(THREAD, "late", 2),
        t.bundle(
            0,
            *(t.atrace(160, 11, "C|10|frames|-7\n"), t.atrace(170, 11, "C|10|chrome|1.5|category")),
            *(t.atrace(180, 11, text) for text in ("C|10|x|", "C|10|x|y|1", "C|10|x", "C|10", "C|", "C|-1|x|1")),
        ),
    ]
)
VALUES = [
    (10, "counters", 100, "3072 heap"),
    (10, "main", 110, "5 sum"),
    (10, "main", 120, "3 sum"),
    (10, "main", 140, "7 sum"),
    (10, "main", 150, "30000000000000006e-17 late"),
    (10, "counters", 160, "-7 frames"),
    (10, "counters", 170, "1.5 chrome"),
]


def values(data: bytes, from_: str) -> list[tuple[int, str, int, str]]:
    """Process, name of the thread, time and payload of each value."""
    opened, found = open_input(data, Options(), from_=from_), []
    for batch in batches(opened):
        for i, (op, type_) in enumerate(zip(batch["op"], batch["function"], strict=True)):
            if (op, type_) == (6, (1 << 32) - 1):
                found.append((batch["thread"][i], batch["time"][i], batch.payload(i).decode()))
    names = {(pid, tid): name.decode() for pid, tid, name in opened.model.parts[0].extra.get("thread_names", ())}
    threads = [opened.model.row("threads", thread)[1:3] for thread, *_ in found]
    rows = [(pid, names.get((pid, tid), ""), *row[1:]) for (pid, tid), row in zip(threads, found, strict=True)]
    return sorted(rows, key=lambda row: row[2])


def test_values_of_tracks_and_of_atrace() -> None:
    assert values(TRACE, "perfetto") == VALUES
    assert fastprof.info(TRACE, from_="perfetto").not_representable == {"counter-values": 1, "prints": 6}


def packed(*numbers: int) -> bytes:
    return b"".join(map(t.varint, numbers))


def test_extra_values_of_an_event() -> None:
    """Tracks of the event, or of the defaults; packed or not."""
    defaults = t.message((11, t.message((31, THREAD), (31, HEAP), (45, RATE))))
    half = t.message((46, struct.pack("<d", 0.5)))
    real = t.varint(46 << 3 | 1) + struct.pack("<d", 1.5)
    begin, end = t.event(t.BEGIN, (12, 1), (12, 2), (12, 3), name="f", track=2), t.event(t.END, track=2)
    trace = [
        t.packet((59, defaults), track=t.process(1, 10, "app"), flags=t.CLEARED),
        t.packet(track=t.thread(2, 10, 11, "main")),
        *(described(*one) for one in ((HEAP, "heap", 1, (4, 10)), (RATE, "rate", 2), (THREAD, "thread", 2))),
        t.packet(time=100, flags=t.NEEDS_STATE, event=begin),
        t.packet(time=110, flags=t.NEEDS_STATE, event=end + t.message((31, packed(HEAP)), (12, packed(4, 5))) + half),
        t.packet(time=120, flags=t.NEEDS_STATE, event=t.event(t.INSTANT, track=2) + real),
        t.packet((59, b""), time=130, flags=t.NEEDS_STATE, event=t.event(t.INSTANT, (12, 9), track=2)),
    ]
    data = b"".join(trace)
    assert [row[2:] for row in values(data, "perfetto")] == [
        (100, "1 thread"),
        (100, "20 heap"),
        (110, "40 heap"),
        (110, "0.5 rate"),
        (120, "1.5 rate"),
    ]
    assert fastprof.info(data, from_="perfetto").not_representable["counter-values"] == 3


@pytest.mark.parametrize("to", ["perfetto", "trace-event"])
def test_values_are_written(to: str) -> None:
    once = convert_bytes(TRACE, "perfetto", to).data
    assert values(once, to) == VALUES
    assert values(convert_bytes(once, to, to).data, to) == VALUES


def test_a_format_without_counters_reports_them() -> None:
    call = t.packet(time=10, event=t.event(1, name="f", track=2)) + t.packet(time=20, event=t.event(2, track=2))
    done = convert_bytes(TRACE + call, "perfetto", "xray")
    assert done.log.not_representable["counter-values"] == len(VALUES) + 1


NUMBERS = ["0", "-1", "12.5", "0.1", "0.000001", "0.30000000000000004", "1E+2", "1e16", "1e22", "-3e22", "1e-300"]
NUMBERS += ["5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "9007199254740991.5"]
NUMBERS += ["123456789.123456789", *(str(2**53 + n) for n in (0, 1, 2)), str(2**63), "3." + "1" * 50]


def test_numbers_stay_exact() -> None:
    text = ",".join(f'{{"name":"c","ph":"C","ts":{i},"args":{{"value":{n}}}}}' for i, n in enumerate(NUMBERS))
    rows = values(f"[{text}]".encode(), "trace-event")
    assert [float(payload.partition(" ")[0]) for *_, payload in rows] == [float(n) for n in NUMBERS]
    written = json.loads(convert_bytes(f"[{text}]".encode(), "trace-event", "trace-event").data)
    assert [e["args"]["value"] for e in written["traceEvents"] if e["ph"] == "C"] == [float(n) for n in NUMBERS]


def test_names_of_values_and_what_is_no_value() -> None:
    events = [
        {"args": {"rss": 5, "name": "x", "type": 3, "deep": {"a": 1}}, "name": "mem", "ph": "C", "pid": 1, "ts": 1},
        {"name": "mem", "ph": "C", "pid": 1, "ts": 2, "id": "0x1", "args": {"value": 1}},
        {"name": "lost", "ph": "C", "pid": 1, "ts": 3, "args": {"value": "x", "deep": []}},
        {"name": "text", "ph": "C", "pid": 1, "ts": 3, "args": {"value": "01.5", "none": None}},
        {"name": "lost", "ph": "C", "pid": 1, "args": {"value": 1}},
        {"name": "f", "ph": "i", "pid": 1, "ts": 4, "args": {"value": 1, "type": (1 << 32) - 1}},
        {"args": {"": 7, "b": 10**400}, "name": "mem", "ph": "C", "pid": 1, "ts": 5},
    ]
    data = json.dumps(events).encode()
    assert [row[2:] for row in values(data, "trace-event")] == [
        (1000, "5 mem rss"),
        (1000, "3 mem type"),
        (2000, "1 mem id: 0x1"),
        (3000, "1.5 text"),
        (5000, "7 mem "),
    ]
    assert fastprof.info(data, from_="trace-event").not_representable == {"counter-values": 4, "event-arguments": 3}


def firefox_counters() -> bytes:
    """Counters of the second thread, and of a process without threads."""
    memory = {"name": "malloc", "category": "Memory", "pid": "7", "mainThreadIndex": 1}
    memory["samples"] = {"time": [1, 2, 3], "number": [1, 1, 1], "count": [100, -20.5, None], "length": 3}
    power: dict[str, Any] = {"name": "", "category": "power", "pid": "9", "mainThreadIndex": -1}
    power["sampleGroups"] = [{"id": 0, "samples": {"timeDeltas": [1, 1], "count": [5, 6], "length": 2}}, {"id": 1}]
    names = ("a", "b")
    markers = {"name": [0], "startTime": [1.5], "endTime": [2.5], "phase": [1], "length": 1}
    threads = [
        {"name": name, "pid": "7", "tid": 7 + i, "markers": markers, "stringArray": [f"m{i}"]}
        for i, name in enumerate(names)
    ]
    meta = {"preprocessedProfileVersion": 46, "startTime": 1000.0, "interval": 1}
    return json.dumps({"meta": meta, "libs": [], "counters": [memory, power], "threads": threads}).encode()


def test_counters_of_firefox_are_values_of_a_timeline() -> None:
    done = convert_bytes(firefox_counters(), "firefox", "trace-event")
    events = json.loads(done.data)["traceEvents"]
    values = [(e["pid"], e["name"], e["ts"], *e["args"].values()) for e in events if e["ph"] == "C"]
    assert sorted(values) == [
        (7, "malloc", 1000, 100),
        (7, "malloc", 2000, 79.5),
        (9, "power", 1000, 5),
        (9, "power", 2000, 11),
    ]
    of_b = [(e["ph"], e["ts"]) for e in events if e["tid"] == 8 and e["ph"] != "M"]
    assert of_b == [("C", 1000), ("B", 1500), ("C", 2000), ("E", 2500)]
    assert done.log.not_representable["counters"] == 1
    assert "counter-values" not in done.log.not_representable


def test_counters_of_raw_firefox_profiles() -> None:
    """Columns by the schema; a short row has no count; of several groups the first."""
    rows = {"schema": {"number": 0, "time": 1, "count": 2}, "data": [[1, 1, 5], [1, 2, -2], [0, 3]]}
    counter = {"name": "malloc", "category": "Memory", "sample_groups": [{"id": 0, "samples": rows}, {"id": 1}]}
    table = {"schema": {"name": 0, "startTime": 1, "endTime": 2, "phase": 3}, "data": [[0, 4, 5, 1]]}
    thread = {"name": "GeckoMain", "pid": 7, "tid": 8, "markers": table, "stringTable": ["m"]}
    meta = {"version": 24, "startTime": 1000, "interval": 1}
    data = json.dumps({"meta": meta, "libs": [], "counters": [counter], "threads": [thread], "processes": []}).encode()
    done = convert_bytes(data, "firefox", "trace-event")
    events = [e for e in json.loads(done.data)["traceEvents"] if e["ph"] != "M"]
    assert [(e["ph"], e["pid"], e["tid"], e["ts"]) for e in events] == [
        ("C", 7, 8, 1000),
        ("C", 7, 8, 2000),
        ("B", 7, 8, 4000),
        ("E", 7, 8, 5000),
    ]
    assert [e["args"]["value"] for e in events if e["ph"] == "C"] == [5, 3]
    assert done.log.not_representable["counters"] == 1


def test_counters_through_firefox_and_back() -> None:
    """Values are written as differences, whose roundings must not add up."""
    values = [0.1 * i if i % 7 else 1e9 / (i + 1) for i in range(300)]
    events = [
        {"ph": "C", "pid": 7, "tid": 8 + i % 2, "name": "n", "ts": i, "args": {f"series {i % 3}": value}}
        for i, value in enumerate(values)
    ]
    made = convert_bytes(json.dumps(events).encode(), "trace-event", "firefox")
    assert made.log.rows["counter_values_written"] == 300
    assert "counter-values" not in made.log.not_representable
    found = json.loads(convert_bytes(made.data, "firefox", "trace-event").data)["traceEvents"]
    back = {(e["ts"], e["tid"], e["name"]): e["args"]["value"] for e in found if e["ph"] == "C"}
    assert len(back) == 300
    rounded = 0
    for i, value in enumerate(values):
        there = back[i, 8 + i % 2, f"n series {i % 3}"]
        assert there == pytest.approx(value, rel=1e-12, abs=1e-6)
        rounded += there != pytest.approx(value, rel=1e-9, abs=0)
    assert made.log.not_representable["rounded-counters"] == rounded > 0


def counter_events(values: list[float], name: str = "n") -> bytes:
    return json.dumps(
        [{"ph": "C", "pid": 7, "tid": 8, "name": name, "ts": i, "args": {"v": v}} for i, v in enumerate(values)]
    ).encode()


def test_a_value_much_smaller_than_the_one_before() -> None:
    """The difference of 1 and 1e16 is rounded to -1e16."""
    made = convert_bytes(counter_events([1e16, 1, 2]), "trace-event", "firefox")
    assert made.log.not_representable["rounded-counters"] == 1
    found = json.loads(convert_bytes(made.data, "firefox", "trace-event").data)["traceEvents"]
    assert [e["args"]["value"] for e in found if e["ph"] == "C"] == [1e16, 0, 2]
    assert (
        "rounded-counters"
        not in convert_bytes(counter_events([5, 1, 2]), "trace-event", "firefox").log.not_representable
    )


def test_names_of_counters_that_are_not_utf8() -> None:
    data = counter_events([1, 2], "n?").replace(b"n?", b"n\xff")
    made = convert_bytes(data, "trace-event", "firefox")
    assert made.log.not_representable["invalid-utf8"] == 1
    assert [c["name"] for c in json.loads(made.data)["counters"]] == ["n\ufffd v"]


@pytest.mark.parametrize("memory", [1 << 16, 1 << 30])
def test_values_at_the_same_time_keep_their_order(memory: int) -> None:
    values = [3, 1, 2, -5, 4, 0]
    events = [{"ph": "C", "pid": 7, "tid": 8, "name": "n", "ts": 5, "args": {"v": v}} for v in values]
    done = convert_bytes(json.dumps(events).encode(), "trace-event", "trace-event", Options(max_memory=memory))
    assert [e["args"]["value"] for e in json.loads(done.data)["traceEvents"] if e["ph"] == "C"] == values
    through = convert_bytes(convert_bytes(done.data, "trace-event", "firefox").data, "firefox", "trace-event")
    assert [e["args"]["value"] for e in json.loads(through.data)["traceEvents"] if e["ph"] == "C"] == values


def test_a_value_whose_difference_exceeds_a_double() -> None:
    events = [
        {"ph": "C", "pid": 7, "tid": 8, "name": "n", "ts": i, "args": {"v": (-1) ** i * 1.7e308}} for i in range(3)
    ]
    made = convert_bytes(json.dumps(events).encode(), "trace-event", "firefox")
    assert made.log.not_representable["counter-values"] == 1
    assert json.loads(made.data)["counters"][0]["samples"] == {
        "time": [0, 0, 0.002],
        "count": [None, 1.7e308, 0],
        "length": 3,
    }


def test_counters_of_a_process_without_threads_are_in_order_of_time() -> None:
    counters = [
        {"name": name, "category": "", "pid": "9", "samples": {"time": [1, 2, 3], "count": [1, 1, 1], "length": 3}}
        for name in "ab"
    ]
    meta = {"preprocessedProfileVersion": 46, "startTime": 1000.0, "interval": 1}
    data = json.dumps({"meta": meta, "libs": [], "counters": counters, "threads": []}).encode()
    events = json.loads(convert_bytes(data, "firefox", "trace-event").data)["traceEvents"]
    values = sorted((e["name"], e["ts"], e["args"]["value"]) for e in events if e["ph"] == "C")
    assert values == [(name, 1000 * i, i) for name in "ab" for i in (1, 2, 3)]


def test_rows_of_counters_without_a_time_or_a_count() -> None:
    """Only values that are given and have no time are lost."""
    samples = {"time": [1, None, None, 4], "count": [None, 5, None, 2], "length": 4}
    counters = [{"name": "n", "category": "", "pid": pid, "samples": samples} for pid in ("a", "b")]
    meta = {"preprocessedProfileVersion": 46, "startTime": 1000.0, "interval": 1}
    data = json.dumps({"meta": meta, "libs": [], "counters": counters, "threads": []}).encode()
    done = convert_bytes(data, "firefox", "trace-event")
    assert done.log.not_representable["counter-values"] == 2
    events = [e for e in json.loads(done.data)["traceEvents"] if e["ph"] == "C"]
    assert [e["args"]["value"] for e in events] == [7, 7]
    assert len({e["tid"] for e in events}) == 2


def test_markers_and_values_are_read_once_when_memory_runs_out() -> None:
    """30,000 markers and 10,000 values, which go to a temporary file within blocks of them."""
    n, of_values = 30_000, 10_000
    starts = [i * 7919 % n for i in range(n)]
    markers = {"name": [0] * n, "startTime": starts, "endTime": [at + 0.5 for at in starts], "phase": [1] * n}
    samples = {"timeDeltas": [1] * of_values, "count": [1] * of_values, "length": of_values}
    counter = {"name": "n", "category": "", "pid": "7", "mainThreadIndex": 0, "samples": samples}
    thread = {"name": "t", "pid": "7", "tid": 7, "markers": {**markers, "length": n}, "stringArray": ["m"]}
    meta = {"preprocessedProfileVersion": 46, "startTime": 1000.0, "interval": 1}
    data = json.dumps({"meta": meta, "libs": [], "counters": [counter], "threads": [thread]}).encode()
    done = convert_bytes(data, "firefox", "trace-event", Options(max_memory=1 << 20))
    events = json.loads(done.data)["traceEvents"]
    assert sum(e["ph"] == "B" for e in events) == n
    assert [e["args"]["value"] for e in events if e["ph"] == "C"] == list(range(1, of_values + 1))
    assert done.data == convert_bytes(data, "firefox", "trace-event").data
