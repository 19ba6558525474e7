"""Random Perfetto traces against the slow reference: state, clocks, tracks, order, compressed packets."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from tests.reference import perfetto_read as reference
from tests.support import perfettotrace as t
from tests.support.product import batches, open_input

NAMES = ["f", "g", "h", ""]
TRACKS = [11, 12, 20, 21, 22, 99]
DESCRIPTORS = [
    t.thread(11, 10, 11, "one"),
    t.thread(12, 10, 12),
    t.process(20, 10, "prog"),
    t.lane(21, "lane", 20),
    t.lane(22, "deep", 21),
    t.lane(22, None, 21),
]


@st.composite
def packets(draw: st.DrawFn) -> bytes:
    """A packet of one of three sequences."""
    seq = draw(st.sampled_from([1, 1, 2, 3]))
    what = draw(st.sampled_from(["event"] * 8 + ["begin", "track", "clock", "drop"]))
    flags = draw(st.sampled_from([None, t.NEEDS_STATE, t.NEEDS_STATE]))
    if what == "begin":
        clock = draw(st.sampled_from([None, t.OWN, t.MONOTONIC]))
        track = draw(st.sampled_from([None, 11, 21]))
        defaults = t.message((58, clock), (11, t.message((11, track))))
        names = t.interned([(i + 1, name) for i, name in enumerate(NAMES)], [(1, "cat")])
        return t.packet((59, defaults), seq=seq, flags=t.CLEARED, interned=names)
    if what == "track":
        return t.packet(seq=seq, track=draw(st.sampled_from(DESCRIPTORS)))
    if what == "clock":
        now = draw(st.integers(0, 90))
        clocks = [(t.OWN, draw(st.integers(0, 50)), draw(st.booleans()), draw(st.sampled_from([0, 10])))]
        clocks += [(draw(st.sampled_from([t.BOOTTIME, t.MONOTONIC])), now, False, 0)]
        clocks += draw(st.sampled_from([[], [(t.BOOTTIME, now + 1000, False, 0), (t.MONOTONIC, now, False, 0)]]))
        return t.packet(t.snapshot(*{id_: (id_, *rest) for id_, *rest in clocks}.values()), seq=seq)
    if what == "drop":
        return t.packet((42, 1), seq=seq)
    kind = draw(st.sampled_from([t.BEGIN, t.BEGIN, t.END, t.END, t.INSTANT, t.COUNTER]))
    name: dict[str, Any] = {}
    if kind != t.END or draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from([{"iid": 1}, {"iid": 2}, {"iid": 7}, {"name": "h"}, {}]))
    category = draw(st.sampled_from([[], [], [(3, 1)], [(22, "x")], [(3, 1), (22, "x")], [(3, 9)]]))
    found = t.event(kind, *category, track=draw(st.sampled_from([None, *TRACKS])), **name)
    clock = draw(st.sampled_from([None, None, t.BOOTTIME, t.OWN]))
    return t.packet(seq=seq, flags=flags, time=draw(st.integers(0, 100)), clock=clock, event=found)


def product(data: bytes) -> list[reference.Span]:
    """The rows as spans."""
    opened = open_input(data, Options(**{"perfetto.data": "calls"}), from_="perfetto")
    model = opened.model
    found: list[tuple[int, Any]] = []  # by thread of the model
    stacks: dict[int, list[Any]] = {}
    for batch in batches(opened):
        for i, op in enumerate(batch["op"]):
            thread, time = batch["thread"][i], batch["time"][i]
            if op == 1:
                found.append((thread, (*stacks[thread].pop(), time)))
            elif op == 5:
                found.append((thread, (batch.payload(i).decode(), "", time, time)))
            else:
                object_, _, name = model.row("functions", batch["function"][i])[:3]
                category = model.string(model.row("objects", object_)[0]).decode()
                text = model.string(name).decode().replace("[unknown]", "")
                stacks.setdefault(thread, []).append((text, category, time))
    found += [(thread, (*call, None)) for thread, stack in stacks.items() for call in stack]
    names = {(pid, tid): name.decode() for pid, tid, name in model.parts[0].extra.get("thread_names", ())}
    spans = []
    for thread, what in found:
        _, pid, tid = model.row("threads", thread)
        path = names[pid, tid].partition(" [")[0] if tid > 1 << 30 else None
        where = (pid or None, tid if path is None else None, "" if path == "track" else path)
        spans.append(reference.Span(*where, *what))
    return spans


def known(spans: list[reference.Span]) -> Counter[Any]:
    """The model's facts about lanes, without the thread to which they belong."""
    return Counter(s if s.path is None else s._replace(tid=None) for s in spans)


# Packets of sequence 1: interned names and empty defaults, a thread's descriptor, the begin of a call.
INTERNED = (
    b"\n/P\x01h\x01b$\x12\x05\x08\x01\x12\x01f\x12\x05\x08\x02\x12\x01g\x12\x05\x08\x03\x12\x01h"
    b"\x12\x04\x08\x04\x12\x00\n\x07\x08\x01\x12\x03cat\xda\x03\x02Z\x00"
)
THREAD = b'\n\x12P\x01\xe2\x03\r\x08\x0b"\t\x08\n\x10\x0b*\x03one'
BEGIN = b"\n\n@\x00P\x01Z\x04H\x01P\x01"


# a track that the thread's descriptor gives; a clock's unit that changes, also where the trace is read twice; a call
# without a name, but with a category
@example([INTERNED, THREAD, BEGIN], False)
@example(
    [
        b"\n\x12P\x012\x0e\n\x06\x08@\x10\x01\x18\x01\n\x04\x08\x06\x10\x00",
        b"\n\r@\x00P\x01\xd0\x03@Z\x04H\x01P\x01",
        b"\n\x12P\x012\x0e\n\x06\x08@\x10\x00 \n\n\x04\x08\x06\x10\x00",
        b"\n\r@\x00P\x02\xd0\x03@Z\x04H\x01P\x01",
    ],
    False,
)
@example(
    [
        b"\n\r@\x00P\x01\xd0\x03@Z\x04H\x01P\x01",
        b"\n\x12P\x012\x0e\n\x06\x08@\x10\x01\x18\x01\n\x04\x08\x06\x10\x00",
        INTERNED,
        b"\n\r@\x00P\x01\xd0\x03@Z\x04H\x01P\x01",
        b"\n\x12P\x012\x0e\n\x06\x08@\x10\x00 \n\n\x04\x08\x06\x10\x00",
    ],
    False,
)
@example(
    [
        b"\n\x10@\x00P\x01Z\nH\x01P\x01X\x0b\xb2\x01\x01x",
        INTERNED.replace(b"P\x01", b"P\x03", 1),
        b"\n\x0c@\x00P\x03Z\x06H\x02P\x01X\x0b",
    ],
    False,
)
@given(st.lists(packets(), min_size=1, max_size=40), st.booleans())
def test_spans_are_those_of_the_reference(parts: list[bytes], compressed: bool) -> None:
    data = b"".join(parts)
    expected = known(reference.read(data))
    if compressed:
        data = t.packet((50, zlib.compress(data)), seq=None)
    try:
        assert known(product(data)) == expected
    except FastprofError as error:
        assert "no readable" in str(error) and not expected
