"""Stacks -> stacks: several inputs summed up into one profile (csrc/fp_sum.h)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastprof._core import ffi, lib
from fastprof.bridges.common import columns_of
from fastprof.engine import CAPACITY, Options, Report
from fastprof.errors import check
from fastprof.model import Batch, Model, Part, ValueType


def to_sum(batches: Iterable[Batch], model: Model, options: Options, report: Report) -> Iterator[Batch]:
    """One part with every distinct (stack, labels, thread) once.

    Value types are matched by name and unit; those of one input only are 0
    elsewhere.  Facts of the inputs that add up (durations) are summed, of
    times the earliest is kept, of periods the longest.
    """
    sums = lib.fp_sum_new()
    if not sums:
        raise MemoryError("no memory to sum up stacks")
    sums = ffi.gc(sums, lib.fp_sum_free)
    err = ffi.new("struct fp_err *")
    events: list[ValueType] = []
    columns: dict[int, Any] = {}
    for batch in batches:
        if batch.part not in columns:
            columns[batch.part] = columns_of(model.parts[batch.part], batch.c.n_values, events)
            if lib.fp_sum_set_values(sums, len(events)):
                raise MemoryError("no memory to sum up stacks")
        check(lib.fp_sum_put(sums, batch.c, columns[batch.part], err), err, "stacks", "sum")
    if sums.timed:
        report.unsaid["times of samples"] += sums.timed
    out = Batch("stacks", CAPACITY["stacks"], len(events))
    out.c.part = model.add_part(_part([model.parts[i] for i in columns], events))
    status = lib.FP_FULL
    while status == lib.FP_FULL:
        status = lib.fp_sum_pull(sums, out.c)
        yield out
        out.reset()


def _part(sources: list[Part], events: list[ValueType]) -> Part:
    part = Part(value_types=events)
    for source in sources:
        for line in source.descriptions:
            if line not in part.descriptions:
                part.descriptions.append(line)
        for comment in source.comments:
            if comment not in part.comments:
                part.comments.append(comment)
        for key, value in source.extra.items():
            if key not in part.extra:
                part.extra[key] = value
            elif key in _COMBINE:
                part.extra[key] = _COMBINE[key](part.extra[key], value)
    pids = {source.pid for source in sources}
    part.pid = pids.pop() if len(pids) == 1 else None
    return part


_COMBINE: dict[str, Any] = {
    "duration_ns": lambda a, b: a + b,
    "time_ns": lambda a, b: min(a, b) or max(a, b),
    "period": max,
}
