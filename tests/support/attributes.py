"""The content of a profile as plain values, comparable across formats and views: the contract of round trips.

Reports are not read here.  `of_file` reads rows and tables through the format's reader and counts the values of each
attribute; `lost` is the difference from source to target.
"""

from __future__ import annotations

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
    missing = source[name] - target[name]
    if name in ("threads", "thread names"):  # if the source names no process, it may have any number
        without = Counter({(0, *key[1:]): 1 for key in target[name]})
        missing -= Counter({key: n for key, n in without.items() if key[0] == 0})
    if name in ("thread names", "process names"):  # may be labels
        texts = {value for _, value in target["labels"]}
        return Counter({key: n for key, n in missing.items() if key[-1] not in texts})
    if name.startswith("header: "):
        said = b"\n".join(text for other in _TEXTS for text in target[f"header: {other}"])
        return Counter({text: n for text, n in missing.items() if not (isinstance(text, bytes) and text in said)})
    return missing


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
        self._is: dict[str, Counter[Any]] = defaultdict(Counter)
        self._parts: dict[int, None] = {}
        self._open: dict[int, list[tuple[bytes, int]]] = defaultdict(list)  # by thread: names, and their begin
        self._now: dict[int, int] = {}
        self._args: dict[int, list[int]] = {}

    def add(self, batch: Batch) -> None:
        self._parts[batch.part] = None
        part = self._model.parts[batch.part]
        columns: dict[str, Any] = {name: batch[name] for name in batch.columns}
        values = [batch.values(k) for k in range(batch.c.n_values)]
        for i in range(len(batch)):
            row = {name: column[i] for name, column in columns.items()}
            costs = {t.name: v[i] for t, v in zip(part.value_types, values, strict=False) if v[i]}
            if batch.view == "timeline":
                self._event(batch, i, row)
            elif batch.view == "stacks":
                self._sample(row, costs)
            else:
                self._row(part, row, costs)

    def all(self) -> Attributes:
        model = self._model
        self._is["parts"][""] = max(len(self._parts), 1)
        for index in self._parts or range(len(model.parts)):
            self._header(model.parts[index])
        for i in range(1, model.count("functions")):
            f = model.get_function(i)
            self._once("first lines", (f.name, f.line), f.line)
            self._once("system names", (f.name, f.system_name), f.system_name and f.system_name != f.name)
            self._once("files", (f.name, f.file), f.file not in (b"", b"???"))
            self._once("objects", (f.name, f.object), f.object not in (b"", b"???"))
        for i in range(1, model.count("objects")):
            name, build_id = (model.string(s) for s in model.row("objects", i))
            self._once("build ids", (name, build_id), build_id)
        for i in range(1, model.count("mappings")):
            object_, *words, _ = model.row("mappings", i)
            start, limit, offset = (words[k] | words[k + 1] << 32 for k in (0, 2, 4))
            name = model.string(model.row("objects", object_)[0])
            self._once("mappings", (name, start, limit, offset), limit)
        return {name: +self._is[name] for name in NAMES}

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
        for name in HEADER_EXTRA:
            self._once(f"header: {name}", str(part.extra.get(name)), part.extra.get(name))
        for t in part.value_types:
            self._once("value types", t.name)
            self._once("units", (t.name, t.unit), t.unit not in ("", "count"))
            self._once("long names", (t.name, t.long_name), t.long_name)
        for t in part.extra.get("inherited", []):
            self._once("inherited events", t)
        default = part.extra.get("default_sample_type")
        self._once("default type", default, default and len(part.value_types) > 1)
        for pid, name in part.extra.get("process_names", []):
            self._once("process names", (pid, name), name)
        for pid, tid, name in part.extra.get("thread_names", []):
            self._once("thread names", (pid, tid, name), name)
        if part.thread or part.pid:
            self._once("threads", (part.pid or 0, part.thread or 0), part.thread)

    def _thread(self, thread: int) -> None:
        if thread:
            self._once("threads", self._model.row("threads", thread)[1:])

    # ---- timelines -------------------------------------------------------

    def _event(self, batch: Batch, i: int, row: dict[str, int]) -> None:
        op, thread, time = row["op"], row["thread"], row["time"]
        self._thread(thread)
        if op > _TYPED:
            return
        if op == _ARGUMENT:
            self._args.setdefault(thread, []).append(row["aux"])
            return
        stack = self._open[thread]
        if args := self._args.pop(thread, None):
            self._is["arguments"][stack[-1][0], tuple(args)] += 1
        self._once("times", time)
        self._once("CPUs", row["cpu"], row["cpu"])
        if op in (_CUSTOM, _TYPED):
            payload = bytes(batch.payload(i))
            text = payload.decode("ascii") if payload.isascii() and payload.decode().isprintable() else payload.hex()
            self._is["events"][op == _TYPED and row["function"], text] += 1
            return
        name = self._model.get_function(row["function"]).name
        self._spend(thread, time)
        if op in (_ENTER, _ENTER_ARGS):
            if stack:
                self._once("calls", (stack[-1][0], name))
                self._is["call counts"][stack[-1][0], name] += 1
            stack.append((name, time))
        elif any(one == name for one, _ in stack):
            while stack.pop()[0] != name:
                pass

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
                f = model.get_function(function)
                names.append(f.name)
                self._once("lines", (f.name, line), line)
                self._once("columns", (f.name, line, column), column)
                if chain:
                    outer = model.get_function(model.row("lines", chain)[0]).name
                    self._once("inlined functions", (outer, f.name))
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
        name = model.get_function(row["function"]).name
        if kind == _COST:
            for of, cost in costs.items():
                self._is["totals"][of] += cost
                self._is["self costs"][of, name] += cost
        if not costs and kind == _COST:
            return
        if kind in (_COST, _CALL):
            self._once("lines", (name, row["line"]), "line" in part.positions and row["line"])
            file = model.string(row["file"])
            self._once("files", (name, file), file not in (b"", b"???"))
            has_address = kind == _COST and "instr" in part.positions
            self._once("addresses", row["address"], has_address and row["address"])
        if kind == _CALL:
            callee = model.get_function(row["callee"]).name
            self._once("calls", (name, callee))
            self._is["call counts"][name, callee] += row["count"]
        elif kind in (_JUMP, _JCND):
            self._is["jumps"][name, row["line"], row["target_line"], row["count"], row["count2"]] += 1
