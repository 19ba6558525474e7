"""The obvious reader of profiles that the Firefox Profiler opens: samples and allocations of any version.

It loads the JSON whole, and looks columns up by name: first in the thread, then in `shared`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

Frame = tuple[str, str, int, int]  # function, file, line, column
SCRIPT = re.compile(r"(.*?) \(((?!.* \().+?)(?::\d+){1,2}\)(?:\[\d+\])?")
CPU = {"ns": 1, "µs": 1000, "variable CPU cycles": 1}


class Sample(NamedTuple):
    thread: str
    time: int  # nanoseconds since 1970; 0: unknown
    stack: tuple[Frame, ...]  # root first
    values: tuple[tuple[str, int], ...]  # those that are not 0, by name


def rounded(value: Decimal, decimals: int = 0) -> int:
    return int(value.scaleb(decimals).quantize(Decimal(1), ROUND_HALF_UP))


def columns(table: Any) -> dict[str, list[Any]]:
    """The columns of a table, also of one of rows, up to its length."""
    if "schema" in table:
        rows = table["data"]
        return {name: [row[int(at)] if at < len(row) else None for row in rows] for name, at in table["schema"].items()}
    found = {name: items for name, items in table.items() if isinstance(items, list)}
    if "length" in table:
        found = {name: items[: int(table["length"])] for name, items in found.items()}
    return found


def items(table: dict[str, list[Any]], *names: str) -> list[Any]:
    """The first of these columns that exists; null everywhere without one."""
    found = next((table[name] for name in names if name in table), None)
    return found if found is not None else [None] * max(map(len, table.values()), default=0)


class Thread:
    def __init__(self, process: Any, thread: Any) -> None:
        self.own, self.shared = thread, process.get("shared", {})
        texts = self.table("stringArray") or thread.get("stringTable") or []
        self.strings: list[str] = [text or "" for text in texts]
        self.paths = [*self.stacks()]

    def table(self, name: str) -> Any:
        return self.shared[name] if name in self.shared else self.own.get(name)

    def text(self, index: Decimal | None) -> str:
        return "" if index is None or index < 0 else self.strings[int(index)]

    def frames(self) -> Iterator[Frame]:
        table = columns(self.table("frameTable"))
        lines, places = items(table, "line"), items(table, "column")
        if "location" in table:
            for location, line, column in zip(table["location"], lines, places, strict=True):
                text = self.text(location)
                script = SCRIPT.fullmatch(text)
                name, file = script.groups() if script else (text, "")
                yield name, file, int(line or 0), int(column or 0)
            return
        funcs = columns(self.table("funcTable"))
        sources = items(columns(self.table("sources") or {}), "filename")
        files = items(funcs, "fileName")
        if "source" in funcs:
            files = [None if source is None else sources[int(source)] for source in funcs["source"]]
        for func, line, column in zip(table["func"], lines, places, strict=True):
            name, file = self.text(funcs["name"][int(func)]), self.text(files[int(func)])
            yield name, file, int(line or 0), int(column or 0)

    def stacks(self) -> Iterator[tuple[Frame, ...]]:
        frames, made = [*self.frames()], []
        table = columns(self.table("stackTable"))
        offsets = table.get("prefixOffset")
        for i, frame in enumerate(table["frame"]):
            prefix = table["prefix"][i] if offsets is None else i - offsets[i] if offsets[i] else None
            made.append((*(made[int(prefix)] if prefix is not None and prefix >= 0 else ()), frames[int(frame)]))
        yield from made

    def samples(self, kind: str, start: Decimal | None, unit: str) -> Iterator[Sample]:
        table = self.own.get(kind)
        if not table:
            return
        found = columns(table)
        clock = 0
        deltas, times = items(found, "timeDeltas"), items(found, "time")
        weights, spent = items(found, "weight", "duration"), items(found, "threadCPUDelta")
        has_weights = "weight" in found or "duration" in found
        type_ = table.get("weightType") if has_weights else "samples"
        is_ms = type_ == "tracing-ms" and kind == "samples"
        for i, stack in enumerate(found["stack"]):
            time = None if times[i] is None else rounded(times[i], 6)
            if "time" not in found and "timeDeltas" in found:
                time = clock = clock + rounded(deltas[i] or Decimal(0), 6)
            at = 0 if time is None or start is None else max(0, time + rounded(start, 6))
            weight = 1 if weights[i] is None else rounded(weights[i], 6 if is_ms else 0)
            if is_ms and (stack is None or stack < 0):
                weight = 0  # idle
            values = {"time" if is_ms else "size" if type_ == "bytes" else "samples": weight}
            if kind == "jsAllocations":
                values = {"js_alloc_space": weight}
            elif kind == "nativeAllocations":
                values = {"native_alloc_space": max(0, weight), "native_inuse_space": weight}
            elif spent[i] is not None:
                cycles = Decimal(rounded(spent[i], 3)).scaleb(-3)
                values["cpu_cycles" if "cycles" in unit else "cpu"] = rounded(cycles * CPU[unit])
            path = () if stack is None or stack < 0 else self.paths[int(stack)]
            yield Sample(self.own["name"], at, path, tuple(sorted((k, v) for k, v in values.items() if v)))


def read(data: bytes) -> list[Sample]:
    return [*_process(json.loads(data, parse_float=Decimal, parse_int=Decimal))]


def _process(process: Any) -> Iterator[Sample]:
    meta = process["meta"]
    unit = meta.get("sampleUnits", {}).get("threadCPUDelta", "ns")
    for thread in process["threads"]:
        for kind in ("samples", "jsAllocations", "nativeAllocations"):
            yield from Thread(process, thread).samples(kind, meta.get("startTime"), unit)
    for other in process.get("processes", ()):
        yield from _process(other)
