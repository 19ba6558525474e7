"""Graph -> graph: rows of the same place become one row (csrc/bridges/aggregate.h).

    fn=main              fn=main
    10 5                 10 8
    cfn=f          ->    cfn=f
    calls=1 3            calls=3 3
    10 40                10 90
    fn=f                 fn=f
    3 40                 3 90
    fn=main
    10 3
    cfn=f
    calls=2 3
    10 50
    fn=f
    3 50

Kept: every sum, call count and jump.  Lost: how often and in which order a
place was written.  Memory is linear in distinct places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from fastprof.core._typing import Any
from fastprof.core.engine import Options, Report
from fastprof.core.model import Batch, Model
from fastprof.core.sums import Table, merged_part


def aggregate(batches: Iterable[Batch], model: Model, options: Options, report: Report) -> Iterator[Batch]:
    """Each part summed up by itself."""
    table: Table | None = None
    part = -1
    for batch in batches:
        if batch.part != part or table is None:
            if table is not None:
                yield from _summed(table, part, report)
            table, part = Table(model, by_position=True), batch.part
        table.put(batch)
        report.rows["read"] += len(batch)
    if table is not None:
        yield from _summed(table, part, report)


def merge(streams: Iterable[Iterable[Batch]], model: Model, options: Options, report: Report) -> Iterator[Batch]:
    """All parts of several streams summed up into one part; with `per_thread` those of each thread into one.

    Events are matched by name.  What the parts agree on (creator, command, pid, ...) is kept.
    """
    tables: dict[tuple[Any, Any] | None, Table] = {}
    seen: dict[int, Table] = {}
    for batch in chain.from_iterable(streams):
        if batch.part not in seen:
            part = model.parts[batch.part]
            thread = (part.named("pid"), part.named("thread")) if options.per_thread else None
            seen[batch.part] = tables.setdefault(thread, Table(model))
        seen[batch.part].put(batch)
        report.rows["read"] += len(batch)
    for table in tables.values() or [Table(model)]:
        parts = [model.parts[index] for index, its in seen.items() if its is table] or model.parts
        yield from _summed(table, model.add_part(merged_part(parts, table.value_types)), report)


def _summed(table: Table, part: int, report: Report) -> Iterator[Batch]:
    for batch in table.batches(part):
        report.rows["summed up"] += len(batch)
        yield batch
