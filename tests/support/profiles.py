"""Small profiles as plain Python values: into batches for the bridges, and back out of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fastprof.core._c import lib
from fastprof.core.model import Batch, Model, Part, ValueType, empty


class Fn(NamedTuple):
    """A function by its strings."""

    name: str
    file: str = ""
    object: str = ""
    line: int = 0


class At(NamedTuple):
    """A place in a function: `file` and `line` are those of the code, even if it was inlined."""

    function: Fn
    file: str
    line: int
    address: int = 0


@dataclass(frozen=True)
class Frame:
    """Lines (function, line), innermost inlined first; in [start, limit) of an object, if any."""

    lines: tuple[tuple[Fn, int], ...] = ()
    address: int = 0
    mapping: tuple[str, int, int, int] | None = None
    returns: bool = False


class Sample(NamedTuple):
    """Frames from the root to the leaf."""

    frames: tuple[Frame, ...]
    values: tuple[int, ...]
    thread: int = 0
    label: str = ""
    time: int = 0


class Row(NamedTuple):
    """A row of a graph; `callee` None is a self cost."""

    at: At
    callee: Fn | None
    calls: int
    values: tuple[int, ...]
    target_address: int = 0


def _function(model: Model, f: Fn) -> int:
    return model.function(f.name, f.file, model.object(f.object) if f.object else 0, line=f.line)


def _frame(model: Model, frame: Frame) -> int:
    c, mapping, line = model.c, 0, 0
    if frame.mapping:
        name, start, limit, offset = frame.mapping
        mapping = lib.fp_model_mapping(c, model.object(name), start, limit, offset, 0)
    for function, number in reversed(frame.lines):
        line = lib.fp_model_line(c, _function(model, function), number, 0, line)
    flags = lib.FP_FRAME_RETURN_ADDRESS if frame.returns else 0
    return int(lib.fp_model_frame(c, mapping, frame.address, flags, line))


def value_types(n: int) -> list[ValueType]:
    return [ValueType(f"v{k}", "count") for k in range(n)]


def stacks(
    model: Model, samples: Iterable[Sample], capacity: int = 1000, types: list[ValueType] | None = None
) -> Iterator[Batch]:
    """Stacks batches of one part, reused like a reader's."""
    samples = list(samples)
    types = types or value_types(len(samples[0].values) if samples else 1)
    batch = Batch("stacks", capacity, len(types))
    batch.c.part = model.add_part(Part(value_types=types))
    for sample in samples:
        stack = 0
        for frame in sample.frames:
            stack = lib.fp_model_stack(model.c, stack, _frame(model, frame))
        i = batch.c.n
        batch.c.n += 1
        batch["stack"][i] = stack
        batch["thread"][i] = lib.fp_model_thread(model.c, 0, 7, sample.thread) if sample.thread else 0
        label = lib.fp_model_label(model.c, 0, model.intern("k"), model.intern(sample.label), 0, 0)
        batch["label"][i] = label if sample.label else 0
        batch["time"][i] = sample.time
        for k, value in enumerate(sample.values):
            batch.values(k)[i] = value
        if len(batch) == capacity:
            yield batch
            empty(batch)
    if len(batch):
        yield batch


def graph(
    model: Model,
    rows: Iterable[Row],
    capacity: int = 1000,
    positions: tuple[str, ...] = ("instr", "line"),
    part: Part | None = None,
) -> Iterator[Batch]:
    """Graph batches of one part."""
    rows = list(rows)
    types = value_types(len(rows[0].values) if rows else 1)
    batch = Batch("graph", capacity, len(types))
    part = part or Part()
    part.value_types, part.positions = types, positions
    batch.c.part = model.add_part(part)
    for row in rows:
        i = batch.c.n
        batch.c.n += 1
        batch["kind"][i] = lib.FP_COST if row.callee is None else lib.FP_CALL
        batch["function"][i] = _function(model, row.at.function)
        batch["file"][i] = model.intern(row.at.file)
        batch["line"][i] = row.at.line
        batch["address"][i] = row.at.address
        batch["callee"][i] = _function(model, row.callee) if row.callee else 0
        batch["count"][i] = row.calls
        for k, value in zip(range(len(types)), row.values, strict=True):
            batch.values(k)[i] = value
        if len(batch) == capacity:
            yield batch
            empty(batch)
    if len(batch):
        yield batch


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def fn(model: Model, function: int) -> Fn:
    f = model.get_function(function)
    return Fn(_text(f.name), _text(f.file), _text(f.object), f.line)


def graph_rows(model: Model, batches: Iterable[Batch]) -> list[tuple[int, Row]]:
    """(part, row) of graph batches, in their order."""
    rows = []
    for b in batches:
        for i in range(len(b)):
            at = At(fn(model, b["function"][i]), _text(model.string(b["file"][i])), b["line"][i], b["address"][i])
            callee = fn(model, b["callee"][i]) if b["kind"][i] == lib.FP_CALL else None
            values = tuple(b.values(k)[i] for k in range(b.c.n_values))
            rows.append((b.part, Row(at, callee, b["count"][i], values, b["target_address"][i])))
    return rows


def frame(model: Model, frame_id: int) -> Frame:
    mapping, low, high, flags, line = model.row("frames", frame_id)
    lines = []
    while line:
        function, number, _, line = model.row("lines", line)
        lines.append((fn(model, function), number))
    where = None
    if mapping:
        o, start, start_high, limit, limit_high, offset, offset_high, _ = model.row("mappings", mapping)
        name = _text(model.string(model.row("objects", o)[0]))
        where = (name, start | start_high << 32, limit | limit_high << 32, offset | offset_high << 32)
    return Frame(tuple(lines), low | high << 32, where, bool(flags & lib.FP_FRAME_RETURN_ADDRESS))


def samples(model: Model, batches: Iterable[Batch]) -> list[Sample]:
    """The rows of stacks batches, in their order."""
    out = []
    for b in batches:
        for i in range(len(b)):
            frames: list[Frame] = []
            stack = b["stack"][i]
            while stack:
                stack, frame_id = model.row("stacks", stack)
                frames.insert(0, frame(model, frame_id))
            thread = b["thread"][i]
            tid = model.row("threads", thread)[2] if thread else 0
            out.append(Sample(tuple(frames), tuple(b.values(k)[i] for k in range(b.c.n_values)), tid))
    return out


def add(total: Counter[object], key: object, values: tuple[int, ...]) -> None:
    for k, value in enumerate(values):
        total[key, k] += value
