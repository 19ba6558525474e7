"""The product's results for an input, in the terms of the reference models."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fastprof import formats, plan
from fastprof.core import source as fastprof_source
from fastprof.core.engine import EVERYTHING, Capabilities, Reader, read
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from tests.reference.fold import Folded
from tests.reference.xray import CUSTOM, ENTER, ENTER_ARGS, EXIT, TAIL, TYPED, Record

OPS = (ENTER, EXIT, TAIL, ENTER_ARGS, "argument", CUSTOM, TYPED, "buffer")


class Opened(NamedTuple):
    reader: Reader
    model: Model
    log: Log


def open_input(
    data: bytes | Path, options: Options | None = None, window: int | None = None, from_: str | None = None
) -> Opened:
    """A reader over `data`, whose source's window starts at `window` bytes."""
    options = options or Options()
    before = fastprof_source.WINDOW
    fastprof_source.WINDOW = window or before
    try:
        if isinstance(data, Path):
            source = Source(str(data))
        else:
            source = Source(io.BytesIO(data) if isinstance(data, bytes) else data, "input")
    finally:
        fastprof_source.WINDOW = before
    model, log = Model(), Log()
    format_ = formats.get(from_) if from_ else formats.detect(source)
    assert format_.reader
    return Opened(format_.reader_class()(source, model, options, log), model, log)


def batches(opened: Opened, capacity: int | None = None) -> Iterator[Batch]:
    return read(opened.reader, capacity)


def timeline(
    data: bytes | Path, options: Options | None = None, *, capacity: int | None = None, window: int | None = None
) -> tuple[dict[tuple[int, int], list[Record]], Log]:
    """Records by (pid, tid), arguments joined to their call, and the report.  Function names must be `#id`."""
    opened = open_input(data, options, window)
    model = opened.model
    names: dict[int, int] = {}
    threads: dict[tuple[int, int], list[Record]] = {}
    for batch in batches(opened, capacity):
        columns: dict[str, Any] = {name: batch[name] for name in batch.columns}
        for i in range(len(batch)):
            op = OPS[columns["op"][i]]
            if op == "buffer":
                continue
            _, pid, tid = model.row("threads", columns["thread"][i])
            records = threads.setdefault((pid, tid), [])
            if op == "argument":
                last = records[-1]
                joined = ENTER_ARGS if last.op == ENTER else last.op
                records[-1] = last._replace(args=(*last.args, columns["aux"][i]), op=joined)
                continue
            function = columns["function"][i]
            if op in (CUSTOM, TYPED):
                record = Record(pid, tid, columns["cpu"][i], columns["time"][i], op, 0, (), batch.payload(i), function)
            else:
                if function not in names:
                    names[function] = int(model.get_function(function).name.removeprefix(b"#"))
                record = Record(pid, tid, columns["cpu"][i], columns["time"][i], op, names[function])
            records.append(record)
    return threads, opened.log


class Graph(NamedTuple):
    """A graph in the terms of the reference fold, by function name."""

    self_: dict[bytes, tuple[int, ...]]
    arcs: dict[tuple[bytes, bytes], tuple[int, ...]]  # calls, then the inclusive values
    parts: list[Any]
    log: Log


def folded(expected: Folded) -> tuple[dict[bytes, tuple[int, ...]], dict[tuple[bytes, bytes], tuple[int, ...]]]:
    """The self costs and arcs of a Graph, computed by the reference fold."""
    self_: dict[bytes, tuple[int, ...]] = {b"#%d" % f: (expected.self_ticks[f], n) for f, n in expected.calls.items()}
    arcs: dict[tuple[bytes, bytes], tuple[int, ...]] = {
        (b"#%d" % caller, b"#%d" % callee): (
            n,
            expected.arc_inclusive_ticks[caller, callee],
            expected.arc_inclusive_calls[caller, callee],
        )
        for (caller, callee), n in expected.arc_calls.items()
        if caller is not None
    }
    return self_, arcs


def graph(data: bytes | Path, options: Options | None = None, *, capacity: int | None = None) -> Graph:
    """A timeline folded into a graph; values of all parts summed."""
    opened = open_input(data, options)
    options = options or Options()
    names: dict[int, bytes] = {}
    self_: dict[bytes, tuple[int, ...]] = {}
    arcs: dict[tuple[bytes, bytes], tuple[int, ...]] = {}

    def add(into: dict[Any, tuple[int, ...]], key: Any, values: tuple[int, ...]) -> None:
        into[key] = tuple(a + b for a, b in zip(into.get(key, (0,) * len(values)), values, strict=True))

    def name(function: int) -> bytes:
        if function not in names:
            names[function] = opened.model.get_function(function).name
        return names[function]

    first = len(opened.model.parts)
    made = plan.make([[opened.reader]], plan.End("test", "graph"), options)
    for batch in made.rows(opened.model, opened.log, capacity):
        for i in range(len(batch)):
            values = tuple(batch.values(k)[i] for k in range(2))
            function = name(batch["function"][i])
            if batch["kind"][i] == 0:
                add(self_, function, values)
            else:
                add(arcs, (function, name(batch["callee"][i])), (batch["count"][i], *values))
    return Graph(self_, arcs, opened.model.parts[first:], opened.log)


Context = tuple[tuple[bytes, ...], tuple[Any, ...], tuple[int, ...]]  # names, (pid, tid, CPU) if wanted, values


def contexts(
    data: bytes | Path, options: Options, holds: Capabilities = EVERYTHING, capacity: int | None = None
) -> list[Context]:
    """A timeline as stacks, in the order of their rows; each row is looked up during its batch."""
    opened = open_input(data, options)
    model, found = opened.model, []
    made = plan.make([[opened.reader]], plan.End("test", "stacks", holds), options)
    for batch in made.rows(model, opened.log, capacity):
        rows = zip(batch["stack"], batch["thread"], batch["label"], *(batch.values(k) for k in range(2)), strict=True)
        for stack, thread, label, *values in rows:
            path = []
            while stack:
                stack, frame = model.row("stacks", stack)
                line = model.row("frames", frame)[-1]
                path.append(model.get_function(model.row("lines", line)[0]).name)
            apart: tuple[Any, ...] = model.row("threads", thread)[1:] * bool(thread)
            apart += (model.string(model.row("labels", label)[2]),) * bool(label)
            found.append((tuple(path[::-1]), apart, tuple(values)))
    return found
