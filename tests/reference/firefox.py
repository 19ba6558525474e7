"""The obvious reader of the profiles that the Firefox Profiler opens: each sample with names, time and weight."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

# The required columns of each table (src/types/profile.ts, version 60).
COLUMNS = {
    "stackTable": "frame prefix",
    "frameTable": "address inlineDepth category subcategory func nativeSymbol innerWindowID line column",
    "funcTable": "name isJS relevantForJS resource source lineNumber columnNumber",
    "resourceTable": "lib name host type",
    "nativeSymbols": "libIndex address name functionSize",
    "sources": "uuid filename",
    "markers": "data name startTime endTime phase category",
}


@dataclass
class Thread:
    name: str
    process: str
    pid: str
    tid: int
    weight_type: str
    times_from: int  # fastprof's own: nanoseconds that times count from
    samples: list[tuple[Decimal, tuple[str, ...], Decimal]] = field(default_factory=list)  # time, root first, weight
    markers: list[tuple[Decimal, str, dict[str, Any]]] = field(default_factory=list)
    self_: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)  # recursion counts once


def check(name: str, table: dict[str, Any]) -> None:
    assert table.keys() == {*COLUMNS[name].split(), "length"}, name
    for column, items in table.items():
        assert column == "length" or len(items) == table["length"], (name, column)


def read(data: bytes) -> list[Thread]:
    """The threads.  Fails where the profiler would fail or be misled."""
    profile = json.loads(data, parse_float=Decimal, parse_int=Decimal)
    shared, meta = profile["shared"], profile["meta"]
    assert meta["preprocessedProfileVersion"] == 60
    strings = shared["stringArray"]
    for name in COLUMNS.keys() - {"markers"}:
        check(name, shared[name])
    frames, funcs, stacks = shared["frameTable"], shared["funcTable"], shared["stackTable"]
    assert all(0 <= category < len(meta["categories"]) for category in frames["category"])
    assert all(-1 <= resource < shared["resourceTable"]["length"] for resource in funcs["resource"])
    assert len(profile["libs"]) == shared["resourceTable"]["length"]
    assert all(source is None or 0 <= source < shared["sources"]["length"] for source in funcs["source"])
    paths: list[tuple[str, ...]] = []
    for frame, prefix in zip(stacks["frame"], stacks["prefix"], strict=True):
        name = strings[int(funcs["name"][int(frames["func"][int(frame)])])]
        paths.append((*(() if prefix is None else paths[int(prefix)]), name))
    return [_thread(thread, strings, paths) for thread in profile["threads"]]


def _thread(thread: dict[str, Any], strings: list[str], paths: list[tuple[str, ...]]) -> Thread:
    samples, markers = thread["samples"], thread["markers"]
    names = thread["name"], thread["processName"], thread["pid"], int(thread["tid"])
    found = Thread(*names, samples["weightType"], int(thread.get("timesFrom", 0)))
    check("markers", markers)
    times = samples.get("time") or []
    for delta in samples.get("timeDeltas", ()):
        times.append(delta + (times[-1] if times else 0))
    weights = samples["weight"] or [Decimal(1)] * len(times)
    assert len(times) == len(weights) == len(samples["stack"]) == samples["length"]
    assert times == sorted(times) and (not times or times[0] >= 0)
    for time, stack, weight in zip(times, samples["stack"], weights, strict=True):
        path = () if stack is None else paths[int(stack)]
        found.samples.append((time, path, weight))
        if path:
            found.self_[path[-1]] += weight
        for name in {*path}:
            found.total[name] += weight
    for time, name, data in zip(markers["startTime"], markers["name"], markers["data"], strict=True):
        found.markers.append((time, strings[int(name)], data))
    return found


def counters(data: bytes) -> list[tuple[str, str, Decimal, Decimal]]:
    """Values: process, name, time, and the sum of the counts so far.  The profiler replaces the first count by 0."""
    found = []
    for counter in json.loads(data, parse_float=Decimal, parse_int=Decimal).get("counters", ()):
        samples, value = counter["samples"], Decimal(0)
        assert samples["length"] == len(samples["time"]) == len(samples["count"]) and samples["count"][0] is None
        for time, count in zip(samples["time"][1:], samples["count"][1:], strict=True):
            value += count
            found.append((counter["pid"], counter["name"], time, value))
    return found
