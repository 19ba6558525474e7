"""Graph -> graph: rows at the same position are added up (csrc/bridges/sums/aggregate.h).

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

Kept: every sum, call count and jump.  Lost: how many rows a position had.  Functions are sorted by object, file and
name, the rows of a function by address or line, so the result does not depend on the order of the inputs.

Memory: `--max-memory`, plus tables that grow with the names.  Beyond it, sorted runs go to a temporary file and are
merged at the end; the result is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from fastprof.bridges import MAX_MEMORY, PER_THREAD, keeps_input_labels
from fastprof.bridges.sums.reported import REPORTED
from fastprof.bridges.sums.sorted_runs import Runs
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, Pointer, fp_aggregate
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import CAPACITY, EVERYTHING, Capabilities
from fastprof.core.errors import OutOfOrder, check_sums
from fastprof.core.log import Log
from fastprof.core.messages import counted
from fastprof.core.model import Batch, Model, Part, ValueType, empty
from fastprof.core.options import Options
from fastprof.core.parts import in_any_order, labels_of, match_columns, merge_parts
from fastprof.core.spill import Spilled

_ORDERING = 36  # bytes for each name, while names are ordered (csrc/bridges/sums/name_order.c)


def aggregate(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """Add up each part separately."""
    table: Table | None = None
    part = -1
    for batch in batches:
        if batch.part != part or table is None:
            if table is not None:
                yield from _summed(table, part, log)
            table, part = Table(model, options[MAX_MEMORY]), batch.part
        table.put(batch)
        log.rows["rows_read"] += len(batch)
    if table is not None:
        yield from _summed(table, part, log)


def merge(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """Add up all parts into one for each set of labels of inputs; with `--per-thread`, also for each thread."""
    tables: dict[tuple[Any, Any], Table] = {}
    seen: dict[int, Table] = {}
    last: Table | None = None
    spilled = Spilled()  # one file for all, because open files are limited
    held = 0  # bytes of the other tables that are in memory
    calls: dict[int, int] = {}  # by part: fp_aggregate_calls of its rows so far
    for batch in batches:
        if batch.part not in seen:
            part = model.parts[batch.part]
            thread = (part.named("pid"), part.named("thread")) if options[PER_THREAD] else None
            key = thread, labels_of(part) if keeps_input_labels("graph", holds) else ()
            if key not in tables:
                tables[key] = Table(model, options[MAX_MEMORY], spilled=spilled)
            seen[batch.part] = tables[key]
        table = seen[batch.part]
        if table is not last:
            # all tables share the limit: there may be as many as inputs
            if last is not None and (held := held + last.nbytes) > options[MAX_MEMORY]:
                held -= last.nbytes
                last.release()
            held -= table.nbytes
            last = table
        if (before := calls.get(batch.part, 0)) < 2:
            calls[batch.part] = max(before, lib.fp_aggregate_calls(batch.c))
        table.put(batch)
        log.rows["rows_read"] += len(batch)
    of_others = Counter(calls.values())
    if of_others[1] and of_others[2]:
        profiles = counted(of_others[1] + of_others[2], "profile")
        log.warn(REPORTED["uncounted-calls"], n=of_others[2], profiles=profiles)
    if not tables:
        tables[None, ()] = Table(model, options[MAX_MEMORY])
    for _, table in sorted(tables.items(), key=_by_labels):
        parts = [model.parts[index] for index, its in seen.items() if its is table] or model.parts
        yield from _summed(table, model.add_part(merge_parts(parts, table.in_any_order())), log)


def _by_labels(of: tuple[tuple[Any, Any], Table]) -> tuple[Any, list[tuple[bool, bool, Any]]]:
    """Sort key: labels, then threads: unknown ones first, then numbers, then texts."""
    thread, labels = of[0]
    return labels, [(value is not None, isinstance(value, bytes), value or 0) for value in thread or ()]


def lines(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """Self costs by file, function name and line, of all parts and objects together.

    Loses, and counts: calls and jumps.  Loses: objects, addresses.
    """
    table = Table(model, options[MAX_MEMORY], lines=True)
    parts: dict[int, None] = {}
    for batch in batches:
        parts[batch.part] = None
        table.put(batch)
    sources = [model.parts[i] for i in parts] or model.parts[-1:]
    yield from table.batches(model.add_part(merge_parts(sources, table.in_any_order())))
    log.count(REPORTED["calls-and-jumps"], table.dropped)


def lines_in_order(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """`lines` for one input whose rows are sorted already: each is passed on immediately.

    Errors: OutOfOrder, possibly after many rows.
    """
    table = Table(model, 0, lines=True)
    part: int | None = None
    for batch in batches:
        if not table.in_order(batch) or batch.part != (batch.part if part is None else part):
            raise OutOfOrder
        part = batch.part
        yield batch


def merge_lines_in_order(
    inputs: list[Iterator[Batch]], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """`lines` for several sorted inputs: sums are passed on while all inputs are read (lines_merge.h).

    Errors: OutOfOrder, possibly after many rows; also if value types or sums differ, which only `lines` handles.
    """
    c = owned(lib.fp_lines_merge_new(model.c, len(inputs)), "the merge of lines")
    tables = [Table(model, 0, lines=True) for _ in inputs]
    lent: list[Batch | None] = [None] * len(inputs)  # C holds their addresses
    parts: list[Part | None] = [None] * len(inputs)

    def give(i: int) -> None:
        for rows in inputs[i]:
            part = model.parts[rows.part]
            if parts[i] not in (None, part) or rows.c.n_values != len(part.value_types) or not tables[i].in_order(rows):
                raise OutOfOrder
            parts[i] = part
            if len(rows):
                lent[i] = rows
                lib.fp_lines_merge_put(c, i, rows.c)
                return
        lib.fp_lines_merge_put(c, i, ffi.NULL)

    for i in range(len(inputs)):
        give(i)
    sources = [part for part in parts if part is not None]
    types = sources[0].value_types if sources else []
    if any(source.value_types != types for source in sources):
        raise OutOfOrder
    merged = merge_parts(sources, types)
    batch = Batch("graph", CAPACITY["graph"], len(types))
    batch.c.part = model.add_part(merged)
    needs = ffi.new("uint32_t *")
    while status := lib.fp_lines_merge_pull(c, batch.c, needs):
        if status < 0:
            raise OutOfOrder
        if status == lib.FP_MORE:
            give(needs[0])
        else:
            yield batch
            empty(batch)
    vars(merged).update(vars(merge_parts(sources, types)))  # all files have been read to their ends
    yield batch


def _summed(table: Table, part: int, log: Log) -> Iterator[Batch]:
    for batch in table.batches(part):
        log.rows["rows_summed"] += len(batch)
        yield batch


class Table:
    """The sums of many graph batches.  Columns are the value types of all parts (core/parts.py matches them).

    `max_memory`: bytes; the excess goes to a temporary file.  `lines` keeps only self costs by file, function name
    and line.  Rows come out by object, file and name.
    Errors: FastprofError when a sum does not fit into 64 bits.
    """

    def __init__(self, model: Model, max_memory: int, *, lines: bool = False, spilled: Spilled | None = None) -> None:
        self._model = model
        self._max_memory = max_memory
        self.value_types: list[ValueType] = []
        self._mode = lib.FP_AGGREGATE_LINES if lines else lib.FP_AGGREGATE_GRAPH
        self._c = self._new()
        self._err = ffi.new("struct fp_err *")
        self._columns: dict[int, Pointer[int]] = {}  # by part: the column of each of its values
        self._order: list[int] = []  # of the output columns, if different
        self._runs = Runs(1)
        self._runs.file = spilled or self._runs.file

    def _new(self) -> fp_aggregate:
        return owned(lib.fp_aggregate_new(self._model.c, self._mode), "the sums of a graph")

    @property
    def nbytes(self) -> int:
        """Bytes of rows in memory."""
        return int(self._c.bytes)

    def release(self) -> None:
        """Spill the rows of a graph, and free their memory."""
        self._spill()
        self._c = self._new()
        self.widen(self.value_types)

    def widen(self, value_types: list[ValueType]) -> None:
        """Add columns for these value types after those of earlier rows."""
        self.value_types = [*value_types]
        self._check(lib.fp_aggregate_set_values(self._c, len(value_types), self._err))

    def put(self, batch: Batch, value_types: list[ValueType] | None = None) -> None:
        """Add rows.  `value_types`: replace those of the batch's part."""
        columns = self._columns.get(batch.part)
        if columns is None:
            part = self._model.parts[batch.part] if value_types is None else Part(value_types)
            columns = match_columns(self._model, part, len(part.value_types), self.value_types)
            self._columns[batch.part] = columns
        self._check(lib.fp_aggregate_put(self._c, batch.c, columns, self._err))
        ordering = min(self._max_memory // 2, int(self._model.c.strings.n) * _ORDERING)
        if self._c.bytes > self._max_memory - ordering:
            self._spill()

    def move(self, to: Pointer[int], n: int) -> bool:
        """Move the rows of each function f < n with to[f] != 0 to that function, after the last row.

        These rows must be in their function's own file.  False if some rows were spilled: then nothing is moved.
        """
        if len(self._runs):
            return False
        self._check(lib.fp_aggregate_move(self._c, to, n, self._err))
        return True

    def in_any_order(self) -> list[ValueType]:
        """The value types in an order independent of that of the inputs, which output columns now have."""
        if len(self._model.inputs) == 1:
            return self.value_types
        return self.reorder(in_any_order((self._model.parts[index] for index in self._columns), self.value_types))

    def reorder(self, order: list[int]) -> list[ValueType]:
        """Set the output columns: column k is value type order[k].  Returns the value types in this order."""
        self._order = [] if order == [*range(len(order))] else order
        return [self.value_types[k] for k in order]

    def in_order(self, batch: Batch) -> bool:
        """Whether `batches` would produce exactly these rows.  Replaces their functions by those of lines."""
        return bool(self._check(lib.fp_aggregate_in_order(self._c, batch.c)))

    @property
    def dropped(self) -> int:
        """The number of calls and jumps, which a table of lines cannot hold."""
        return int(self._c.dropped)

    def batches(self, part: int) -> Iterator[Batch]:
        """The rows, as batches of `part`, each valid until the next is requested; at least one, which may be empty."""
        if len(self._runs):
            self._spill()
            windows = _Windows(self._c, self._runs, self._max_memory)
        else:
            windows = None
            self._check(lib.fp_aggregate_finish(self._c, self._err))
        batch = Batch("graph", CAPACITY["graph"], len(self.value_types))
        batch.c.part = part
        while status := self._check(lib.fp_aggregate_pull(self._c, batch.c, self._err)):
            if status == lib.FP_MORE:
                assert windows is not None
                windows.refill()
            else:
                yield self._ordered(batch)
                empty(batch)
        yield self._ordered(batch)

    def _ordered(self, batch: Batch) -> Batch:
        if self._order:
            values = [bytes(batch.values(k)) for k in self._order]
            for k, column in enumerate(values):
                batch.values(k).cast("B")[:] = column
        return batch

    def _check(self, status: int) -> int:
        check_sums(status, self._err, self._model, "sums of a graph", self.value_types)
        return status

    def _spill(self) -> None:
        """Spill the rows in memory as a run; if there are many runs, merge them into one."""
        self._check(lib.fp_aggregate_finish(self._c, self._err))
        self._write(self._runs, None)
        lib.fp_aggregate_empty(self._c)
        if len(self._runs) == lib.FP_AGGREGATE_RUNS:
            merged = Runs(1)
            self._write(merged, _Windows(self._c, self._runs, self._max_memory))
            self._runs = merged

    def _write(self, runs: Runs, windows: _Windows | None) -> None:
        at = ffi.new("size_t *")
        status: int = lib.FP_FULL
        rest = b""  # bytes after the last whole word

        def pull(chunk: Pointer[int], n: int) -> int:
            nonlocal rest, status
            ffi.memmove(chunk, rest, len(rest))
            at[0] = len(rest)
            data = ffi.cast("uint8_t *", chunk)
            while status != lib.FP_DONE:
                status = self._check(lib.fp_aggregate_spill(self._c, data, at, n * 8, self._err))
                if status != lib.FP_MORE:
                    break
                assert windows is not None
                windows.refill()
            whole = at[0] // 8
            rest = bytes(ffi.buffer(data + whole * 8, at[0] - whole * 8))
            if not whole and rest:
                ffi.memmove(chunk, rest.ljust(8, b"\0"), 8)  # shorter than a block: the end
                whole, rest = 1, b""
            return int(whole)

        runs.add(pull)


class _Windows:
    """The windows through which an aggregate reads runs back."""

    def __init__(self, c: fp_aggregate, runs: Runs, max_memory: int) -> None:
        n = len(runs)
        enough(lib.fp_aggregate_merge(c, n))
        self._c, self._runs = c, runs
        self._at = [run.offset for run in runs.runs]
        cap = max(lib.fp_aggregate_room(c) * 2, min(1 << 18, max_memory // n))
        self._memory = [ffi.new("uint8_t[]", cap + 8) for _ in range(n)]
        for window, memory in zip(c.windows[0:n], self._memory, strict=True):
            window.p, window.cap = memory, cap

    def refill(self) -> None:
        i = self._c.to_refill
        window = self._c.windows[i]
        left = window.n - window.pos
        ffi.memmove(window.p, window.p + window.pos, left)
        run = self._runs.runs[i]
        nbytes = min(window.cap - left, run.offset + run.nbytes - self._at[i])
        run.file.read(self._at[i], memoryview(ffi.buffer(window.p + left, nbytes)))
        self._at[i] += nbytes
        window.pos, window.n = 0, left + nbytes
        window.eof = self._at[i] == run.offset + run.nbytes
