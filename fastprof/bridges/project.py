"""Stacks -> graph: samples become self costs and call arcs (csrc/bridges/project.h).

    main:10 > even:20 > odd:30 > even:21    5 samples
    main:10 > even:21                       2 samples

becomes

    even:21  self 7      main:10 -> even 7     even:20 -> odd 5     odd:30 -> even 0

Kept: every value type as an event, its total to the unit; objects, files,
functions, lines and addresses exactly as recorded (a caller's address is the
one its call returns to, where the profile says so).
Recursion: the arcs into a function add up to its inclusive cost, in which each
sample counts once.  Only the outermost arc of a recursion has a cost.
Lost: which arcs occurred in the same sample.  If a function is the root of some
stacks and is called in others, its arcs do not have the cost of the former.
Labels and times of samples are counted as not representable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fastprof.bridges import INLINE_CALLS, PER_THREAD
from fastprof.bridges.pull import batches_of
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import EVERYTHING, Holds
from fastprof.core.errors import check_sums
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.owner import owned
from fastprof.core.parts import match_columns, merge_parts
from fastprof.core.report import Report
from fastprof.core.version import __version__

CALLS_UNKNOWN = b"not recorded by samples; every arc says 1"
RETURN_ADDRESSES = b"a calling position's address is the one its call returns to"


def to_graph(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """The call graph of stacks: one part, or one a thread with `per_thread`.

    Parts of the input that have other value types are put side by side: the
    graph's events are the distinct (name, unit) of all.  Memory is linear in
    distinct stacks, positions and arcs, whatever the number of samples.
    Errors: FastprofError for a sum beyond 2^63 - 1 or an id that is not there.
    """
    stacks = owned(
        lib.fp_project_new(model.c, options[PER_THREAD], options[INLINE_CALLS]), lib.fp_project_free, "the call graph"
    )
    err = ffi.new("struct fp_err *")
    events: list[ValueType] = []
    columns: dict[int, Any] = {}  # part -> which event each of its values is

    def check(status: int) -> int:
        return check_sums(status, err, model, "stacks to graph", events)

    for batch in batches:
        if batch.part not in columns:
            columns[batch.part] = match_columns(model.parts[batch.part], batch.c.n_values, events)
            if lib.fp_project_set_values(stacks, len(events)):
                raise MemoryError("no memory for the call graph")
        check(lib.fp_project_put(stacks, batch.c, columns[batch.part], err))
    if not columns:  # a profile of nothing still says what it would have counted
        columns = {i: match_columns(part, len(part.value_types), events) for i, part in enumerate(model.parts)}
        if lib.fp_project_set_values(stacks, len(events)):
            raise MemoryError("no memory for the call graph")
    check(lib.fp_project_end(stacks, err))
    sources = [model.parts[i] for i in columns]
    report.rows["samples"] += stacks.samples
    report.not_representable.add("sample-labels", "labels of samples", stacks.labelled)
    report.not_representable.add("sample-times", "times of samples", stacks.timed)

    calls = next((k for k, event in enumerate(events) if event.name.lower() == "calls"), -1)
    totals = ffi.new("int64_t[]", len(events) + 1)
    groups = range(model.count("threads")) if options[PER_THREAD] else (0,)
    for group in groups:
        n = check(lib.fp_project_select(stacks, group, calls, totals, err))
        if not n and options[PER_THREAD]:
            continue
        part = _part(sources, events, stacks, calls)
        part.summary = list(totals[0 : len(events)])
        if group:
            _, pid, part.thread = model.row("threads", group)
            part.pid = pid or part.pid
        yield from batches_of("graph", len(events), model.add_part(part), partial(lib.fp_project_pull, stacks))


def _part(sources: list[Part], events: list[ValueType], stacks: Any, calls: int) -> Part:
    part = merge_parts(sources, list(events))
    part.creator = f"fastprof-{__version__}".encode()
    part.positions = ("instr", "line") if stacks.addresses else ("line",)
    if calls < 0:
        part.descriptions.append((b"Calls", CALLS_UNKNOWN))
    elif stacks.uncounted:
        part.descriptions.append((b"Calls", b"%d arcs without a recorded call say 1" % stacks.uncounted))
    if stacks.return_addresses:
        part.descriptions.append((b"Addresses", RETURN_ADDRESSES))
    return part
