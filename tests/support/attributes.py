"""The content of a profile as plain values, comparable across formats and views: the contract of round trips.

Reports are not read here.  `of_file` reads rows and tables through the format's reader and counts the values of each
attribute; `lost` is the difference from source to target.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from fastprof.core.engine import read
from fastprof.core.model import Batch, Model, Part
from fastprof.core.options import Options
from tests.support.product import open_input

Attributes = dict[str, Counter[Any]]

_ENTER, _EXIT, _TAIL, _ENTER_ARGS, _ARGUMENT, _CUSTOM, _TYPED = range(7)
_COST, _CALL, _JUMP, _JCND = range(4)
# Fields of a part that mean the same in all formats.  Not `creator`: the program that writes a file is its creator.
HEADER = ("pid", "thread", "number", "command", "trigger", "descriptions", "comments")
_TEXTS = ("command", "trigger", "descriptions", "comments")
_TIMES = ("seconds", "milliseconds", "microseconds", "nanoseconds")
HEADER_EXTRA = ("period", "period_type", "time_ns", "duration_ns", "drop_frames", "keep_frames", "doc_url", "cpu")
NAMES = (
    "totals",
    "value types",
    "units",
    "long names",
    "inherited events",
    "default type",
    "self costs",
    "stacks",
    "calls",
    "call counts",
    "jumps",
    "inlined functions",
    "lines",
    "files",
    "first lines",
    "columns",
    "objects",
    "build ids",
    "mappings",
    "system names",
    "addresses",
    "labels",
    "times",
    "CPUs",
    "threads",
    "thread names",
    "process names",
    "events",
    "arguments",
    *(f"header: {name}" for name in (*HEADER, *HEADER_EXTRA)),
    "parts",
)


def lost(name: str, source: Attributes, target: Attributes) -> Counter[Any]:
    """The values missing from the target.  A text of the header may be in any of the target's header fields."""
    has = target[name]  # a Counter's own difference has no values below 0
    missing = Counter({k: n for k, n in source[name].items() if (has[k] < n if n > 0 else has[k] > n)})
    if name in ("threads", "thread names"):  # if the source names no process, it may have any number
        without = Counter({(0, *key[1:]): 1 for key in target[name]})
        missing -= Counter({key: n for key, n in without.items() if key[0] == 0})
        pids = {pid for pid, _ in target["threads"]}
        missing = Counter({key: n for key, n in missing.items() if key[1] or key[0] not in pids})
    if name == "addresses":  # of a call, or the one that it returns to
        return Counter({address: n for address, n in missing.items() if not {address - 1, address + 1} & has.keys()})
    if name in ("thread names", "process names"):  # may be labels
        texts = b"\n".join([*(bytes(value) for _, value in target["labels"] if isinstance(value, bytes))])
        texts += b"\n".join(key[-1] for key in has)
        return Counter({key: n for key, n in missing.items() if not _has(texts, key[-1])})
    if name in ("header: pid", "header: thread"):
        ids = {thread[name == "header: thread"] for thread in target["threads"]}
        return Counter({id_: n for id_, n in missing.items() if id_ not in ids})
    if name.startswith("header: "):
        said = b"\n".join(text for other in _TEXTS for text in target[f"header: {other}"])
        return Counter({text: n for text, n in missing.items() if not (isinstance(text, bytes) and _has(said, text))})
    return missing


def unit_of(unit: str) -> str:
    """One for all times, which a writer may convert."""
    return "time" if unit in _TIMES else unit


def _has(said: bytes, text: bytes) -> bool:
    return re.search(rb"(?<!\w)" + re.escape(text) + rb"(?!\w)", said) is not None


def of_file(data: bytes, from_: str, options: Options | None = None, view: str = "") -> Attributes:
    opened = open_input(data, options, None, from_)
    opened.reader.view = view or opened.reader.view
    said = _Said(opened.model)
    for batch in read(opened.reader):
        said.add(batch)
    return said.all()


