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

from fastprof.bridges import MAX_MEMORY, PER_THREAD, TIME_UNIT, labels_apart
from fastprof.bridges.pull import batches_of
from fastprof.bridges.spill import Merge, Runs
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

# of one arc: struct fp_arc, its share of the index, and of the orders when it is sorted
_ARC_BYTES = 48 + 8 + 12
_LEAST_ARCS = 1024  # below that, files would be many and runs short


def _value_types(tree: bool, in_ticks: bool) -> list[ValueType]:
    """By enum fp_fold_column: of stacks, or of a graph."""
    if tree:
        return [ValueType("time", "ticks" if in_ticks else "nanoseconds"), ValueType("calls", "count")]
    time = ValueType("Ticks", "ticks", "TSC ticks") if in_ticks else ValueType("ns", "nanoseconds", "Nanoseconds")
    return [time, ValueType("Calls", "count", "Number of calls")]


def to_graph(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """Call arcs: memory linear in distinct (caller, callee) pairs.

    One part, or one a thread with `per_thread`.  Values: calls, and time in
    nanoseconds, or in ticks if `time_unit` says so or the clock is unknown.
    """
    by = frozenset({"thread"} if options[PER_THREAD] else ())
    return _fold(batches, model, options, report, "graph", by)


def to_functions(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, costs: Any
) -> Iterator[Batch]:
    """As `to_graph`, and adds to `costs` (struct fp_top *) what each function costs inclusively, which arcs do not say
    when functions call each other in turn."""
    by = frozenset({"thread"} if options[PER_THREAD] else ())
    return _fold(batches, model, options, report, "graph", by, costs)


def to_stacks(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """The context tree: memory linear in distinct call paths.  Same values.

    Kept apart by thread, process or CPU as `--labels` and `--per-thread` say.
    """
    by = labels_apart(options, holds) & {"thread", "process", "cpu"}
    return _fold(batches, model, options, report, "stacks", by)


def _fold(
    batches: Iterable[Batch],
    model: Model,
    options: Options,
    report: Report,
    target: str,
    by: frozenset[str],
    costs: Any = None,
) -> Iterator[Batch]:
    """`by`: what costs are kept apart by, of thread, process and cpu."""
    tree = target == "stacks"
    bits = lib.FP_FOLD_BY_THREAD * bool(by & {"thread", "process"}) | lib.FP_FOLD_BY_CPU * ("cpu" in by)
    bits |= lib.FP_FOLD_INCLUSIVE * (costs is not None)
    what = lib.FP_FOLD_TREE if tree else lib.FP_FOLD_ARCS
    fold = owned(lib.fp_fold_new(model.c, what, bits), lib.fp_fold_free, "the stack machine")
    fold.cpu = model.intern("cpu")
    err = ffi.new("struct fp_err *")
    in_ticks = options[TIME_UNIT] == "ticks"
    clock: int | None = None
    sources: dict[int, None] = {}

    def check(status: int) -> int:
        return check_sums(status, err, model, f"timeline to {target}", _value_types(tree, in_ticks or not clock))

    arcs, nodes = Runs(lib.FP_ARC_WIDTH), Runs(lib.FP_NODE_WIDTH)
    limit = 0 if tree else max(_LEAST_ARCS, options[MAX_MEMORY] // _ARC_BYTES)
    for batch in batches:
        sources[batch.part] = None
        ticks_per_second = model.parts[batch.part].extra.get("ticks_per_second", 0)
        if clock is None:
            clock = ticks_per_second
        elif clock != ticks_per_second and not in_ticks:
            if not clock or not ticks_per_second:
                raise UsageError("one input's clock frequency is unknown, another's is not: use --time-unit ticks")
            report.warn("the inputs' clocks differ: times of the later ones are rounded to ticks of the first")
            check(lib.fp_fold_rescale(batch.c, ticks_per_second, clock, err))
        check(lib.fp_fold_put(fold, batch.c, err))
        if fold.n_arcs > limit and not tree:
            _order(fold, keep_hot=True)
            arcs.add(partial(lib.fp_fold_pull_arcs, fold))
            nodes.add(partial(lib.fp_fold_pull_nodes, fold))
            if lib.fp_fold_forget(fold):
                raise MemoryError("no memory to spill call arcs")
            limit = max(limit, 2 * fold.n_arcs)

    if clock is None:
        report.warn("the input has no records: the profile is valid and empty")
    if clock == 0 and not in_ticks:
        report.warn("the clock's frequency is unknown: times are in ticks")
    in_ticks = in_ticks or not clock
    check(lib.fp_fold_end(fold, err))
    _tell(fold, report)
    parts = [model.parts[i] for i in sources] or [p for p in model.parts if "ticks_per_second" in p.extra]
    result = _Result(fold, model, report, 0 if in_ticks else clock or 0, parts, err, check)
    yield from result.stacks() if tree else result.graph(arcs, nodes, costs)


def _order(fold: Any, keep_hot: bool = False) -> None:
    if lib.fp_fold_order(fold, keep_hot):
        raise MemoryError("no memory to put call arcs in order")


class _Result:
    """The rows of a folded timeline."""

    def __init__(
        self,
        fold: Any,
        model: Model,
        report: Report,
        ticks_per_second: int,
        sources: list[Part],
        err: Any,
        check: Callable[[int], int],
    ) -> None:
        self._fold, self._model, self._report, self._err, self._check = fold, model, report, err, check
        self._ticks_per_second = ticks_per_second
        self._sources = sources

    def stacks(self) -> Iterator[Batch]:
        fold, next_ = self._fold, ffi.new("uint32_t *")  # the node to go on from
        part = self._part(0)
        part.value_types = _value_types(True, not self._ticks_per_second)
        part.extra["default_sample_type"] = "time"
        if fold.by & lib.FP_FOLD_BY_CPU:
            part.extra["labels"] = ("cpu",)

        def pull(batch: Any) -> int:
            return self._check(lib.fp_fold_stacks(fold, self._ticks_per_second, next_, batch, self._err))

        yield from batches_of("stacks", 2, self._model.add_part(part), pull)

    def graph(self, arcs: Runs, nodes: Runs, costs: Any) -> Iterator[Batch]:
        """One part a group (a thread, or 0: all), its totals known from a first pass over the nodes."""
        out, merges = self._out(arcs, nodes)
        if costs is not None:
            self._check(lib.fp_fold_inclusive(self._fold, out, costs, self._err))
        groups: list[tuple[int, list[int]]] = []
        while status := self._check(lib.fp_fold_totals(out, self._err)):
            if status == lib.FP_MORE:
                merges[0].feed()
            else:
                groups.append((out.group, list(out.total)))
        out, merges = self._out(arcs, nodes)

        def pull(batch: Any) -> int:
            while (status := self._check(lib.fp_fold_graph(out, batch, self._err))) == lib.FP_MORE:
                for merge in merges:
                    merge.feed()
            return status

        for group, total in groups or [(0, [0, 0])]:
            part = self._part(group)
            part.value_types = _value_types(False, not self._ticks_per_second)
            part.summary = total
            yield from batches_of("graph", 2, self._model.add_part(part), pull)

    def _out(self, arcs: Runs, nodes: Runs) -> tuple[Any, tuple[Merge, Merge]]:
        _order(self._fold)
        merges = (
            nodes.merge(partial(lib.fp_fold_pull_nodes, self._fold)),
            arcs.merge(partial(lib.fp_fold_pull_arcs, self._fold)),
        )
        out = ffi.new("struct fp_fold_out *")
        out.model, out.ticks_per_second = self._model.c, self._ticks_per_second
        out.nodes, out.arcs = merges[0].c, merges[1].c
        out.unknown_file = self._model.intern("???")
        return out, merges

    def _part(self, group: int) -> Part:
        """What is the same for every target: who, when, from what, and what was mended."""
        model, fold = self._model, self._fold
        part = merge_parts(self._sources, [])
        part.creator = f"fastprof-{__version__}".encode()
        part.extra.clear()
        threads = [model.row("threads", i) for i in range(1, model.count("threads"))]
        first, last = fold.first_time, fold.last_time
        if group:
            _, pid, tid = threads[group - 1]
            part.pid, part.thread = pid or None, tid
            times = ffi.new("uint64_t[2]")
            lib.fp_fold_thread_times(fold, group, times, times + 1)
            first, last = times
        else:
            pids = {pid for _, pid, _ in threads if pid}
            part.pid = next(iter(pids)) if len(pids) == 1 else None
        part.descriptions.append((b"Threads", str(1 if group else len(threads)).encode()))
        part.descriptions.append((b"Timerange", f"ticks {first} - {last}".encode()))
        # and what was mended when an archive was made of the source
        mended = Counter(self._report.repairs) + Counter(self._report.facts.get("recorded repairs", {}))
        repairs = ", ".join(f"{n} {name}" for name, n in sorted(mended.items()))
        part.descriptions.append((b"Repairs", repairs.encode() or b"none"))
        return part


def _tell(fold: Any, report: Report) -> None:
    stats = fold.stats
    report.repairs.add("orphan-exits", "orphan exits", stats.orphan_exits)
    report.repairs.add("unwound-frames", "unwound frames", stats.unwound)
    report.repairs.add("unfinished-calls", "unfinished calls", stats.unfinished)
    report.repairs.add("clamped-times", "times clamped", stats.clamped)
    report.not_representable.add("events", "events", stats.events)
    report.not_representable.add("call-arguments", "call arguments", stats.arguments)
    report.rows["calls"] += stats.calls
