"""Timeline -> graph and timeline -> stacks: the stack machine (csrc/bridges/fold/fold.h).

All sums are exact.  The times of single calls are lost.  Arguments and events are counted in the log as not
representable.  CPUs can become labels of stacks: the time between two records of a thread is spent on the CPU of the
first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from copy import copy
from itertools import chain, groupby

from fastprof.bridges import MAX_MEMORY, PER_THREAD
from fastprof.bridges.fold.accumulators import Accumulator, Arcs, Drained, Paths
from fastprof.bridges.fold.reported import REPORTED
from fastprof.bridges.labels import log_missing_labels, separating_labels
from fastprof.bridges.rows.label import labelled_rows
from fastprof.bridges.rows.nest import Clocks
from fastprof.bridges.sums.aggregate import merge as one_graph
from fastprof.bridges.sums.sorted_runs import Merge
from fastprof.bridges.sums.sum import to_sum
from fastprof.core._c import ffi, lib
from fastprof.core._typing import (
    TYPE_CHECKING,
    ClassVar,
    Pointer,
    fp_batch,
    fp_err,
    fp_fold,
    fp_fold_out,
    fp_merge,
    fp_top_durations,
    fp_top_sums,
)
from fastprof.core.c_memory import owned
from fastprof.core.engine import EVERYTHING, Capabilities, batches_of
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options, cores_of
from fastprof.core.parts import labels_of, merge_parts
from fastprof.core.version import __version__

_STACKS = 1 << 14  # maximum number in the model at a time, unless the target needs more


def _value_types(in_ticks: bool) -> list[ValueType]:
    """The value types made of a timeline, by enum fp_fold_column."""
    return [ValueType("time", "ticks" if in_ticks else "nanoseconds"), ValueType("calls", "count")]


def to_graph(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """Call arcs in one part, or one per thread with `per_thread`.

    Each input is a part.  Parts are folded separately, because sums of ticks are rounded to nanoseconds, and then added
    up, so the result does not depend on their number.

    Values: calls, and time in nanoseconds, or in ticks with `time_unit` ticks or an unknown clock.
    """
    by, repairs = lib.FP_FOLD_BY_THREAD * options[PER_THREAD], _Repairs(model, log)
    one, rows = _of_parts(batches, lambda: _Graph(model, options, log, "graph", by, repairs), _Graph.rows)
    if one is not None:
        yield from one.rows()
        return
    yield from rows if options[PER_THREAD] else one_graph(rows, model, options, Log())


def to_functions(
    batches: Iterable[Batch],
    model: Model,
    options: Options,
    log: Log,
    costs: Costs,
    durations: fp_top_durations | None = None,
) -> Iterator[Batch]:
    """`to_graph`, which also adds to `costs` the inclusive costs of functions: in cycles, arcs do not determine them.

    `costs` returns, for the value types, pairs of a struct fp_top_sums * and the column to add."""
    functions = Functions(model, options, log, durations)
    functions.graph.read(batches)
    yield from functions.rows(costs)


class Functions:
    """`to_graph` for rows that also go to another bridge, on one core: pull all of `through` first, then `rows`."""

    def __init__(self, model: Model, options: Options, log: Log, durations: fp_top_durations | None = None) -> None:
        by = lib.FP_FOLD_INCLUSIVE | lib.FP_FOLD_BY_THREAD * options[PER_THREAD]
        by |= lib.FP_FOLD_DURATIONS * (durations is not None)
        self.graph = _Graph(model, options, log, "graph", by, _Repairs(model, log))
        self._durations = durations

    def through(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Fold batches and pass them on."""
        return self.graph.passed(batches)

    def rows(self, costs: Costs) -> Iterator[Batch]:
        return self.graph.rows(costs, self._durations)


