"""The attributes (tests/support/attributes.py) of formats that are only written, by the reference readers."""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow
import pyarrow.parquet

from tests.reference import firefox, perfetto
from tests.support.attributes import NAMES, Attributes, unit_of


class _Said:
    """Attributes that grow."""

    def __init__(self) -> None:
        self.all: Attributes = {name: Counter() for name in NAMES}
        self.all["parts"][""] = 1

    def once(self, name: str, key: Any, if_: Any = True) -> None:
        if if_:
            self.all[name][key] = 1

    def cost(self, type_: str, path: tuple[bytes, ...], value: int) -> None:
        if not value:
            return
        self.once("value types", type_)
        self.all["totals"][type_] += value
        if path:
            self.all["self costs"][type_, path[-1]] += value
        self.path(path)

    def path(self, path: tuple[bytes, ...]) -> None:
        self.once("stacks", path, len(path) > 2)
        for pair in pairwise(path):
            self.once("calls", pair)

    def call(self, path: tuple[bytes, ...]) -> None:
        if len(path) > 1:
            self.all["call counts"][path[-2], path[-1]] += 1


def of_perfetto(data: bytes) -> Attributes:
    said = _Said()
    for track in perfetto.read(data):
        said.once("threads", (track.pid, track.tid))
        said.once("thread names", (track.pid, track.tid, track.name.encode()), track.name)
        said.once("process names", (track.pid, track.process.encode()), track.process)
        path: list[bytes] = []
        inner: dict[int, int] = defaultdict(int)  # by depth: time of calls that have ended
        ends = [one for one in track.slices if one.end is not None]
        for one in track.slices:
            said.once("times", one.begin)
            path[one.depth :] = [one.name.encode()]
            said.once("objects", (path[-1], one.category.encode()), one.category)
            if one.end is None:
                said.all["events"]["type" in one.args and one.args["type"], one.args.get("data", "")] += 1
                continue
            said.once("times", one.end)
            if one.args:
                said.all["arguments"][path[-1], tuple(one.args.values())] += 1
            said.call(tuple(path))
            within = [other for other in ends if other.depth == one.depth + 1 and one.begin <= other.begin < one.end]
            inner[id(one)] = sum(other.end - other.begin for other in within if other.end is not None)
            said.cost("time", tuple(path), one.end - one.begin - inner[id(one)])
            said.path(tuple(path))
    del said.all["value types"]["time"]  # a timeline has no value types
    return said.all


def of_firefox(data: bytes) -> Attributes:
    said, profile = _Said(), json.loads(data)
    timeline = not any("valueType" in thread for thread in profile["threads"])
    for thread in firefox.read(data):
        _firefox_thread(said, thread, timeline)
    for _, name, time, value in firefox.counters(data):
        said.once("times", int(time * 1_000_000))
        said.all["events"][(1 << 32) - 1, f"{value} {name}"] += 1
    if timeline:
        said.all["value types"].clear()
    _firefox_tables(said, profile)
    meta = profile["meta"]
    said.once("default type", meta.get("defaultValueType"), meta.get("defaultValueType"))
    for entry in (entry for extra in meta["extra"] for entry in extra["entries"]):
        said.once("header: comments", f"{entry['label']}: {entry['value']}".encode())
    said.once("header: time_ns", str(int(meta["startTime"] * 1e6)), meta["startTime"])
    return said.all


def _firefox_thread(said: _Said, thread: firefox.Thread, timeline: bool) -> None:
    pid, tid = int(thread.pid), thread.tid
    said.once("threads", (pid, tid))
    said.once("thread names", (pid, tid, thread.name.encode()), thread.name)
    said.once("process names", (pid, thread.process.encode()), thread.process)
    type_, _, name = thread.name.partition(", ")
    type_ = "time" if timeline else type_
    said.once("thread names", (pid, tid, name.encode()), name)
    unit = Decimal(1_000_000 if thread.weight_type == "tracing-ms" else 1)
    said.once("units", (type_, "time" if thread.weight_type == "tracing-ms" else thread.weight_type))
    before: tuple[str, ...] = ()
    for time, path, weight in thread.samples:
        said.once("times", thread.times_from + int(time * 1_000_000))
        names = tuple(name.encode() for name in path)
        said.cost(type_, names, int(weight * unit))
        if type_.lower() == "calls" and weight and len(names) > 1:
            said.all["call counts"][names[-2], names[-1]] += int(weight)
        for depth in range(1, len(path) + 1 if timeline else 0):
            if path[:depth] != before[:depth]:
                said.call(names[:depth])
        before = path
    for time, _, marker in thread.markers:
        said.once("times", int(time * 1_000_000))
        said.all["events"]["number" in marker and marker["number"], marker.get("data", "")] += 1


