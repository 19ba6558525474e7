"""The obvious reader of Perfetto traces of TrackEvents: slices, instants and values of counters by thread.

It follows the trace processor (google/perfetto src/trace_processor/importers/proto): state belongs to a sequence, an
END closes the innermost BEGIN of its track, the first name of a process and the last one of a thread apply.  Packets
are read in file order.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

PACKET = 1
CLOCK_SNAPSHOT, TIMESTAMP, SEQUENCE, TRACK_EVENT, INTERNED, FLAGS = 6, 8, 10, 11, 12, 13
CLOCK_ID, DEFAULTS, DESCRIPTOR, FIRST = 58, 59, 60, 87
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS_STATE = 1, 2


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def message(data: bytes) -> dict[int, list[Any]]:
    """Fields by number: whole numbers, doubles or bytes."""
    fields: dict[int, list[Any]] = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: Any
        if tag & 7 == 1:
            fields[tag >> 3] += struct.unpack_from("<d", data, at)
            at += 8
            continue
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value
            assert at <= len(data)
        else:
            assert tag & 7 == 0
        fields[tag >> 3].append(value)
    return fields


@dataclass
class Slice:
    name: str
    begin: int
    end: int | None  # None: an instant, or still open
    depth: int
    args: dict[str, Any] = field(default_factory=dict)
    category: str = ""


@dataclass
class Track:
    pid: int
    tid: int
    name: str
    process: str
    slices: list[Slice] = field(default_factory=list)
    open: list[Slice] = field(default_factory=list)


def names(fields: list[bytes]) -> Iterator[tuple[int, str]]:
    for entry in map(message, fields):
        yield entry[1][0], entry[2][0].decode()  # strict: names are UTF-8


def arguments(fields: list[bytes], known: dict[int, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for annotation in map(message, fields):
        value = annotation[3] or [text.decode() for text in annotation[6]]
        found[known[annotation[1][0]]] = value[0]
    return found


def read(data: bytes) -> list[Track]:
    """The threads, in the order of their descriptors.  Fails where the trace processor would drop data."""
    tracks: dict[int, Track] = {}
    processes: dict[int, str] = {}
    counters: dict[int, tuple[Track, str]] = {}
    sequences: dict[int, tuple[dict[int, str], dict[int, str], dict[int, str], dict[str, int]]] = {}
    for packet in map(message, message(data)[PACKET]):
        sequence = packet[SEQUENCE][0] if packet[SEQUENCE] else 0
        if packet[FLAGS] == [CLEARED]:
            assert packet[FIRST] == [1] and sequence and sequence not in sequences
            if not packet[DEFAULTS]:  # a trace without events
                return []
            defaults = message(packet[DEFAULTS][0])
            state = {"clock": defaults[CLOCK_ID][0], "track": message(defaults[TRACK_EVENT][0])[11][0]}
            sequences[sequence] = {}, {}, {}, state
        for snapshot in map(message, packet[CLOCK_SNAPSHOT]):
            own, trace = map(message, snapshot[1])
            assert own[1] == [sequences[sequence][3]["clock"]] and own[3] == [1]  # incremental
            assert trace[1] == [6] and own[2] == trace[2]
            sequences[sequence][3]["now"] = own[2][0]
        for descriptor in map(message, packet[DESCRIPTOR]):
            for process in map(message, descriptor[3]):
                assert 0 < process[1][0] < 1 << 31
                processes.setdefault(process[1][0], process[6][0].decode())
            for thread in map(message, descriptor[4]):
                pid, tid = thread[1][0], thread[2][0]
                track = tracks.setdefault(descriptor[1][0], Track(pid, tid, "", ""))
                assert (track.pid, track.tid) == (pid, tid)
                track.name = thread.get(5, [b""])[0].decode()
            if descriptor[8]:
                assert descriptor[8] == [b""] and descriptor[1][0] not in tracks
                counters[descriptor[1][0]] = tracks[descriptor[5][0]], descriptor[2][0].decode()
        if packet[TRACK_EVENT]:
            assert packet[FLAGS] == [NEEDS_STATE]
            _event(packet, sequences[sequence], tracks, counters)
    for track in tracks.values():
        track.process = processes[track.pid]
    assert len({track.tid for track in tracks.values()}) == len(tracks)
    return [*tracks.values()]


def _event(packet: dict[int, list[Any]], sequence: Any, tracks: dict[int, Track], counters: Any) -> None:
    categories, event_names, annotation_names, state = sequence
    for interned in map(message, packet[INTERNED]):
        for known, field_ in ((categories, 1), (event_names, 2), (annotation_names, 3)):
            for iid, name in names(interned[field_]):
                assert iid and iid not in known
                known[iid] = name
    state["now"] += packet[TIMESTAMP][0]
    event = message(packet[TRACK_EVENT][0])
    track = tracks[state["track"]]
    if event[9] == [END]:
        track.open.pop().end = state["now"]
        return
    if event[9] == [COUNTER]:
        track, name = counters[event[11][0]]
        value = event[44][0] if event[44] else (event[30][0] ^ 1 << 63) - (1 << 63)
        args = {"type": (1 << 32) - 1, "data": f"{value} {name}"}
        track.slices.append(Slice(name, state["now"], None, len(track.open), args))
        return
    args = arguments(event[4], annotation_names)
    found = Slice(event_names[event[10][0]], state["now"], None, len(track.open), args)
    found.category = ",".join(categories[iid] for iid in event[3])
    track.slices.append(found)
    if event[9] == [BEGIN]:
        track.open.append(found)
