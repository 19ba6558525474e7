"""Timeline -> graph and timeline -> stacks: the stack machine (csrc/fp_fold.h).

Exact.  What neither target can say - arguments, custom and typed events,
CPUs, the times of single calls - is counted in the report as unsaid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastprof import __version__
from fastprof._core import ffi, lib
from fastprof.engine import CAPACITY, Options, Report
from fastprof.errors import check
from fastprof.model import Batch, Model, Part, ValueType

_NS = [ValueType("ns", "nanoseconds", "Nanoseconds"), ValueType("Calls", "count", "Number of calls")]
_TICKS = [ValueType("Ticks", "ticks", "TSC ticks"), ValueType("Calls", "count", "Number of calls")]
_STACKS_NS = [ValueType("time", "nanoseconds"), ValueType("calls", "count")]
_STACKS_TICKS = [ValueType("time", "ticks"), ValueType("calls", "count")]


def to_graph(batches: Iterable[Batch], model: Model, options: Options, report: Report) -> Iterator[Batch]:
    """Call arcs: memory linear in distinct (caller, callee) pairs.

    One part, or one a thread with `per_thread`.  Values: time (ns, or ticks
    where that is asked or the clock is unknown) and calls.
    """
    return _fold(batches, model, options, report, "graph")


def to_stacks(batches: Iterable[Batch], model: Model, options: Options, report: Report) -> Iterator[Batch]:
    """The context tree: memory linear in distinct call paths.  Same values."""
    return _fold(batches, model, options, report, "stacks")


def _fold(batches: Iterable[Batch], model: Model, options: Options, report: Report, target: str) -> Iterator[Batch]:
    into = lib.FP_FOLD_ARCS if target == "graph" else lib.FP_FOLD_TREE
    fold = lib.fp_fold_new(model.c, into, options.per_thread)
    if not fold:
        raise MemoryError("no memory for the stack machine")
    fold = ffi.gc(fold, lib.fp_fold_free)
    err = ffi.new("struct fp_err *")
    clock: int | None = None
    for batch in batches:
        ticks_per_second = model.parts[batch.part].extra.get("ticks_per_second", 0)
        if clock is None:
            clock = ticks_per_second
        elif clock != ticks_per_second and options.time_unit != "ticks":
            _change_clock(fold, clock, ticks_per_second, report)
        check(lib.fp_fold_put(fold, batch.c, err), err, "timeline", "fold")

    ticks = options.time_unit == "ticks" or not clock
    if not clock and options.time_unit != "ticks":
        report.warn("the clock's frequency is unknown: times are in ticks")
    check(lib.fp_fold_end(fold, 0 if ticks else clock, err), err, "timeline", "fold")
    _tell(fold, report)

    out = Batch(target, CAPACITY[target], 2)
    pull = lib.fp_fold_graph if target == "graph" else lib.fp_fold_stacks
    groups = range(1, model.count("threads")) if options.per_thread else (0,)
    for group in groups:
        n = check(lib.fp_fold_select(fold, group, err), err, "timeline", "fold")
        if not n and options.per_thread:
            continue
        out.c.part = model.add_part(_part(fold, group, model, report, ticks, target))
        status = lib.FP_FULL
        while status == lib.FP_FULL:
            status = check(pull(fold, out.c, err), err, "timeline", "fold")
            yield out
            out.reset()


def _tell(fold: Any, report: Report) -> None:
    stats = fold.stats
    for name, n in (
        ("orphan exits", stats.orphan_exits),
        ("unwound frames", stats.unwound),
        ("unfinished calls", stats.unfinished),
        ("times clamped", stats.clamped),
    ):
        if n:
            report.repairs[name] += n
    for name, n in (("events", stats.events), ("call arguments", stats.arguments)):
        if n:
            report.unsaid[name] += n
    report.rows["calls"] += stats.calls


def _part(fold: Any, group: int, model: Model, report: Report, ticks: bool, target: str) -> Part:
    sources = [p for p in model.parts if "ticks_per_second" in p.extra]
    threads = [model.row("threads", i) for i in range(1, model.count("threads"))]
    part = Part(creator=f"fastprof-{__version__}".encode())
    if target == "graph":
        part.value_types = list(_TICKS if ticks else _NS)
        part.summary = [int(fold.total[0]), int(fold.total[1])]
    else:
        part.value_types = list(_STACKS_TICKS if ticks else _STACKS_NS)
    pids = {pid for _, pid, _ in threads if pid}
    if group:
        _, pid, tid = threads[group - 1]
        part.pid, part.thread = pid or None, tid
    elif len(pids) == 1:
        part.pid = next(iter(pids))
    for source in sources:
        part.descriptions += source.descriptions
    part.descriptions.append((b"Threads", str(1 if group else len(threads)).encode()))
    unit = "ticks"
    part.descriptions.append((b"Timerange", f"{unit} {fold.group_first} - {fold.group_last}".encode()))
    repairs = ", ".join(f"{n} {name}" for name, n in sorted(report.repairs.items()))
    part.descriptions.append((b"Repairs", repairs.encode() or b"none"))
    return part
