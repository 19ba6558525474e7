"""The obvious reader of Chrome's Trace Event JSON, following docs/formats/trace-event.md: rows of each thread."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Row = tuple[str, int, str]  # enter, exit or event; nanoseconds; function, or the event's payload
FOREVER = 1 << 70


@dataclass
class Trace:
    # by process, thread and lane: calls that overlap others of their thread are in lanes from 1 on
    rows: dict[tuple[int, int, int], list[Row]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass
class Call:
    begin: int
    duration: int
    order: int
    name: str
    is_event: bool = False


def nanoseconds(value: Any) -> int:
    return int((Decimal(value) * 1000).quantize(Decimal(1), ROUND_HALF_UP))


def read(data: bytes) -> Trace:
    trace = Trace()
    text = data.decode()
    if text.startswith("[") and not text.rstrip().endswith("]"):
        text = text.rstrip().rstrip(",") + "]"
        trace.counts["open-end"] += 1
    said = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    events = [event for event in (said["traceEvents"] if isinstance(said, dict) else said) if event]
    threads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    tracks: dict[tuple[int, str], list[dict[str, Any]]] = {}  # asynchronous calls: by process and category
    for order, event in enumerate(events):
        if event["ph"] in "BEXiIR":
            event |= {"ts": nanoseconds(event["ts"]), "order": order}
            threads.setdefault((int(event["pid"]), int(event["tid"])), []).append(event)
            trace.counts["negative-times"] += event["ts"] < 0
        elif event["ph"] in "bne":
            event |= {"ts": nanoseconds(event["ts"]), "order": order}
            tracks.setdefault((int(event["pid"]), event.get("cat", "")), []).append(event)
            trace.counts["negative-times"] += event["ts"] < 0
    shift = min([0, *(event["ts"] for mine in [*threads.values(), *tracks.values()] for event in mine)])
    by_time = any(goes_back(mine) for mine in threads.values())
    by_time = by_time or any(slots_of(Trace(), mine, False) is None for mine in tracks.values())
    for (pid, tid), mine in threads.items():
        for lane, rows in enumerate(rows_of(trace, calls_of(trace, mine, by_time), shift)):
            trace.rows[pid, tid, lane] = rows
    for number, ((pid, _), mine) in enumerate(tracks.items()):
        for slot, calls in enumerate(slots_of(trace, mine, by_time) or []):
            for lane, rows in enumerate(rows_of(trace, calls, shift)):
                trace.rows[pid, 1000 * (number + 1) + slot, lane] = rows
    return trace


def slots_of(trace: Trace, events: list[dict[str, Any]], by_time: bool) -> list[list[Call]] | None:
    """Asynchronous calls of a track: while any call of an id is open, all its calls are in one slot, the first that was
    free at the begin of the first.  None: the file is not ordered by time."""
    slots: list[list[Call]] = [[]]
    free: list[int] = []  # the time from which on each is free; FOREVER while calls are open
    open_: dict[Any, tuple[int, list[Call]]] = {}
    last: dict[Any, int] = {}
    lost = went_back = False
    before = -FOREVER
    for event in sorted(events, key=lambda event: event["ts"] if by_time else 0):
        now, name = event["ts"], event.get("name")
        if event["ph"] == "n":
            slots[0].append(Call(now, 0, event["order"], name or "", is_event=True))
            continue
        id_ = str(event["id"])
        if id_ in open_ and now < last[id_] and not by_time:
            return None
        last[id_] = now
        if event["ph"] == "b":
            if id_ not in open_:
                slot = next((i for i, at in enumerate(free) if at <= now), len(free))
                if slot == len(free) > free.count(FOREVER) and not by_time:
                    return None
                free[slot : slot + 1] = [FOREVER]
                slots += [[] for _ in range(len(free) - len(slots))]
                open_[id_] = slot, []
            slot, calls = open_[id_]
            calls.append(Call(now, FOREVER, event["order"], name or "[unknown]"))
            slots[slot].append(calls[-1])
        else:
            slot, calls = open_.get(id_, (0, []))
            ended = [call for call in calls if not name or call.name == name][-1:]
            trace.counts["orphan-exits"] += not ended
            trace.counts["nameless-ends"] += bool(ended) and not name
            lost |= not ended
            for call in ended:
                call.duration = now - call.begin
                calls.remove(call)
                if not calls:
                    free[slot] = now
                    del open_[id_]
        went_back |= now < before
        before = now
    return None if lost and went_back and not by_time else slots


def goes_back(events: list[dict[str, Any]]) -> bool:
    times = [event["ts"] for event in events if event["ph"] in "BE"]
    return times != sorted(times)


def calls_of(trace: Trace, events: list[dict[str, Any]], by_time: bool) -> list[Call]:
    """Pair begins and ends, in file order or by time."""
    calls: list[Call] = []
    open_: list[Call] = []
    unwound: list[tuple[int, str]] = []  # time, name: another end of the same time may be theirs
    for event in sorted(events, key=lambda event: event["ts"] if by_time else 0):
        now, order = event["ts"], event["order"]
        if event["ph"] == "B":
            open_.append(Call(now, FOREVER, order, event["name"]))
            calls.append(open_[-1])
        elif event["ph"] == "E" and (now, event.get("name")) in unwound and event.get("name"):
            unwound.remove((now, event["name"]))
            trace.counts["unwound-frames"] -= 1
        elif event["ph"] == "E":
            names = [call.name for call in reversed(open_)]
            name = event.get("name") or (names[0] if names else "")
            ended = names.index(name) + 1 if name in names else 0
            trace.counts["orphan-exits"] += not ended
            trace.counts["unwound-frames"] += max(0, ended - 1)
            trace.counts["nameless-ends"] += ended > 0 and not event.get("name")
            for k in range(ended):
                call = open_.pop()
                call.duration = now - call.begin
                unwound += [(now, call.name)] * (k < ended - 1)
        elif event["ph"] == "X":
            duration = nanoseconds(event.get("dur", 0))
            trace.counts["negative-durations"] += duration < 0
            calls.append(Call(now, max(0, duration), order, event["name"]))
        else:
            calls.append(Call(now, 0, order, event["name"], is_event=True))
    return calls


def rows_of(trace: Trace, calls: list[Call], shift: int) -> list[list[Row]]:
    """By lane.  Calls by their begin, the longest first; each goes to the first lane in which it nests."""
    lanes: list[list[Row]] = [[]]
    open_: list[list[tuple[int, str]]] = [[]]  # end, name

    def end_until(now: int) -> None:
        for rows, ends in zip(lanes, open_, strict=True):
            while ends and ends[-1][0] <= now:
                end, name = ends.pop()
                rows.append(("exit", end - shift, name))

    for call in sorted(calls, key=lambda call: (call.begin, -call.duration, call.order)):
        end_until(call.begin)
        if call.is_event:
            lanes[0].append(("event", call.begin - shift, call.name))
            continue
        end = call.begin + call.duration if call.duration < FOREVER else FOREVER
        lane = 0
        while end != FOREVER and open_[lane] and end > open_[lane][-1][0] + 1:
            lane += 1
            if lane == len(lanes):
                lanes.append([])
                open_.append([])
        trace.counts["overlapping-calls"] += lane > 0
        if open_[lane] and end > open_[lane][-1][0]:
            trace.counts["cut-calls"] += end != FOREVER
            end = open_[lane][-1][0]
        open_[lane].append((end, call.name))
        lanes[lane].append(("enter", call.begin - shift, call.name))
    end_until(FOREVER - 1)
    return lanes
