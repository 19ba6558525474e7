"""Timeline -> graph and timeline -> stacks: the stack machine (csrc/bridges/fold.h).

Exact.  Arguments and events, which no target can hold, are counted in the report
as not representable.  The times of single calls are lost.  CPUs can become labels of
stacks: the time between two records of a thread is spent on the CPU of the
first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fastprof.bridges import MAX_MEMORY, PER_THREAD, TIME_UNIT, labels_apart, tell_missing_labels
from fastprof.bridges.pull import batches_of
from fastprof.bridges.spill import Merge, Pull, Sorted, Words
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import EVERYTHING, Holds
from fastprof.core.errors import UsageError, check_sums
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.owner import owned
from fastprof.core.parts import merge_parts
from fastprof.core.report import Report
from fastprof.core.version import __version__

# of one arc: struct fp_arc, its share of the index, and of the orders or links when it is sorted
_ARC_BYTES = 48 + 8 + 12
_LEAST_ARCS = 1024  # below that, files would be many and runs short
_MANY_CONTEXTS = 1 << 15  # more than a core's L2 cache holds
_STACKS = 1 << 14  # that the model has at a time, if nobody needs more


def _value_types(tree: bool, in_ticks: bool) -> list[ValueType]:
    """By enum fp_fold_column: of stacks, or of a graph."""
    if tree:
        return [ValueType("time", "ticks" if in_ticks else "nanoseconds"), ValueType("calls", "count")]
    time = ValueType("Ticks", "ticks", "TSC ticks") if in_ticks else ValueType("ns", "nanoseconds", "Nanoseconds")
    return [time, ValueType("Calls", "count", "Number of calls")]


def to_graph(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """Call arcs.  One part, or one a thread with `per_thread`.

    Values: calls, and time in nanoseconds, or in ticks if `time_unit` says so or the clock is unknown.
    """
    arcs = _Arcs(model, options, report, "graph", lib.FP_FOLD_BY_THREAD * options[PER_THREAD])
    arcs.read(batches)
    yield from arcs.rows()


def to_functions(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, costs: Any
) -> Iterator[Batch]:
    """As `to_graph`, and adds to `costs` (struct fp_top *) what each function costs inclusively, which arcs do not say
    when functions call each other in turn."""
    by = lib.FP_FOLD_INCLUSIVE | lib.FP_FOLD_BY_THREAD * options[PER_THREAD]
    arcs = _Arcs(model, options, report, "graph", by)
    arcs.read(batches)
    yield from arcs.rows(costs)


def to_stacks(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """The context tree, each call path once.  Same values.

    Kept apart by thread, process or CPU as `--labels` and `--per-thread` say; by nothing but the names of functions if
    the target holds no more of them.
    """
    apart = labels_apart(options, holds)
    by = lib.FP_FOLD_BY_TID * ("thread" in apart) | lib.FP_FOLD_BY_PID * ("process" in apart)
    by |= lib.FP_FOLD_BY_CPU * ("cpu" in apart) | lib.FP_FOLD_BY_NAME * (not holds.places)
    contexts = _Contexts(model, options, report, "stacks", by)
    contexts.read(batches)
    tell_missing_labels(options, holds, report, contexts.labels())
    yield from contexts.rows(holds.keeps_stacks)


class _Machine:
    """A struct fp_fold, and how what outgrows its memory is written away."""

    def __init__(self, model: Model, options: Options, report: Report, target: str, by: int) -> None:
        self._model, self._report, self._target = model, report, target
        what = lib.FP_FOLD_TREE if target == "stacks" else lib.FP_FOLD_ARCS
        self._fold = owned(lib.fp_fold_new(model.c, what, by), lib.fp_fold_free, "the stack machine")
        self._fold.cpu = model.intern("cpu")
        self._err = ffi.new("struct fp_err *")
        self._ticks_per_second = 0  # 0: times are in ticks
        self._in_ticks = options[TIME_UNIT] == "ticks"
        self._limit = max(_LEAST_ARCS, options[MAX_MEMORY] // _ARC_BYTES)
        self._sources: dict[int, None] = {}  # parts
        # of other inputs, which were read before
        self._before = len(model.parts), model.count("threads")
        self._mended_before = self._all_mended()

    def _write_away(self) -> None:
        """Writes what the machine has to sorted runs."""
        raise NotImplementedError

    def _gains_little(self, n: int, new: int, rows: int) -> bool:
        """Is it better to begin anew than to let the table grow, which has n entries, `new` ones from the last rows?"""
        return False

    def _check(self, status: int) -> int:
        types = _value_types(self._target == "stacks", not self._ticks_per_second)
        return check_sums(status, self._err, self._model, f"timeline to {self._target}", types)

    def read(self, batches: Iterable[Batch]) -> None:
        fold, model, report, err, check = self._fold, self._model, self._report, self._err, self._check
        clock: int | None = None
        for batch in batches:
            self._sources[batch.part] = None
            ticks_per_second = model.parts[batch.part].extra.get("ticks_per_second", 0)
            if clock is None:
                clock = ticks_per_second
                self._ticks_per_second = 0 if self._in_ticks else clock
            elif clock != ticks_per_second and not self._in_ticks:
                if not clock or not ticks_per_second:
                    raise UsageError("one input's clock frequency is unknown, another's is not: use --time-unit ticks")
                report.warn("the inputs' clocks differ: times of the later ones are rounded to ticks of the first")
                check(lib.fp_fold_rescale(batch.c, ticks_per_second, clock, err))
            had = fold.n_arcs
            check(lib.fp_fold_put(fold, batch.c, err))
            if fold.n_arcs > self._limit or self._gains_little(fold.n_arcs, fold.n_arcs - had, len(batch)):
                self._write_away()
                if lib.fp_fold_forget(fold):
                    raise MemoryError("no memory to write calls away")
                self._limit = max(self._limit, 2 * fold.n_arcs)
        if clock is None:
            report.warn("the input has no records: the profile is valid and empty")
        if clock == 0 and not self._in_ticks:
            report.warn("the clock's frequency is unknown: times are in ticks")
        check(lib.fp_fold_end(fold, err))
        self._tell()

    def _part(self, group: int) -> Part:
        """What is the same for every target: who, when, from what, and what was mended."""
        model, fold = self._model, self._fold
        parts = model.parts[self._first(0) :]
        sources = [model.parts[i] for i in self._sources] or [p for p in parts if "ticks_per_second" in p.extra]
        types = _value_types(self._target == "stacks", not self._ticks_per_second)
        part = merge_parts(sources, types, creator=f"fastprof-{__version__}".encode())
        part.extra = {key: value for key, value in part.extra.items() if key == "merged"}
        threads = self._threads()
        first, last = fold.first_time, fold.last_time
        if group:
            _, pid, tid = model.row("threads", group)
            part.pid, part.thread = pid or None, tid
            times = ffi.new("uint64_t[2]")
            lib.fp_fold_thread_times(fold, group, times, times + 1)
            first, last = times
        else:
            pids = {pid for _, pid, _ in threads if pid}
            part.pid = next(iter(pids)) if len(pids) == 1 else None
        part.descriptions.append((b"Threads", str(1 if group else len(threads)).encode()))
        part.descriptions.append((b"Timerange", f"ticks {first} - {last}".encode()))
        mended = self._all_mended() - (self._mended_before if self._several() else Counter())
        repairs = ", ".join(f"{n} {name}" for name, n in sorted(mended.items()))
        part.descriptions.append((b"Repairs", repairs.encode() or b"none"))
        return part

    def _several(self) -> bool:
        """Is this not the first input?  An only one may have been opened before the machine was made."""
        return len(self._model.inputs) > 1

    def _first(self, which: int) -> int:
        """The first part or thread of this input."""
        return self._before[which] if self._several() else which

    def _threads(self) -> list[tuple[int, ...]]:
        return [self._model.row("threads", i) for i in range(self._first(1), self._model.count("threads"))]

    def _all_mended(self) -> Counter[str]:
        """What was mended, also when an archive was made of the source."""
        return Counter(self._report.repairs) + Counter(self._report.facts.get("recorded repairs", {}))

    def _tell(self) -> None:
        stats, report = self._fold.stats, self._report
        report.repairs.add("orphan-exits", "orphan exits", stats.orphan_exits)
        report.repairs.add("unwound-frames", "unwound frames", stats.unwound)
        report.repairs.add("unfinished-calls", "unfinished calls", stats.unfinished)
        report.repairs.add("clamped-times", "times clamped", stats.clamped)
        report.not_representable.add("events", "events", stats.events)
        report.not_representable.add("call-arguments", "call arguments", stats.arguments)
        report.not_representable.add("places", "frames whose address, file or line is left out", stats.placed)
        report.rows["calls"] += stats.calls


class _Arcs(_Machine):
    """For a graph."""

    def __init__(self, model: Model, options: Options, report: Report, target: str, by: int) -> None:
        super().__init__(model, options, report, target, by)
        self._arcs, self._nodes = Words(lib.FP_ARC_WIDTH), Words(lib.FP_NODE_WIDTH)

    def _write_away(self) -> None:
        self._order(keep_hot=True)
        self._arcs.add(partial(lib.fp_fold_pull_arcs, self._fold))
        self._nodes.add(partial(lib.fp_fold_pull_nodes, self._fold))

    def _order(self, keep_hot: bool = False) -> None:
        if lib.fp_fold_order(self._fold, keep_hot):
            raise MemoryError("no memory to put call arcs in order")

    def rows(self, costs: Any = None) -> Iterator[Batch]:
        """One part a group (a thread, or 0: all), its totals known from a first pass over the nodes."""
        out, merges = self._out()
        if costs is not None:
            self._check(lib.fp_fold_inclusive(self._fold, out, costs, self._err))
        groups: list[tuple[int, list[int]]] = []
        while status := self._check(lib.fp_fold_totals(out, self._err)):
            if status == lib.FP_MORE:
                merges[0].feed()
            else:
                groups.append((out.group, list(out.total)))
        out, merges = self._out()

        def pull(batch: Any) -> int:
            while (status := self._check(lib.fp_fold_graph(out, batch, self._err))) == lib.FP_MORE:
                for merge in merges:
                    merge.feed()
            return status

        for group, total in groups or [(0, [0, 0])]:
            part = self._part(group)
            part.summary = total
            yield from batches_of("graph", 2, self._model.add_part(part), pull)

    def _out(self) -> tuple[Any, tuple[Merge, Merge]]:
        self._order()
        merges = (
            self._nodes.merge(partial(lib.fp_fold_pull_nodes, self._fold)),
            self._arcs.merge(partial(lib.fp_fold_pull_arcs, self._fold)),
        )
        out = ffi.new("struct fp_fold_out *")
        out.model, out.ticks_per_second = self._model.c, self._ticks_per_second
        out.nodes, out.arcs = merges[0].c, merges[1].c
        out.unknown_file = self._model.intern("???")
        return out, merges


class _Paths(Sorted):
    """Runs of call paths."""

    def __init__(self, fold: Any, check: Callable[[int], int], err: Any) -> None:
        super().__init__(1, "uint8_t")
        self._fold, self._check, self._err = fold, check, err
        self._got = ffi.new("size_t *")

    def new(self, n: int) -> Any:
        return owned(lib.fp_tree_new(self._fold, n), lib.fp_tree_free, "the merge of call paths")

    def merged(self, merge: Any, to: Any, n: int) -> tuple[int, int]:
        return self._check(lib.fp_tree_pull(merge, to, n, self._got, self._err)), int(self._got[0])


class _Contexts(_Machine):
    """For stacks."""

    def __init__(self, model: Model, options: Options, report: Report, target: str, by: int) -> None:
        super().__init__(model, options, report, target, by)
        self._runs = _Paths(self._fold, self._check, self._err)

    def _write_away(self) -> None:
        self._runs.add(self._linked())

    def _gains_little(self, n: int, new: int, rows: int) -> bool:
        # Call paths are mostly new, so they are not found in a table that is too large for the caches either.
        return n > _MANY_CONTEXTS and new > rows // 4

    def _linked(self) -> Pull:
        """The call paths that the machine has, in order."""
        if lib.fp_fold_link(self._fold):
            raise MemoryError("no memory to put call paths in order")
        return partial(lib.fp_fold_pull_tree, self._fold)

    def labels(self) -> set[str]:
        """Which labels the inputs know, of LABEL_WORDS."""
        threads = self._threads()
        return {"cpu", *("process" for _, pid, _ in threads if pid), *("thread" for _, _, tid in threads if tid)}

    def rows(self, keep_stacks: bool) -> Iterator[Batch]:
        model = self._model
        merge = self._runs.merge(self._linked())
        merge.c.once = not keep_stacks
        part = self._part(0)
        part.extra["default_sample_type"] = "time"
        if self._fold.by & lib.FP_FOLD_BY_CPU:
            part.extra["labels"] = ("cpu",)

        def pull(batch: Any) -> int:
            if model.count("stacks") > _STACKS and not (keep_stacks or model.keep_stacks):
                model.empty_stacks()
            while True:
                status = lib.fp_fold_stacks(merge.c, self._ticks_per_second, batch, self._err)
                if self._check(status) != lib.FP_MORE:
                    return int(status)
                merge.feed()

        yield from batches_of("stacks", 2, model.add_part(part), pull)
