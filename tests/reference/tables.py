"""The tables of docs/tables.md, slowly: a dictionary per row, from rows and the model as Python sees them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from fastprof.core.model import Batch, Model

OPS = ("enter", "exit", "tail exit", "enter with arguments", "argument", "custom event", "typed event")
KINDS = ("cost", "call", "jump", "conditional jump", "empty block")
Row = dict[str, Any]


def place(data: bytes) -> str | None:
    """A file or an object: `???` is Callgrind's spelling of what is unknown."""
    return None if data == b"???" else text(data)


def text(data: bytes) -> str | None:
    """U+FFFD for each byte that is not UTF-8; an empty text is no value."""
    mended, rest = "", data
    while rest:
        try:
            mended, rest = mended + rest.decode(), b""
        except UnicodeDecodeError as error:
            mended += rest[: error.start].decode() + "\ufffd"
            rest = rest[error.start + 1 :]
    return mended or None


class Tables:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.rows: defaultdict[str, list[Row]] = defaultdict(list)
        self.open: defaultdict[int, list[Row]] = defaultdict(list)
        self.last: dict[int, int] = {}
        self.seen: set[int] = set()
        self.n_calls = 0

    def put(self, batch: Batch) -> None:
        columns: dict[str, Any] = {name: batch[name].tolist() for name in batch.columns}
        values = [batch.values(k).tolist() for k in range(batch.c.n_values)]
        part = self.model.parts[batch.part]
        for i in range(len(batch)):
            at = {name: column[i] for name, column in columns.items()}
            at["values"] = {part.value_types[k].name: v[i] for k, v in enumerate(values)}
            getattr(self, batch.view)(at, part)

    def end(self) -> None:
        for thread in sorted(self.open):
            while self.open[thread]:
                self.end_call(thread, self.last[thread])

    def function(self, function: int) -> str | None:
        return text(self.model.get_function(function).name)

    def thread(self, thread: int) -> Row:
        _, pid, tid = self.model.row("threads", thread) if thread else (None, None, None)
        return {"thread": tid, "process": pid}

    # ---- timelines

    def timeline(self, at: Row, part: Any) -> None:
        if at["op"] == 7:
            return
        clock = part.extra.get("ticks_per_second")
        time = at["time"] * 10**9 // clock if clock else at["time"]
        function = self.function(at["function"]) if at["op"] < 4 else None
        thread = self.thread(at["thread"])
        event = {"ts": time, "op": OPS[at["op"]], "function": function, **thread, "cpu": at["cpu"]}
        self.rows["events"].append(event)
        time = self.last[at["thread"]] = max(time, self.last.get(at["thread"], 0))
        calls = self.open[at["thread"]]
        if at["op"] in (0, 3):
            parent = calls[-1]["id"] if calls else None
            call = {"id": self.n_calls, "ts": time, "children": 0, "key": at["function"], "function": function}
            calls.append(call | thread | {"depth": len(calls), "parent": parent} | self.owner(at["function"]))
            self.n_calls += 1
        elif at["op"] in (1, 2) and at["function"] in [call["key"] for call in calls]:
            while self.end_call(at["thread"], time) != at["function"]:
                pass

    def owner(self, function: int) -> Row:
        """A category is an object that is no file."""
        object_id = self.model.row("functions", function)[0]
        name, build_id = map(self.model.string, self.model.row("objects", object_id))
        is_category = not build_id and b"/" not in name
        return {"object": None if is_category else place(name), "category": text(name) if is_category else None}

    def end_call(self, thread: int, time: int) -> int:
        call = self.open[thread].pop()
        dur = time - call["ts"]
        if self.open[thread]:
            self.open[thread][-1]["children"] += dur
        key: int = call.pop("key")
        self.rows["spans"].append(call | {"dur": dur, "self": dur - call.pop("children")})
        return key

    # ---- stacks

    def stacks(self, at: Row, part: Any) -> None:
        chain = self.chain(at["stack"])
        found = {
            "ts": at["time"] or None,
            "stack_id": at["stack"],
            "function": chain[-1]["function"] if chain else None,
        }
        found |= self.thread(at["thread"]) | {"labels": self.labels(at["label"])}
        self.rows["samples"].append(found | as_columns(found, at["values"]))
        if at["stack"] not in self.seen:
            self.seen.add(at["stack"])
            self.rows["frames"] += [{"stack_id": at["stack"], "depth": i} | row for i, row in enumerate(chain)]

    def chain(self, stack: int) -> list[Row]:
        """Outermost first."""
        found = []
        while stack:
            stack, frame = self.model.row("stacks", stack)
            mapping, low, high, flags, line = self.model.row("frames", frame)
            address = low | high << 32
            while True:
                function, number, _, outer = self.model.row("lines", line)
                named = self.model.get_function(function)
                object_id = self.model.row("mappings", mapping)[0]
                path = self.model.string(self.model.row("objects", object_id)[0]) if object_id else named.object
                name = text(named.name) or text(self.address_name(mapping, address, flags))
                row = {"function": name, "file": place(named.file), "line": number or None}
                found.append(row | {"address": address if address or mapping else None, "object": place(path)})
                line = outer
                if not line:
                    break
        return found[::-1]

    def address_name(self, mapping: int, address: int, flags: int) -> bytes:
        object_id, start_low, start_high, _, _, low, high, _ = self.model.row("mappings", mapping)
        name = self.model.string(self.model.row("objects", object_id)[0])
        if not (len(name) > 2 and name.startswith(b"[") and name.endswith(b"]")):
            name = name.rpartition(b"/")[2]
        if len(name) > 2 and name.startswith(b"[") and name.endswith(b"]"):
            name = name[1:-1]
        if flags & 1 and address:
            address -= 1
        if not name:
            return b"0x%x" % address
        return b"[%s+0x%x]" % (name, (address - (start_low | start_high << 32) + (low | high << 32)) % 2**64)

    def labels(self, label: int) -> str | None:
        found: list[tuple[str, Any]] = []
        while label:
            label, key, string, low, high, unit = self.model.row("labels", label)
            number = int.from_bytes((low | high << 32).to_bytes(8, "little"), "little", signed=True)
            name, said = self.plain(key), self.plain(unit)
            found.insert(
                0, (f"{name} [{said}]" if said not in ("", name) else name, self.plain(string) if string else number)
            )
        by_key: defaultdict[str, list[Any]] = defaultdict(list)
        for name, value in sorted(found, key=lambda pair: (pair[0], isinstance(pair[1], str), pair[1])):
            by_key[name].append(value)
        plain = {name: values[0] if len(values) == 1 else values for name, values in by_key.items()}
        return json.dumps(plain, ensure_ascii=False) if plain else None

    def plain(self, string: int) -> str:
        return self.model.string(string).decode("utf-8", "replace")

    # ---- graphs

    def graph(self, at: Row, part: Any) -> None:
        function, kind = self.model.get_function(at["function"]), KINDS[at["kind"]]
        goes = kind in ("call", "jump", "conditional jump")
        placed = kind != "empty block"
        row = {
            "kind": kind,
            "function": text(function.name),
            "file": place(self.model.string(at["file"])),
            "line": (at["line"] or None) if placed and "line" in part.positions else None,
            "object": place(function.object),
            "address": at["address"] if placed and "instr" in part.positions else None,
            "callee": self.function(at["callee"]) if goes else None,
            "calls": (at["count"] or None) if goes else None,  # 0: not counted
        }
        costs = at["values"] if kind in ("cost", "call") else dict.fromkeys(at["values"])
        self.rows["graph"].append(row | as_columns(row, costs))


def as_columns(row: Row, values: Row) -> Row:
    """Values by column: a value type that has the name of a column, like a heap's `thread`, gets a number."""
    return {f"{name}_2" if name in row else name: value for name, value in values.items()}
