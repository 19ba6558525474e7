"""The obvious reader of samples in Chrome's JSON, following docs/formats/trace-event.md."""

from __future__ import annotations

import json
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Stack = tuple[tuple[str, int], ...]  # names and lines, outermost first
Sample = tuple[int, int, Stack, tuple[tuple[str, int], ...]]  # thread, time, stack, values that are not 0


def nanoseconds(value: Any) -> int:
    return int((Decimal(value) * 1000).quantize(Decimal(1), ROUND_HALF_UP))


def read(data: bytes) -> Counter[Sample]:
    said = json.loads(data, parse_float=Decimal, parse_int=Decimal)
    found: Counter[Sample] = Counter()
    if "nodes" in said:
        add_profile(found, 0, said["startTime"], [said])
        return found
    frames = said.get("stackFrames", {})
    profiles = [event for event in said["traceEvents"] if event["name"] == "Profile"]
    for profile in profiles:
        pieces = [
            event["args"]["data"]["cpuProfile"] | event["args"]["data"]
            for event in said["traceEvents"]
            if event["name"] == "ProfileChunk" and (event["pid"], event["id"]) == (profile["pid"], profile["id"])
        ]
        add_profile(found, int(profile["tid"]), profile["args"]["data"]["startTime"], pieces)
    for event in said["traceEvents"]:
        if event["ph"] == "P" and event["name"] not in ("Profile", "ProfileChunk"):
            stack = stack_of(frames, event["sf"]) if "sf" in event else tuple((name, 0) for name in event["stack"])
            found[int(event["tid"]), nanoseconds(event["ts"]), stack, (("samples", 1),)] += 1
    for sample in said.get("samples", []):
        weight = int(sample.get("weight", 1))
        values = ((sample["name"], weight),) if weight else ()
        found[int(sample["tid"]), nanoseconds(sample["ts"]), stack_of(frames, sample["sf"]), values] += 1
    return found


def stack_of(frames: dict[str, Any], id_: Any) -> Stack:
    frame = frames[str(id_)]
    return (*(stack_of(frames, frame["parent"]) if "parent" in frame else ()), (frame["name"], 0))


def add_profile(found: Counter[Sample], thread: int, start: Any, pieces: list[dict[str, Any]]) -> None:
    nodes = {node["id"]: node for piece in pieces for node in piece.get("nodes", [])}
    parents = {child: node["id"] for node in nodes.values() for child in node.get("children", [])}

    def stack(id_: Any, line: int) -> Stack:
        node = nodes[id_]
        name = node["callFrame"]["functionName"]
        parent = node.get("parent", parents.get(id_))
        above = () if parent is None else stack(parent, 0)
        return above if name == "(root)" else (*above, (name or "(anonymous)", line))

    clock = shown = nanoseconds(start)
    samples: list[tuple[int, Stack]] = []
    end = 0
    for piece in pieces:
        end = nanoseconds(piece.get("endTime", 0)) or end
        lines = [int(line) for line in piece.get("lines", [])]
        for i, (id_, delta) in enumerate(zip(piece["samples"], piece["timeDeltas"], strict=True)):
            clock += nanoseconds(delta)
            shown = max(shown, clock)
            samples.append((shown, stack(id_, lines[i] if i < len(lines) else 0)))
    ends = [time for time, _ in samples[1:]] + [max(end, shown)]
    for (time, frames), until in zip(samples, ends, strict=False):  # there is an end even without samples
        values = (("samples", 1), ("time", until - time)) if until > time else (("samples", 1),)
        found[thread, time, frames, values] += 1
