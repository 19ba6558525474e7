"""Prints of atrace in Perfetto traces: asynchronous calls, tracks and events."""

from __future__ import annotations

import pytest

import fastprof
from fastprof.core.options import Options
from tests.support import perfettotrace as t
from tests.support.product import batches, open_input

PRINTS = [
    (100, "S|10|load|7"),
    (110, "S|10|load|8"),
    (120, "B|10|work"),
    (125, "I|10|tick"),
    (130, "F|10|load|7"),
    (140, "E|10"),
    (150, "G|10|frames|draw|-1"),
    (155, "N|10|frames|vsync"),
    (160, "F|10|load|8|category"),
    (170, "H|10|frames|-1"),
    (180, "S|10|open|9"),
]
BROKEN = ["S|10|load", "S|10|load|x", "S|x|load|1", "G|10|frames|draw", "N|10|frames", "I|10", "H|10|1", "S|"]
TREE = t.tree((10, 11, "worker"), (10, 10, "app"))
TRACE = TREE + t.bundle(0, *(t.atrace(time, 11, text + "\n") for time, text in PRINTS))


def rows(data: bytes) -> list[tuple[int, int, str, str]]:
    """Time, operation, thread or lane, and name of each call and event."""
    opened, found = open_input(data, Options(**{"perfetto.data": "calls"}), from_="perfetto"), []
    model = opened.model
    for batch in batches(opened):
        for i, op in enumerate(batch["op"]):
            _, pid, tid = model.row("threads", batch["thread"][i])
            name = model.string(model.row("functions", batch["function"][i])[2]) if op < 2 else batch.payload(i)
            found.append((batch["time"][i], op, (pid, tid), name.decode()))
    names = {(pid, tid): name.decode() for pid, tid, name in model.parts[0].extra["thread_names"]}
    assert {pid for pid, _ in names} == {10}
    return [(time, op, names[where], name) for time, op, where, name in found]


def test_asynchronous_calls_have_lanes_of_their_name() -> None:
    assert rows(TRACE) == [
        (100, 0, "load", "load"),
        (110, 0, "load [2]", "load"),
        (120, 0, "worker", "work"),
        (125, 5, "worker", "tick"),
        (130, 1, "load", "load"),
        (140, 1, "worker", "work"),
        (150, 0, "frames", "draw"),
        (155, 5, "frames", "vsync"),
        (160, 1, "load [2]", "load"),
        (170, 1, "frames", "draw"),
        (180, 0, "open", "open"),
    ]


def test_other_prints_are_counted() -> None:
    broken = t.bundle(0, *(t.atrace(200, 11, text) for text in BROKEN), t.atrace(210, 11, "F|10|load|77"))
    log = fastprof.info(TRACE + broken, from_="perfetto")
    assert log.not_representable["prints"] == len(BROKEN)
    assert log.repairs["orphan-exits"] == 1


@pytest.mark.parametrize("end", [b"", b"\x80"])
def test_a_list_of_ids_that_is_cut(end: bytes) -> None:
    """Packed categories of an event, and packed parts of the path of a mapping."""
    categories = t.interned(categories=[(1, "gfx")])
    calls = [t.event(t.BEGIN, (3, b"\x01" + end), name="f", track=5), t.event(t.END, track=5)]
    events = b"".join(
        t.packet(flags=t.CLEARED, interned=categories if not i else None, time=100 + i, event=event)
        for i, event in enumerate(calls)
    )
    frames = t.message(
        (17, t.message((1, 1), (2, "app"))),
        (5, t.message((1, 1), (2, "main"))),
        (19, t.message((1, 1), (7, b"\x01" + end))),
        (6, t.message((1, 1), (2, 1), (3, 1))),
        (7, t.message((1, 1), (2, 1))),
    )
    samples = t.packet((66, t.message((2, 10), (3, 10), (4, 1))), flags=t.CLEARED, time=100, interned=frames)
    for trace, expected in ((events, "gfx"), (samples, "/app")):
        if end:
            with pytest.raises(fastprof.FastprofError, match="a packet is malformed"):
                fastprof.top(trace, from_="perfetto")
        else:
            assert [row.object for row in fastprof.top(trace, from_="perfetto").rows] == [expected]
