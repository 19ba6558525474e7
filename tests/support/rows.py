"""The rows of an input, through the plan's operators, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastprof import plan
from fastprof.core.engine import Capabilities
from fastprof.core.model import Batch
from fastprof.core.options import Options
from tests.reference import filters as reference
from tests.reference.filters import Row
from tests.support.conversions import HERE
from tests.support.product import open_input


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


class Reading:
    """The rows of an input through the plan's filters."""

    def __init__(self, data: bytes, from_: str, given: dict[str, Any], capacity: int | None = None) -> None:
        options = Options(**HERE.given | given)
        opened = open_input(data, options, None, from_)
        self.model, self.log, self.view = opened.model, opened.log, opened.reader.view
        made = plan.make([[opened.reader]], plan.End("test", holds=Capabilities(verbatim=True)), options)
        numbers: dict[int, int] = {}
        self.rows: list[Row] = []
        self._functions: dict[tuple[int, int], reference.Function] = {}
        self._frames: dict[int, tuple[reference.Function, ...]] = {}
        for batch in made.rows(opened.model, opened.log, capacity):
            self.rows += self._plain(batch, numbers.setdefault(batch.part, len(numbers) + 1))
        self.parts = [opened.model.parts[i] for i in numbers]

    def function(self, index: int, object_: int = 0) -> reference.Function:
        if (index, object_) not in self._functions:
            found = self.model.get_function(index)
            in_mapping = text(self.model.string(self.model.row("objects", object_)[0]))
            self._functions[index, object_] = text(found.name), text(found.object) or in_mapping
        return self._functions[index, object_]

    def frame(self, index: int) -> tuple[reference.Function, ...]:
        if index not in self._frames:
            self._frames[index] = self._frame(index)
        return self._frames[index]

    def _frame(self, index: int) -> tuple[reference.Function, ...]:
        mapping, low, high, flags, line = self.model.row("frames", index)
        object_, start, start_high, _, _, offset, offset_high, _ = self.model.row("mappings", mapping)
        path = text(self.model.string(self.model.row("objects", object_)[0]))
        if not line:
            address = (low | high << 32) - (flags & 1)  # a return address: look up the preceding call
            place = address - (start | start_high << 32) + (offset | offset_high << 32)
            base = path[1:-1] if path.startswith("[") else path.rpartition("/")[2]
            return ((f"[{base}+{place % (1 << 64):#x}]" if path else f"{address:#x}", path),)
        found = []
        while line:
            function, _, _, line = self.model.row("lines", line)
            found.append(self.function(function, object_))
        return tuple(found)

    def labels(self, index: int) -> Iterator[tuple[str, str]]:
        while index:
            index, key, string, low, high, _ = self.model.row("labels", index)
            number = low | high << 32
            value = text(self.model.string(string)) if string else str(number - (number >> 63 << 64))
            yield text(self.model.string(key)), value

    def _plain(self, batch: Batch, part: int) -> Iterator[Row]:
        columns: dict[str, Any] = {name: batch[name] for name in batch.columns}
        values = [batch.values(k) for k in range(batch.c.n_values)]
        model = self.model
        for i in range(len(batch)):
            at = {name: column[i] for name, column in columns.items()}
            costs = tuple(column[i] for column in values)
            if batch.view == "graph":
                ids = {"file": model.string(at["file"]), "callee": model.get_function(at["callee"])}
                ids["target_file"] = model.string(at["target_file"])
                says = (*(at | ids | {"function": model.get_function(at["function"])}).values(), costs)
                thread = model.parts[batch.part].thread
                yield Row(part, thread, 0, (), 0, self.function(at["function"]), (), says)
                continue
            thread = model.row("threads", at["thread"])[2] if at["thread"] else None
            if batch.view == "timeline":
                op = at["op"]
                has_payload = op in (reference.CUSTOM, reference.TYPED)
                has_function = op <= reference.ENTER_ARGS
                aux = batch.payload(i) if has_payload else at["aux"] if op > reference.ENTER_ARGS else 0
                says = (at["cpu"], aux, 0 if has_function else at["function"])
                function = self.function(at["function"]) if has_function else ("", "")
                yield Row(part, thread, at["time"], (), op, function, (), says)
                continue
            stack = []
            node = at["stack"]
            while node:
                node, frame = model.row("stacks", node)
                stack.append(self.frame(frame))
            yield Row(part, thread, at["time"], tuple(self.labels(at["label"])), 0, ("", ""), tuple(stack), costs)