def _firefox_tables(said: _Said, profile: dict[str, Any]) -> None:
    shared, libs = profile["shared"], profile["libs"]
    strings, funcs, frames = shared["stringArray"], shared["funcTable"], shared["frameTable"]
    files = shared["sources"]["filename"]
    for lib in libs:
        said.once("build ids", (lib["path"].encode(), (lib["codeId"] or "").encode()), lib["codeId"])
    for func, line, address in zip(frames["func"], frames["line"], frames["address"], strict=True):
        name = strings[funcs["name"][func]].encode()
        said.once("lines", (name, line), line)
        said.once("addresses", address, address >= 0)
        said.once("first lines", (name, funcs["lineNumber"][func]), funcs["lineNumber"][func])
        source, resource = funcs["source"][func], funcs["resource"][func]
        said.once("files", (name, strings[files[source]].encode()) if source is not None else "", source is not None)
        said.once("objects", (name, libs[resource]["path"].encode()) if resource >= 0 else "", resource >= 0)
    for frame, prefix in zip(shared["stackTable"]["frame"], shared["stackTable"]["prefix"], strict=True):
        if frames["inlineDepth"][frame] and prefix is not None:
            outer = shared["stackTable"]["frame"][prefix]
            names = [strings[funcs["name"][frames["func"][at]]].encode() for at in (outer, frame)]
            said.once("inlined functions", (names[0], names[1]))


def _table(table: pyarrow.Table) -> Attributes:
    said = _Said()
    fixed = {"ts", "stack_id", "function", "thread", "process", "labels", "kind", "file", "line", "object", "address"}
    fixed |= {"callee", "id", "dur", "self"}
    if {"kind", "dur"} & {*table.column_names}:  # otherwise they are a value type
        fixed.add("calls")
    types = [name for name in table.column_names if name not in fixed]
    for field in table.schema:
        unit = (field.metadata or {}).get(b"unit", b"").decode()
        said.once("units", (field.name, unit_of(unit)), unit and field.name in types)
        description = (field.metadata or {}).get(b"description", b"").decode()
        said.once("long names", (field.name, description), description)
    rows = table.to_pylist()
    if "dur" in table.column_names:
        _spans(said, rows)
        return said.all
    for row in rows:
        name = (row["function"] or "[unknown]").encode()
        said.once("times", row.get("ts"), row.get("ts"))
        said.once("threads", (row.get("process") or 0, row.get("thread") or 0), row.get("thread") or row.get("process"))
        for pair in json.loads(row.get("labels") or "{}").items():
            said.once("labels", _label(*pair))
        for key, attribute in (("file", "files"), ("object", "objects"), ("line", "lines")):
            value = row.get(key)
            said.once(attribute, (name, value.encode() if isinstance(value, str) else value), value)
        said.once("addresses", row.get("address"), row.get("address"))
        if row.get("kind", "cost") == "cost":
            for type_ in types:
                said.cost(type_, (name,), row[type_] or 0)
        elif row["kind"] == "call":
            said.once("calls", (name, row["callee"].encode()))
            said.all["call counts"][name, row["callee"].encode()] += row["calls"] or 0
    return said.all


def _label(key: str, value: int | str) -> tuple[bytes, bytes | int]:
    """A number with a unit is `key [unit]` and text."""
    key, _, unit = key.partition(" [")
    if isinstance(value, str) and not (unit and value.removeprefix("-").isdigit()):
        return key.encode(), value.encode()
    return key.encode(), int(value) % (1 << 64)


def _spans(said: _Said, rows: Iterable[dict[str, Any]]) -> None:
    by_id = {row["id"]: row for row in rows}
    for row in by_id.values():
        path, at = [], row
        while at is not None:
            path.append((at["function"] or "").encode())
            at = by_id.get(at["parent"])
        said.once("threads", (row["process"] or 0, row["thread"] or 0), row["thread"] or row["process"])
        said.once("times", row["ts"])
        said.once("times", row["ts"] + row["dur"])
        said.call(tuple(path[::-1]))
        said.path(tuple(path[::-1]))
        said.cost("time", tuple(path[::-1]), row["self"])
    said.all["value types"].clear()


READERS: dict[str, Callable[[bytes], Attributes]] = {
    "perfetto": of_perfetto,
    "firefox": of_firefox,
    "parquet": lambda data: _table(pyarrow.parquet.read_table(io.BytesIO(data))),
    "arrow": lambda data: _table(pyarrow.ipc.open_stream(data).read_all()),
}
