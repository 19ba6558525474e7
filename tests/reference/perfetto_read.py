"""The obvious reader of Perfetto's track events: everything in memory, every packet decoded into dictionaries.

It processes each packet in the trace processor's order, by its rules: state belongs to a sequence, events of a track
are sorted by time, an END closes the innermost call of its name.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

Fields = dict[int, list[Any]]


class Span(NamedTuple):
    """A call; its end is None if it never ended, and its begin is None for an instant."""

    pid: int | None
    tid: int | None
    path: str | None  # of a lane
    name: str
    category: str
    begin: int
    end: int | None


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value & (1 << 64) - 1, at


def decoded(data: bytes) -> Fields:
    found: Fields = {}
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value: Any
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            if tag & 7 == 2:
                n, at = varint(data, at)
            else:
                n = {1: 8, 5: 4}[tag & 7]
            value, at = data[at : at + n], at + n
            assert at <= len(data)
        found.setdefault(tag >> 3, []).append(value)
    return found


def packets(data: bytes) -> Iterator[Fields]:
    for found in map(decoded, decoded(data).get(1, [])):
        if 50 in found:
            yield from packets(zlib.decompress(found[50][-1]))
        else:
            yield found


def last(fields: Fields, number: int, default: Any = None) -> Any:
    return fields[number][-1] if number in fields else default


def text(fields: Fields, number: int) -> str:
    return last(fields, number, b"").decode("utf-8", "replace")


class Sequence:
    def __init__(self) -> None:
        self.valid, self.names, self.categories, self.defaults = False, {}, {}, {}  # type: ignore[var-annotated]
        self.thread: tuple[int, int] | None = None  # that of its last descriptor: of events without a track


class Clocks:
    """`later`: clocks of the whole trace, used for clocks that the snapshots so far do not relate."""

    def __init__(self, later: Clocks | None = None) -> None:
        self.snapshots: list[dict[Any, int]] = []
        self.later = later.snapshots if later else []
        self.n_unknown = 0
        self.running: dict[Any, int] = {}
        self.units: dict[Any, int] = dict(later.units) if later else {}  # those of later snapshots until one of its own
        self.seen: set[Any] = set()
        self.primary = 6

    def take(self, snapshot: Fields, seq: int) -> None:
        times = {}
        for clock in map(decoded, snapshot.get(1, [])):
            key = self.key(last(clock, 1, 0), seq)
            if last(clock, 4) or key not in self.seen:
                self.units[key] = last(clock, 4) or 1
            self.seen.add(key)
            if last(clock, 3):
                self.running[key] = last(clock, 2, 0)
            times[key] = last(clock, 2, 0) * last(clock, 4, 1)
        self.primary = last(snapshot, 2, self.primary)
        self.snapshots.append(times)

    @staticmethod
    def key(clock: int, seq: int) -> Any:
        return (seq, clock) if 64 <= clock < 128 else clock

    def time(self, clock: int, seq: int, time: int) -> int | None:
        key = self.key(clock, seq)
        if key in self.running:
            self.running[key] += time
            time = self.running[key]
        time *= self.units.get(key, 1)
        found = self.convert(key, time, self.snapshots)
        if found is None:
            found = self.convert(key, time, self.later)
            self.n_unknown += 1
        return found

    def convert(self, key: Any, time: int, snapshots: list[dict[Any, int]]) -> int | None:
        before: dict[Any, Any] = {key: None}
        queue = [key]
        for one in queue:
            for times in snapshots:
                for other in times if one in times else ():
                    if other not in before:
                        before[other] = one
                        queue.append(other)
        if self.primary not in before:
            return None
        path = [self.primary]
        while before[path[-1]] is not None:
            path.append(before[path[-1]])
        path.reverse()
        for one, other in pairwise(path):
            both = [times for times in snapshots if one in times and other in times]
            earlier = [times for times in both if times[one] <= time] or both[:1]
            time += earlier[-1][other] - earlier[-1][one]
        return time


def read(data: bytes) -> list[Span]:
    clocks = Clocks()
    found = read_once(data, clocks)
    return read_once(data, Clocks(clocks)) if clocks.n_unknown else found


def read_once(data: bytes, clocks: Clocks) -> list[Span]:
    sequences: dict[int, Sequence] = {}
    tracks: dict[int, Fields] = {}
    events: list[tuple[int, int, Any, int, str, str]] = []
    for packet in packets(data):
        seq = last(packet, 10, 0)
        state = sequences.setdefault(seq, Sequence())
        flags = last(packet, 13, 0)
        if flags & 1:
            state.valid, state.names, state.categories, state.defaults = True, {}, {}, {}
            state.thread = None
        elif last(packet, 42):
            state.valid = False
        if 59 in packet:
            state.defaults = decoded(packet[59][-1])
        if 12 in packet and state.valid:
            data_ = decoded(packet[12][-1])
            for known, number in ((state.names, 2), (state.categories, 1)):
                for entry in map(decoded, data_.get(number, [])):
                    known.setdefault(last(entry, 1, 0), text(entry, 2))
        if 6 in packet:
            clocks.take(decoded(packet[6][-1]), seq)
            continue
        if flags & 2 and not state.valid:
            continue
        time = last(packet, 8)
        clock = last(packet, 58, 0) or last(state.defaults, 58, 0)
        if time is not None and clock:
            time = clocks.time(clock, seq, time)
        if 60 in packet:
            track = decoded(packet[60][-1])
            tracks[last(track, 1, 0)] = tracks.get(last(track, 1, 0), {}) | track
            if state.valid and 4 in track:
                ids = decoded(track[4][-1])
                state.thread = last(ids, 1, 0), last(ids, 2, 0)
        if 11 in packet and time is not None and time >= 0:
            event = decoded(packet[11][-1])
            default = last(decoded(last(state.defaults, 11, b"")), 11, 0)
            key = last(event, 11, default) or (("default", seq) if 11 in event else state.thread or ("default", seq))
            iid = last(event, 10, 0)
            name = state.names.get(iid, "") if iid else text(event, 23)
            categories = [state.categories.get(one, "") for one in event.get(3, [])]
            categories += [one.decode() for one in event.get(22, [])]
            events.append((time, len(events), key, last(event, 9, 0), name, ",".join(filter(None, categories))))
    return spans(events, tracks)


def place(tracks: dict[int, Fields], key: Any) -> tuple[int | None, int | None, str | None]:
    if isinstance(key, tuple):
        return (None, None, "Default Track") if key[0] == "default" else (*key, None)
    path: list[str] = []
    track: Fields | None = tracks.get(key)
    if track and 4 in track:
        ids = decoded(track[4][-1])
        return last(ids, 1, 0), last(ids, 2, 0), None
    for _ in range(64):
        if track is None:
            break
        if 4 in track:
            ids = decoded(track[4][-1])
            return last(ids, 1, 0), last(ids, 2, 0), "/".join(reversed(path))
        if 3 in track:
            return last(decoded(track[3][-1]), 1, 0), None, "/".join(reversed(path)) or "(process)"
        path.append(text(track, 2))
        track = tracks.get(last(track, 5, 0))
    name = ""
    for part in reversed(path):  # an outermost track without a name adds nothing, an inner one a slash
        name += f"/{part}" if name else part
    return None, None, name


def spans(events: list[Any], tracks: dict[int, Fields]) -> list[Span]:
    found: list[Span] = []
    stacks: dict[Any, list[Span]] = {}
    for time, _, key, kind, name, category in sorted(events, key=lambda event: event[:2]):
        pid, tid, path = place(tracks, key)
        where = (pid, tid) if path is None else key
        stack = stacks.setdefault(where, [])
        if kind == 1:
            stack.append(Span(pid, tid, path, name, category, time, None))
        elif kind == 2:
            fits = [i for i, call in enumerate(stack) if not name or not call.name or call.name == name]
            while fits and len(stack) > fits[-1]:
                found.append(stack.pop()._replace(end=time))
        elif kind == 3:
            found.append(Span(pid, tid, path, name, "", time, time))
    return found + [call for stack in stacks.values() for call in stack]