class _Said:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._used: set[int] = set()  # functions; one that no row has is nothing to lose
        self._costly: set[str] = set()  # value types that are not 0 everywhere
        self._is: dict[str, Counter[Any]] = defaultdict(Counter)
        self._parts: dict[int, None] = {}
        self._is_timeline = False
        self._per_second = 10**9  # ticks of a timeline
        self._open: dict[int, list[tuple[bytes, int]]] = defaultdict(list)  # by thread: names, and their begin
        self._now: dict[int, int] = {}
        self._args: dict[int, list[int]] = {}

    def add(self, batch: Batch) -> None:
        self._parts[batch.part] = None
        self._is_timeline = batch.view == "timeline"
        part = self._model.parts[batch.part]
        columns: dict[str, Any] = {name: batch[name] for name in batch.columns}
        values = [batch.values(k) for k in range(batch.c.n_values)]
        for i in range(len(batch)):
            row = {name: column[i] for name, column in columns.items()}
            costs = {t.name: v[i] for t, v in zip(part.value_types, values, strict=False) if v[i]}
            self._costly |= costs.keys()
            if batch.view == "timeline":
                self._event(batch, i, row)
            elif batch.view == "stacks":
                self._sample(row, costs)
            else:
                self._row(part, row, costs)

    def all(self) -> Attributes:
        model = self._model
        for name in ("self costs", "totals"):
            if self._is_timeline:
                self._is[name] = Counter({key: self._ns(ticks) for key, ticks in self._is[name].items()})
        self._is["parts"][""] = max(len(self._parts), 1)
        for index in self._parts or range(len(model.parts)):
            self._header(model.parts[index])
        for i in sorted(self._used):
            f, name = model.get_function(i), self._function(i)
            self._once("first lines", (name, f.line), f.line)
            self._once("system names", (name, f.system_name), f.system_name and f.system_name != name)
            self._once("files", (name, f.file), f.file not in (b"", b"???"))
            self._once("objects", (name, f.object), f.object not in (b"", b"???"))
        for i in range(1, model.count("objects")):
            name, build_id = (model.string(s) for s in model.row("objects", i))
            self._once("build ids", (name, build_id), build_id)
        for i in range(1, model.count("mappings")):
            object_, *words, _ = model.row("mappings", i)
            start, limit, offset = (words[k] | words[k + 1] << 32 for k in (0, 2, 4))
            name = model.string(model.row("objects", object_)[0])
            self._once("mappings", (name, start, limit, offset), limit)
        return {name: Counter({k: n for k, n in self._is[name].items() if n}) for name in NAMES}

    def _once(self, name: str, key: Any, if_: Any = True) -> None:
        if if_:
            self._is[name][key] = 1

    def _header(self, part: Part) -> None:
        for name in HEADER:
            value = part.named(name) if name in ("pid", "thread") else getattr(part, name)
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, tuple) and one[0] == b"Source":
                    continue  # the input's file name, which the reader adds
                text = b": ".join(filter(None, one)) if isinstance(one, tuple) else one
                # the number of a single part has no meaning
                alone = name == "number" and len(self._parts) < 2 and one == 1
                self._once(f"header: {name}", text, text not in (None, b"") and not alone)
        for remark in part.extra.get("remarks", []):
            self._once("header: comments", remark, remark)
        for name in HEADER_EXTRA:
            self._once(f"header: {name}", str(part.extra.get(name)), part.extra.get(name))
        for t in part.value_types:
            if t.name not in self._costly:
                continue
            self._once("value types", t.name)
            self._once("units", (t.name, unit_of(t.unit)), t.unit not in ("", "count"))
            self._once("long names", (t.name, t.long_name), t.long_name)
        for t in part.extra.get("inherited", []):
            self._once("inherited events", t)
        if len(part.value_types) > 1 and self._costly:
            default = part.extra.get("default_sample_type")
            self._once("default type", default, default)
        for pid, name in part.extra.get("process_names", []):
            self._once("process names", (pid, name), name)
        for number, id_ in part.extra.get("own_ids", []):
            self._once("thread names", (number, id_), id_)
        for pid, tid, name in part.extra.get("thread_names", []):
            self._once("thread names", (pid, tid, name), name)
        if part.thread or part.pid:
            self._once("threads", (part.pid or 0, part.thread or 0), part.thread)

    def _function(self, function: int) -> bytes:
        """Its name, as shown."""
        self._used.add(function)
        return self._model.get_function(function).name or b"[unknown]"

    def _thread(self, thread: int) -> None:
        pid, tid = self._model.row("threads", thread)[1:]
        self._once("threads", (pid, tid), pid or tid)

    # ---- timelines -------------------------------------------------------

    def _event(self, batch: Batch, i: int, row: dict[str, int]) -> None:
        op, thread, time = row["op"], row["thread"], row["time"]
        if per_second := self._model.parts[batch.part].extra.get("ticks_per_second"):
            self._per_second = per_second
        self._thread(thread)
        if op > _TYPED:
            return
        if op == _ARGUMENT:
            self._args.setdefault(thread, []).append(row["aux"])
            return
        stack = self._open[thread]
        if args := self._args.pop(thread, None):
            self._is["arguments"][stack[-1][0], tuple(args)] += 1
        self._once("times", self._ns(time))
        self._once("CPUs", row["cpu"], row["cpu"])
        if op in (_CUSTOM, _TYPED):
            payload = bytes(batch.payload(i))
            text = payload.decode("ascii") if payload.isascii() and payload.decode().isprintable() else payload.hex()
            self._is["events"][op == _TYPED and row["function"], text] += 1
            return
        name = self._function(row["function"])
        self._spend(thread, time)
        if op in (_ENTER, _ENTER_ARGS):
            if stack:
                self._once("calls", (stack[-1][0], name))
                self._is["call counts"][stack[-1][0], name] += 1
            stack.append((name, time))
        elif any(one == name for one, _ in stack):
            while stack.pop()[0] != name:
                pass

    def _ns(self, ticks: int) -> int:
        return ticks * 10**9 // self._per_second

    def _spend(self, thread: int, time: int) -> None:
        stack = self._open[thread]
        spent = time - self._now.get(thread, time)
        self._now[thread] = time
        if stack and spent:
            path = tuple(name for name, _ in stack)
            self._is["self costs"]["time", path[-1]] += spent
            self._is["totals"]["time"] += spent
            self._once("stacks", path, len(path) > 2)

    # ---- stacks ----------------------------------------------------------

    def _frames(self, stack: int) -> Iterator[tuple[int, int]]:
        while stack:
            stack, frame = self._model.row("stacks", stack)
            yield frame, stack

    def _sample(self, row: dict[str, int], costs: dict[str, int]) -> None:
        model = self._model
        self._thread(row["thread"])
        self._once("times", row["time"], row["time"])
        label, labels = row["label"], dict[bytes, Any]()
        while label:
            label, key, string, number = self._label(label)
            labels[model.string(key)] = model.string(string) or number
        if labels.keys() & {b"pid", b"tid"}:  # pprof's names for threads
            self._once("threads", (labels.pop(b"pid", 0), labels.pop(b"tid", 0)))
        for pair in labels.items():
            self._once("labels", pair)
        if not costs:
            return
        path: list[bytes] = []
        for frame, _ in self._frames(row["stack"]):
            mapping, address, chain = self._frame(frame)
            names = []
            while chain:
                function, line, column, chain = model.row("lines", chain)
                name = self._function(function)
                names.append(name)
                self._once("lines", (name, line), line)
                self._once("columns", (name, line, column), column)
                if chain:
                    outer = self._function(model.row("lines", chain)[0])
                    self._once("inlined functions", (outer, name))
            # for a caller some formats have the address of the call, others the return address
            self._once("addresses", address, address and not path)
            names = names or [self._place(frame)]
            object_ = model.row("mappings", mapping)[0] if mapping else 0
            if object_:
                object_name = model.string(model.row("objects", object_)[0])
                for name in names:
                    self._once("objects", (name, object_name), object_name)
            path += names
        path = path[::-1]
        for name, cost in costs.items():
            self._is["totals"][name] += cost
            if path:
                self._is["self costs"][name, path[-1]] += cost
        if len(path) > 2:
            self._once("stacks", tuple(path))
        for pair in pairwise(path):
            self._once("calls", pair)
        calls = [cost for name, cost in costs.items() if name == "calls"]  # XRay's profiles have this value
        if len(path) > 1 and calls:
            self._is["call counts"][path[-2], path[-1]] += calls[0]

    def _place(self, frame: int) -> bytes:
        """The name of unnamed code: docs/bridges.md."""
        mapping, address, _ = self._frame(frame)
        address -= self._model.row("frames", frame)[3] & 1
        object_, *words, _ = self._model.row("mappings", mapping) if mapping else (0,) * 8
        name = self._model.string(self._model.row("objects", object_)[0]).rpartition(b"/")[2]
        start, _, offset = (words[k] | words[k + 1] << 32 for k in (0, 2, 4))
        return b"[%b+0x%x]" % (name.strip(b"[]"), address - start + offset) if name else b"0x%x" % address

    def _label(self, label: int) -> tuple[int, int, int, int]:
        """The next one, key, text, number; the unit is part of the key's meaning."""
        next_, key, string, low, high, _ = self._model.row("labels", label)
        return next_, key, string, low | high << 32

    def _frame(self, frame: int) -> tuple[int, int, int]:
        row = self._model.row("frames", frame)
        return row[0], row[1] | row[2] << 32, row[-1]

    # ---- graphs ----------------------------------------------------------

    def _row(self, part: Part, row: dict[str, int], costs: dict[str, int]) -> None:
        model, kind = self._model, row["kind"]
        if (not costs and kind == _COST) or kind > _JCND:
            return
        name = self._function(row["function"])
        if kind == _COST:
            for of, cost in costs.items():
                self._is["totals"][of] += cost
                self._is["self costs"][of, name] += cost
        if kind in (_COST, _CALL):
            self._once("lines", (name, row["line"]), "line" in part.positions and row["line"])
            file = model.string(row["file"])
            self._once("files", (name, file), file not in (b"", b"???"))
            has_address = kind == _COST and "instr" in part.positions
            self._once("addresses", row["address"], has_address and row["address"])
        if kind == _CALL:
            callee = self._function(row["callee"])
            self._once("calls", (name, callee))
            self._is["call counts"][name, callee] += row["count"]
        elif kind in (_JUMP, _JCND):
            self._is["jumps"][name, row["line"], row["target_line"], row["count"], row["count2"]] += 1
