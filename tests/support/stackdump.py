"""Read a stacks profile whole, as plain Python values to compare."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fastprof import formats
from fastprof.core.engine import read, write
from fastprof.core.log import Log
from fastprof.core.model import Model, Part
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.source import Source


class Dribble(io.BytesIO):
    """Bytes that arrive at most `chunk` at a time."""

    def __init__(self, data: bytes, chunk: int | None = None) -> None:
        super().__init__(data)
        self.chunk = chunk

    def readinto(self, into: Any) -> int:
        view = memoryview(into)
        return super().readinto(view[: self.chunk] if self.chunk else view)


Frame = tuple[Any, ...]  # (mapping or None, address, flags, ((name, system name, file, first line, line, column), ...))
Row = tuple[tuple[Frame, ...], tuple[Any, ...], tuple[int, ...]]  # leaf first; labels; values


@dataclass
class Dump:
    rows: list[Row]
    part: Part
    log: Log
    mappings: list[tuple[Any, ...]] = field(default_factory=list)

    def summed(self) -> Counter[Any]:
        total: Counter[Any] = Counter()
        for stack, labels, values in self.rows:
            for k, value in enumerate(values):
                total[stack, labels, k] += value
        return total


class _Names:
    """Frames and labels of a model as values, each looked up once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._frames: dict[int, Frame] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {0: ()}

    def mapping(self, index: int) -> tuple[Any, ...]:
        object_id, *words = self.model.row("mappings", index)
        name, build_id = (self.model.string(s) for s in self.model.row("objects", object_id))
        start, limit, offset = (words[k] | words[k + 1] << 32 for k in (0, 2, 4))
        return name, build_id, start, limit, offset, words[6]

    def frame(self, index: int) -> Frame:
        if index not in self._frames:
            mapping, low, high, flags, line = self.model.row("frames", index)
            lines = []
            while line:
                function, number, column, line = self.model.row("lines", line)
                f = self.model.get_function(function)
                lines.append((f.name, f.system_name or f.name, f.file, f.line, number, column))
            self._frames[index] = (self.mapping(mapping) if mapping else None, low | high << 32, flags, tuple(lines))
        return self._frames[index]

    def stack(self, node: int) -> tuple[Frame, ...]:
        if node not in self._stacks:
            parent, frame = self.model.row("stacks", node)
            self._stacks[node] = (self.frame(frame), *self.stack(parent)) if parent < node else ()
        return self._stacks[node]

    def labels(self, label: int) -> tuple[Any, ...]:
        found = []
        while label:
            label, key, string, low, high, unit = self.model.row("labels", label)
            number = low | high << 32
            number -= (number >> 63) << 64
            found.append((self.model.string(key), self.model.string(string), number, self.model.string(unit)))
        return tuple(found)


def dump(
    data: bytes,
    format_name: str,
    *,
    chunk: int | None = None,
    capacity: int | None = None,
    options: Options | None = None,
) -> Dump:
    model, log = Model(), Log()
    reader_of = formats.get(format_name).reader_class()
    with Source(Dribble(data, chunk), name="test") as source:
        reader = reader_of(source, model, options or Options(), log)
        names = _Names(model)
        rows: list[Row] = []
        for batch in read(reader, capacity):
            stacks, labels = batch["stack"], batch["label"]
            columns = [batch.values(k) for k in range(batch.c.n_values)]
            for i in range(len(batch)):
                values = tuple(column[i] for column in columns)
                rows.append((names.stack(stacks[i]), names.labels(labels[i]), values))
    mappings = [names.mapping(i) for i in range(1, model.count("mappings"))]
    return Dump(rows, model.parts[0] if model.parts else Part(), log, mappings)


def rewrite(
    data: bytes, from_: str, to: str, options: Options | None = None, capacity: int | None = None
) -> tuple[bytes, Log]:
    """`data`, converted and not compressed."""
    options = options or Options()
    model, log = Model(), Log()
    reader_of, writer_of = formats.get(from_).reader_class(), formats.get(to).writer_class()
    out = io.BytesIO()
    with Source(Dribble(data), name="test") as source:
        sink = Sink(out)
        sink.gzip = lambda **_: None  # type: ignore[method-assign]
        write(read(reader_of(source, model, options, log), capacity), writer_of(model, sink, options, log))
    return out.getvalue(), log
