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

Kept: every sum, call count and jump.  Lost: how many rows a place had, and their
order.  Memory is linear in distinct places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fastprof.bridges import PER_THREAD
from fastprof.bridges.pull import batches_of
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import EVERYTHING, Holds
from fastprof.core.errors import check_sums
from fastprof.core.model import Batch, Model, ValueType
from fastprof.core.options import Options
from fastprof.core.owner import owned
from fastprof.core.parts import match_columns, merge_parts
from fastprof.core.report import Report


def aggregate(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """Each part summed up by itself."""
    table: Table | None = None
    part = -1
    for batch in batches:
        if batch.part != part or table is None:
            if table is not None:
                yield from _summed(table, part, report)
            table, part = Table(model), batch.part
        table.put(batch)
        report.rows["read"] += len(batch)
    if table is not None:
        yield from _summed(table, part, report)


def merge(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """All parts summed up into one; with `--per-thread` those of each thread into one."""
    tables: dict[tuple[Any, Any] | None, Table] = {}
    seen: dict[int, Table] = {}
    for batch in batches:
        if batch.part not in seen:
            part = model.parts[batch.part]
            thread = (part.named("pid"), part.named("thread")) if options[PER_THREAD] else None
            seen[batch.part] = tables.setdefault(thread, Table(model))
        seen[batch.part].put(batch)
        report.rows["read"] += len(batch)
    for table in tables.values() or [Table(model)]:
        parts = [model.parts[index] for index, its in seen.items() if its is table] or model.parts
        yield from _summed(table, model.add_part(merge_parts(parts, table.value_types)), report)


def lines(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """Self costs by file, function name and line, of all parts and objects together, sorted by these.

    Loses, and counts: calls and jumps.  Loses: objects, addresses.
    """
    table = Table(model, lines=True)
    parts: dict[int, None] = {}
    for batch in batches:
        parts[batch.part] = None
        table.put(batch)
    sources = [model.parts[i] for i in parts] or model.parts[-1:]
    index = model.add_part(merge_parts(sources, table.value_types))
    yield from table.batches(index, _rank_by_name(model))
    report.not_representable.add("calls-and-jumps", "calls and jumps", table.dropped)


def _summed(table: Table, part: int, report: Report) -> Iterator[Batch]:
    for batch in table.batches(part):
        report.rows["summed up"] += len(batch)
        yield batch


class Table:
    """The sums of many graph batches.  Columns are the value types of all parts (core/parts.py matches them).

    `lines` keeps only self costs by file, function name and line.
    Errors: FastprofError when a sum does not fit into 64 bits.
    """

    def __init__(self, model: Model, *, lines: bool = False) -> None:
        self._model = model
        self.value_types: list[ValueType] = []
        what = lib.FP_AGGREGATE_LINES if lines else lib.FP_AGGREGATE_GRAPH
        self._c = owned(lib.fp_aggregate_new(model.c, what), lib.fp_aggregate_free, "the sums of a graph")
        self._err = ffi.new("struct fp_err *")
        self._columns: dict[int, Any] = {}  # of each part: where its values go

    def put(self, batch: Batch) -> None:
        columns = self._columns.get(batch.part)
        if columns is None:
            part = self._model.parts[batch.part]
            columns = match_columns(part, len(part.value_types), self.value_types)
            self._columns[batch.part] = columns
        status = lib.fp_aggregate_put(self._c, batch.c, columns, self._err)
        check_sums(status, self._err, self._model, "sums of a graph", self.value_types)

    @property
    def dropped(self) -> int:
        """Calls and jumps that a table of lines has no room for."""
        return int(lib.fp_aggregate_dropped(self._c))

    def batches(self, part: int, rank: list[int] | None = None) -> Iterator[Batch]:
        """The rows, as batches of `part`: functions as first seen, or by `rank`, one number for each
        function of the model and all different."""
        order = ffi.NULL if rank is None else ffi.new("uint32_t[]", rank)
        if lib.fp_aggregate_finish(self._c, order):
            raise MemoryError("no memory to sort rows")
        yield from batches_of("graph", len(self.value_types), part, partial(lib.fp_aggregate_pull, self._c))


def _rank_by_name(model: Model) -> list[int]:
    """A place for each function: by file, then name, as bytes."""
    n = model.count("functions")
    keys = []
    for i in range(n):
        _, file, name, *_ = model.row("functions", i)
        keys.append((model.string(file), model.string(name), i))
    rank = [0] * n
    for place, (_, _, i) in enumerate(sorted(keys)):
        rank[i] = place
    return rank
