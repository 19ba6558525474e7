"""The obvious reader of Chrome's Trace Event JSON, as docs/formats/trace-event.md says: rows of each thread."""

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
    rows: dict[tuple[int, int], list[Row]] = field(default_factory=dict)  # by process and thread
    counts: Counter[str] = field(default_factory=Counter)


def nanoseconds(trace: Trace, value: Any) -> int:
    ns = int((Decimal(value) * 1000).quantize(Decimal(1), ROUND_HALF_UP))
    trace.counts["negative-times"] += ns < 0
    return max(0, ns)


def read(data: bytes) -> Trace:
    trace = Trace()
    text = data.decode()
    if text.startswith("[") and not text.rstrip().endswith("]"):
        text = text.rstrip().rstrip(",") + "]"
        trace.counts["open-end"] += 1
    said = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    events = [event for event in (said["traceEvents"] if isinstance(said, dict) else said) if event]
    threads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] in "BEXiIR":
            threads.setdefault((int(event["pid"]), int(event["tid"])), []).append(event)
    complete = any(event["ph"] == "X" for event in events)
    for thread, mine in threads.items():
        trace.rows[thread] = sorted_rows(trace, mine) if complete else rows_as_they_come(trace, mine)
    return trace


def ended_by(open_: list[str], event: dict[str, Any]) -> int:
    """How many calls an end ends, from the innermost one on."""
    if "name" not in event:
        return min(1, len(open_))
    return open_[::-1].index(event["name"]) + 1 if event["name"] in open_ else 0


def rows_as_they_come(trace: Trace, events: list[dict[str, Any]]) -> list[Row]:
    rows: list[Row] = []
    open_: list[str] = []
    for event in events:
        now = nanoseconds(trace, event["ts"])
        if event["ph"] == "B":
            open_.append(event["name"])
            rows.append(("enter", now, event["name"]))
        elif event["ph"] == "E":
            n = ended_by(open_, event)
            trace.counts["nameless-ends"] += "name" not in event
            if "name" in event or n:
                rows.append(("exit", now, event.get("name") or open_[-1]))
            else:
                trace.counts["orphan-exits"] += 1
            del open_[len(open_) - n :]
        else:
            rows.append(("event", now, event["name"]))
    return rows


def sorted_rows(trace: Trace, events: list[dict[str, Any]]) -> list[Row]:
    """Calls by their begin, the longest first; one that overlaps its caller ends with it."""
    calls: list[list[Any]] = []  # begin, - duration, order, name; events: name in a list
    open_: list[list[Any]] = []
    for order, event in enumerate(events):
        now = nanoseconds(trace, event["ts"])
        if event["ph"] == "B":
            open_.append([now, -FOREVER, order, event["name"]])
        elif event["ph"] == "E":
            n = ended_by([call[3] for call in open_], event)
            trace.counts["orphan-exits"] += not n
            for _ in range(n):
                call = open_.pop()
                call[1] = -max(0, now - call[0])
                calls.append(call)
        elif event["ph"] == "X":
            duration = nanoseconds(trace, event["dur"]) if "dur" in event else 0
            calls.append([now, -duration, order, event["name"]])
        else:
            calls.append([now, 0, order, [event["name"]]])
    rows: list[Row] = []
    ends: list[tuple[int, str]] = []

    def end_until(now: int) -> None:
        while ends and ends[-1][0] <= now:
            end, name = ends.pop()
            rows.append(("exit", end, name))

    for begin, minus, _, name in sorted(calls + open_, key=lambda call: call[:3]):
        end_until(begin)
        if isinstance(name, list):
            rows.append(("event", begin, name[0]))
            continue
        end = begin - minus if minus > -FOREVER else FOREVER
        if ends and end > ends[-1][0]:
            trace.counts["cut-calls"] += end != FOREVER
            end = ends[-1][0]
        ends.append((end, name))
        rows.append(("enter", begin, name))
    end_until(FOREVER - 1)
    return rows