def to_stacks(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The context tree, each call path once, with the values of `to_graph`.

    `--labels` and `--per-thread` separate threads, processes or CPUs.  If the target holds only names of functions,
    paths with the same names are merged.
    """
    separating = separating_labels(options, holds)
    by = lib.FP_FOLD_BY_TID * ("thread" in separating) | lib.FP_FOLD_BY_PID * ("process" in separating)
    by |= lib.FP_FOLD_BY_CPU * ("cpu" in separating) | lib.FP_FOLD_BY_NAME * (not holds.places)
    repairs = _Repairs(model, log)
    one, rows = _of_parts(
        batches, lambda: _Stacks(model, options, log, "stacks", by, repairs), lambda stacks: stacks.rows(True)
    )
    if one is not None:
        log_missing_labels(options, holds, log, one.labels())
        yield from one.rows(holds.keeps_stacks)
        return
    yield from to_sum(rows, model, options, log, holds)


def repaired(batches: Iterable[Batch], model: Model, log: Log) -> None:
    """Fold rows for their repairs alone.  Arcs, because there are far fewer than call paths."""
    repairs = _Repairs(model, log)
    _, later = _of_parts(batches, lambda: _Graph(model, Options(), log, "graph", 0, repairs), lambda graph: iter(()))
    for _ in later:
        pass


if TYPE_CHECKING:
    from typing import TypeVar

    Costs = Callable[[list[ValueType]], Iterable[tuple[fp_top_sums, int]]]
    M = TypeVar("M", bound="_Machine")


def _of_parts(
    batches: Iterable[Batch], new: Callable[[], M], rows: Callable[[M], Iterator[Batch]]
) -> tuple[M | None, Iterator[Batch]]:
    """A machine that has read all rows if they are one part; otherwise the rows of one part after the other.

    Only one machine is in memory at a time: a part is read after the rows of the previous one are written.
    """

    def read(part: Iterable[Batch]) -> M:
        machine = new()
        machine.read(part)
        return machine

    parts = groupby(batches, lambda batch: batch.part)
    _, part = next(parts, (0, ()))
    first, second = read(part), next(parts, None)
    if second is None:
        return first, iter(())
    later = (rows(read(part)) for _, part in chain([second], parts))
    return None, chain(rows(first), chain.from_iterable(later))


class _Repairs:
    """The repairs of each part, including those of the source that an archive was made from."""

    def __init__(self, model: Model, log: Log) -> None:
        self._model, self._log = model, log
        self._before, self._first = self._all(), True

    def _all(self) -> Counter[str]:
        return Counter(self._log.repairs) + Counter(self._log.facts.get("recorded_repairs", {}))

    def since(self) -> dict[str, int]:
        """Counts since the last call; all counts if there is only one input, which may have been opened earlier."""
        now = self._all()
        found = now if self._first and len(self._model.inputs) == 1 else now - self._before
        self._before, self._first = now, False
        return dict(sorted(found.items()))


class _Check:
    """Raises the error of a negative status.  Accumulators refer to this instead of their machine, so memory and files
    are freed when the machine is dropped."""

    in_ticks = True  # whether times are

    def __init__(self, model: Model, target: str) -> None:
        self._model, self._target = model, target

    def __call__(self, status: int, err: fp_err) -> int:
        types = _value_types(self.in_ticks)
        return check_sums(status, err, self._model, f"timeline to {self._target}", types)


class _Machine:
    """One table, or several that divide the threads among them; base of both targets."""

    table: ClassVar[type[Accumulator]]

    def __init__(self, model: Model, options: Options, log: Log, target: str, by: int, repairs: _Repairs) -> None:
        self._model, self._log, self._target, self._by = model, log, target, by
        self._all_repairs = repairs
        self._repairs: dict[str, int] = {}
        self._ticks_per_second = 0  # 0: times are in ticks
        self._check = _Check(model, target)
        self._clocks = Clocks(model, options)
        self._cores = min(cores_of(options), lib.FP_SHARES_MOST)  # one reading thread cannot supply more
        self._limit = options[MAX_MEMORY] // self._cores
        self._shares = ffi.new("struct fp_shares *", {"n": self._cores})
        self._whole = self._new()
        self._sources: dict[int, None] = {}  # parts
        self._common: tuple[int, Part | None] = 0, None  # the number of sources, and their common header
        self._err = ffi.new("struct fp_err *")

    def _new(self, share: int | None = None) -> Accumulator:
        return self.table(self._fold(share), self._limit, self._check, self._model.lock)

    def _fold(self, share: int | None) -> fp_fold:
        what = lib.FP_FOLD_TREE if self._target == "stacks" else lib.FP_FOLD_ARCS
        fold = owned(lib.fp_fold_new(self._model.c, what, self._by), "the stack machine")
        fold.cpu = self._model.intern("cpu")
        if share is not None:
            fold.share, fold.shares = share, self._shares
        return fold

    def read(self, batches: Iterable[Batch]) -> None:
        batches = self._in_one_clock(batches)
        if self._cores == 1:
            for batch in batches:
                self._whole.register()
                self._whole.put(batch)
            self._whole.end()
        else:
            self._read_divided(batches)
        self._log_repairs()
        self._repairs = self._all_repairs.since()

    def passed(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Read batches and pass them on."""
        for batch in batches:
            mine = batch if self._is_in_clock(batch) else batch.copy()
            self._rescale(mine)
            self._whole.register()
            self._whole.put(mine)
            yield batch
        self._whole.end()
        self._log_repairs()
        self._repairs = self._all_repairs.since()

    def _read_divided(self, batches: Iterable[Batch]) -> None:
        from fastprof.bridges.fold.divided import Divided

        whole = self._whole
        divided = Divided(self._shares, self._new, whole, self._model)
        try:
            for batch in batches:
                divided.put(batch)
        except BaseException as error:
            divided.stop(error)
            raise
        divided.end()
        if len(divided.tables) == 1:
            self._whole = divided.tables[0]
            return
        whole.register()
        for table in divided.tables:
            whole.join(table)
        whole.end()

    def _in_one_clock(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches, with times in ticks of the first batch's clock."""
        for batch in batches:
            self._rescale(batch)
            yield batch
        if not self._sources:
            self._log.warn(REPORTED["no-records"])
        self._clocks.log_to(self._log)

    def _is_in_clock(self, batch: Batch) -> bool:
        return not self._sources or self._clocks.of(batch.part) == self._ticks_per_second

    def _rescale(self, batch: Batch) -> None:
        """Convert times to the first batch's clock."""
        clock = self._clocks.of(batch.part)
        if not self._sources:
            self._ticks_per_second, self._check.in_ticks = clock, not clock
        elif clock != self._ticks_per_second:
            self._log.warn(REPORTED["different-clocks"])
            self._check(lib.fp_fold_rescale(batch.c, clock, self._ticks_per_second, self._err), self._err)
        self._sources[batch.part] = None

    def _part(self, group: int) -> Part:
        """A part with the facts common to all targets: threads, times, sources and repairs."""
        model, fold = self._model, self._whole.fold
        part = self._common_part()
        n_threads, first, last = 1, fold.first_time, fold.last_time
        if group:
            row = model.row("threads", group)
            part.pid, part.thread = row[1] or None, row[2]
            part.extra |= model.names.of_thread(row)
            times = ffi.new("uint64_t[2]")
            lib.fp_fold_thread_times(fold, group, times, times + 1)
            first, last = times
        else:
            threads = self._threads()
            n_threads, pids = len(threads), {pid for _, pid, _ in threads if pid}
            part.pid = next(iter(pids)) if len(pids) == 1 else None
        part.extra |= {"threads": n_threads, "ticks": (first, last), "mended": self._repairs}
        return part

    def _input_labels(self) -> tuple[tuple[bytes, bytes], ...]:
        """The labels of the input, which is a single part unless all calls are needed at once."""
        found = {labels_of(self._model.parts[i]) for i in self._sources}
        return found.pop() if len(found) == 1 else ()

    def _common_part(self) -> Part:
        """The merged header of the sources; made once, because there may be a part for each of many threads."""
        n, common = self._common
        if common is None or n != len(self._sources) or not n:
            parts = self._model.parts
            sources = [parts[i] for i in self._sources] or [p for p in parts if "ticks_per_second" in p.extra]
            types = _value_types(not self._ticks_per_second)
            common = merge_parts(sources, types, creator=f"fastprof-{__version__}".encode())
            common.extra = {key: value for key, value in common.extra.items() if key == "merged"}
            self._common = len(self._sources), common
        part = copy(common)
        vars(part).update({name: copy(value) for name, value in vars(common).items()})
        return part

    def _threads(self) -> list[tuple[int, ...]]:
        """The threads that have rows."""
        found, thread = list[tuple[int, ...]](), 0
        while thread := lib.fp_fold_next_thread(self._whole.fold, thread):
            found.append(self._model.row("threads", thread))
        return found

    def _log_repairs(self) -> None:
        stats, log = self._whole.fold.stats, self._log
        log.count_all(REPORTED, stats)
        cpus = stats.calls if stats.cpus and not self._by & lib.FP_FOLD_BY_CPU else 0
        log.count(REPORTED["cpus"], cpus)
        log.rows["calls"] += stats.calls


class _Graph(_Machine):
    table = Arcs
    _whole: Arcs
    _named: Pointer[int]  # memory that C refers to

    def rows(self, costs: Costs | None = None, durations: fp_top_durations | None = None) -> Iterator[Batch]:
        """One part per group (a thread, or 0: all).  A first pass over the nodes finds the totals."""
        err, check, whole = self._err, self._check, self._whole
        with ExitStack() as threads:
            arcs = whole.arcs(self._cores > 1, threads)
            groups: list[tuple[int, list[int]]] = []
            nodes = whole.nodes()
            out = self._out(nodes, arcs)
            for to, column in costs(_value_types(not self._ticks_per_second)) if costs else ():
                check(lib.fp_top_timeline(whole.fold, out, column, to, err), err)
            if durations is not None:
                check(lib.fp_top_summarize(whole.fold, out, durations, err), err)
            while status := check(lib.fp_fold_totals(out, err), err):
                if status == lib.FP_MORE:
                    nodes.feed()
                else:
                    groups.append((out.group, list(out.total)))
            nodes = whole.nodes()
            out = self._out(nodes, arcs)

            def pull(batch: fp_batch) -> int:
                while (status := check(lib.fp_fold_graph(out, batch, err), err)) == lib.FP_MORE:
                    nodes.feed()
                    arcs.feed()
                return status

            labels = self._input_labels()
            for group, total in groups or [(0, [0, 0])]:
                part = self._part(group)
                part.summary = total
                if labels:
                    part.extra["input_labels"] = labels
                number = self._model.add_part(part)
                if group:
                    self._model.names.of_parts[number] = group
                yield from batches_of("graph", 2, number, pull)

    def _out(self, nodes: Merge[fp_merge], arcs: Merge[fp_merge]) -> fp_fold_out:
        out = ffi.new("struct fp_fold_out *")
        out.n_named = self._model.count("functions")
        out.named = self._named = ffi.new("uint32_t[]", out.n_named)
        out.model, out.ticks_per_second = self._model.c, self._ticks_per_second
        out.unknown_file = self._model.intern("???")
        out.nodes, out.arcs = nodes.c, arcs.c
        return out


class ContextTree(_Machine):
    """Call paths of each thread, passed to `take` as the tree of a struct fp_fold * whenever there are many.  One core
    folds the rows."""

    def __init__(self, model: Model, options: Options, take: Callable[[fp_fold], None]) -> None:
        self._take = take
        super().__init__(model, options, Log(), "stacks", lib.FP_FOLD_BY_THREAD, _Repairs(model, Log()))

    def _new(self, share: int | None = None) -> Accumulator:
        return Drained(self._fold(share), self._check, self._model.lock, self._take)

    @property
    def ticks_per_second(self) -> int:
        """0: times stay in ticks."""
        return self._ticks_per_second


class _Stacks(_Machine):
    table = Paths
    _whole: Paths

    def labels(self) -> set[str]:
        """The LABEL_WORDS that the inputs have."""
        threads = self._threads()
        return {"cpu", *("process" for _, pid, _ in threads if pid), *("thread" for _, _, tid in threads if tid)}

    def rows(self, keep_stacks: bool) -> Iterator[Batch]:
        model, err = self._model, self._err
        part = self._part(0)
        part.extra["default_sample_type"] = "time"
        if self._by & lib.FP_FOLD_BY_CPU:
            part.extra["labels"] = ("cpu",)
        with ExitStack() as threads:
            merge = self._whole.merge(threads if self._cores > 1 and self._whole.has_runs() else None)
            merge.c.once = not keep_stacks

            def pull(batch: fp_batch) -> int:
                if model.count("stacks") > _STACKS and not keep_stacks:
                    model.empty_stacks()
                while True:
                    status = lib.fp_fold_stacks(merge.c, self._ticks_per_second, batch, err)
                    if self._check(status, err) != lib.FP_MORE:
                        return int(status)
                    merge.feed()

            rows = batches_of("stacks", 2, model.add_part(part), pull)
            labels = dict(self._input_labels())
            yield from labelled_rows(rows, model, labels) if labels else rows
