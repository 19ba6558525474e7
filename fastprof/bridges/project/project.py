"""Stacks -> graph: samples become self costs and call arcs (csrc/bridges/project/project.h).

    main:10 > even:20 > odd:30 > even:21    5 samples
    main:10 > even:21                       2 samples

becomes

    even:21  self 7      main:10 -> even 7     even:20 -> odd 5     odd:30 -> even 0

Kept: every value type as an event with its exact total; objects, files, functions, lines and addresses as recorded
(a caller's address is the return address of its call, if the profile records it).
Recursion: the arcs into a function add up to its inclusive cost, to which each sample contributes once.  Only the
outermost arc of a recursion has a cost.
Lost: which arcs occurred in the same sample.  If a function is the root of some stacks and called in others, its arcs
lack the cost of the former.  Labels and times of samples are counted as not representable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import zip_longest

from fastprof.bridges import INLINES, MAX_MEMORY, PER_THREAD
from fastprof.bridges.project.reported import REPORTED
from fastprof.bridges.room import LEAST_NODES, Room
from fastprof.bridges.sums.aggregate import Table
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Pointer, fp_err, fp_project
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import EVERYTHING, Capabilities, batches_of
from fastprof.core.errors import FastprofError, check_sums, inputs_of
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.parts import default_value, in_any_order, match_columns, match_values, merge_parts, parts_since
from fastprof.core.version import __version__

# callgrind_annotate prints it
NOT_COUNTED = b"calls=0, whose costs callgrind_annotate adds to self costs"
RETURN_ADDRESSES = b"a calling position's address is the one its call returns to"


def to_graph(
    batches: Iterable[Batch],
    model: Model,
    options: Options,
    log: Log,
    holds: Capabilities = EVERYTHING,
    seen: Callable[[fp_project, list[ValueType]], None] = lambda project, events: None,
    self_costs: Callable[[Iterator[Batch]], Iterator[Batch]] | None = None,
) -> Iterator[Batch]:
    """The call graph of stacks in one part, or one per thread with `per_thread`.  Rows are sorted by object, file and
    name.

    The graph's events are the distinct value types (name, unit) of all parts.
    `seen` gets the stacks whenever they are added up, before they are dropped: arcs do not determine the inclusive
    costs of functions that are the root of some stacks.  With `self_costs`, which reduces rows
    before they are added up, the graph has only self costs.
    Errors: FastprofError for a sum beyond 2^63 - 1 or an unknown id.
    """
    graph = _Graph(model, options, holds, seen, self_costs)
    for batch in batches:
        graph.put(batch)
    yield from graph.rows(log)


_KEY_BYTES = 8 + 22 + 4  # per stack of a thread, without its sums
_STACK_BYTES = 8 + 22  # per stack: its row and index entry
_NODE_BYTES = 12 + 4  # per stack, without its sums: its node and key
_ARC_BYTES = 8 + 22 + 8  # per arc, without its costs


def is_full(room: Room, n_rows: int, *projects: fp_project) -> bool:
    """Whether, after a batch of `n_rows` in each of them, the stacks must be added up and the projects emptied."""
    first, key_bytes, node_bytes = projects[0], 0, _STACK_BYTES
    for project in projects:
        sums = 8 * int(project.n_values)
        node_bytes += _NODE_BYTES + (0 if project.per_thread else sums)
        key_bytes += _KEY_BYTES + sums if project.per_thread else 0
    keys = first.keys if first.per_thread else None
    return room.is_full(n_rows, first.model.stacks.n, first.n_keys - 1, key_bytes, node_bytes, keys)


def selected(
    project: fp_project,
    group: int,
    calls: int,
    totals: Pointer[int],
    part: int,
    check: Callable[[int], int],
    err: fp_err,
    most: int = 1 << 18,
) -> Iterator[Batch]:
    """The rows of the graph of a group, or of all (FP_NO_ID).  A place or arc has several beyond `most` rows."""
    lib.fp_project_begin(project, group, calls, totals)
    status = lib.FP_FULL
    while status == lib.FP_FULL:
        status = check(lib.fp_project_select(project, most, totals, err))
        yield from batches_of("graph", project.n_values, part, partial(lib.fp_project_pull, project))


def calls_of(events: list[ValueType]) -> int:
    """The index of the event that counts calls; -1: none."""
    return next((k for k, event in enumerate(events) if event.name.lower() == "calls"), -1)


class _Graph:
    """A struct fp_project, and the sum of the graphs pulled each time it was full."""

    def __init__(
        self,
        model: Model,
        options: Options,
        holds: Capabilities,
        seen: Callable[[fp_project, list[ValueType]], None],
        self_costs: Callable[[Iterator[Batch]], Iterator[Batch]] | None,
    ) -> None:
        self._model, self._keeps_stacks, self._seen, self._self_costs = model, holds.keeps_stacks, seen, self_costs
        self._of_one = holds.of_one
        self._n_parts = len(model.parts)  # before the rows
        self._per_thread = options[PER_THREAD]
        self._max_memory = options[MAX_MEMORY] // 2  # one half for stacks, one for rows
        self._room = Room(self._max_memory, holds.keeps_stacks)
        self._c = owned(lib.fp_project_new(model.c, self._per_thread, options[INLINES]), "the call graph")
        self._err = ffi.new("struct fp_err *")
        self._events: list[ValueType] = []
        self._columns: dict[int, Pointer[int]] = {}  # by part: the event of each of its values
        self._parts: dict[int, int] = {}  # by number of events: a part of the model that has them
        # by group: thread, or 0
        self._tables: dict[int, Table] = {}
        self._totals: dict[int, list[int]] = {}

    def _check(self, status: int) -> int:
        return check_sums(status, self._err, self._model, "stacks to graph", self._events)

    def put(self, batch: Batch) -> None:
        if batch.part not in self._columns:
            self._match(batch.part, batch.c.n_values)
        self._check(lib.fp_project_put(self._c, batch.c, self._columns[batch.part], self._err))
        if is_full(self._room, batch.c.n, self._c):
            self._add_up()
            if not self._keeps_stacks:
                self._model.empty_stacks()

    def _match(self, part: int, n_values: int) -> None:
        self._columns[part] = match_columns(self._model, part, n_values, self._events)
        enough(lib.fp_project_set_values(self._c, len(self._events)))

    def _add_up(self) -> None:
        """Convert the stacks so far to graphs, and drop them."""
        c, n = self._c, len(self._events)
        self._check(lib.fp_project_end(c, self._err))
        self._seen(c, self._events)
        totals = ffi.new("int64_t[]", n + 1)
        if n not in self._parts:
            self._parts[n] = self._model.add_part(Part([*self._events]))
        for group in range(c.n_groups):
            if c.group_start[group] == c.group_start[group + 1]:
                continue
            if self._self_costs:
                self._check(lib.fp_project_select_self(c, group, totals, self._err))
                rows = self._self_costs(batches_of("graph", n, self._parts[n], partial(lib.fp_project_pull, c)))
            else:
                calls, most = calls_of(self._events), max(LEAST_NODES, self._max_memory // (_ARC_BYTES + 8 * n))
                rows = selected(c, group, calls, totals, self._parts[n], self._check, self._err, most)
            for batch in rows:
                self._table(group).put(batch)
            before = self._totals.get(group, [])
            self._totals[group] = [a + b for a, b in zip_longest(before, totals[0:n], fillvalue=0)]
        lib.fp_project_empty(c)

    def _table(self, group: int) -> Table:
        """The sums of a group."""
        if group not in self._tables:
            n = self._model.count("threads") if self._per_thread else 1
            self._tables[group] = Table(self._model, self._max_memory // n)
        return self._tables[group]

    def rows(self, log: Log) -> Iterator[Batch]:
        model, c = self._model, self._c
        if not self._columns:  # an empty profile still has value types
            for i in parts_since(model, self._n_parts):
                self._match(i, len(model.parts[i].value_types))
        self._add_up()
        if not self._per_thread:
            self._table(0)
        log.rows["samples"] += c.samples
        log.count_all(REPORTED, c)
        counts = ffi.new("struct fp_unrepresentable *")
        lib.fp_unrepresentable_count(model.c, counts)
        log.count(REPORTED["inlined-calls" if c.inline_calls else "inlined"], counts.inlined)
        sources = model.whole_parts(self._columns)
        several = len(model.inputs) > 1 and not self._of_one  # now that all inputs are known
        order = in_any_order(sources, self._events) if several else self._order_of(sources)
        for group in sorted(self._tables):
            table = self._table(group)
            table.widen(self._events)
            part = _part(sources, table.reorder(order), c, several)
            if calls_of(self._events) < 0:
                part.descriptions.insert(0, (b"Calls", b"not counted by samples (" + NOT_COUNTED + b")"))
            total = self._total(group)
            part.summary = [total[k] for k in order]
            if group:
                _, pid, part.thread = model.row("threads", group)
                part.pid = pid or part.pid
            yield from table.batches(model.add_part(part))

    def _order_of(self, sources: list[Part]) -> list[int]:
        """The order of the events in the only part, if it has all of them."""
        n = len(self._events)
        if len(sources) == 1 and len(sources[0].value_types) == n:
            return match_values(sources[0], n, [*self._events])
        return [*range(n)]

    def _total(self, group: int) -> list[int]:
        totals = self._totals.get(group, [])
        totals += [0] * (len(self._events) - len(totals))
        for event, total in zip(self._events, totals, strict=True):
            if not -(1 << 63) <= total < 1 << 63:
                what = f"the inclusive cost of a call stack in value type {event.name} exceeds 2^63 - 1"
                raise FastprofError(f"{inputs_of(self._model)}stacks to graph: {what}")
        return totals


def _part(sources: list[Part], events: list[ValueType], stacks: fp_project, several: bool) -> Part:
    part = merge_parts(sources, list(events), creator=f"fastprof-{__version__}".encode())
    if len(events) > 1:
        # with one input, the order of its first part with values; otherwise an order independent of that of the inputs
        first = part if several else next((source for source in sources if source.value_types), part)
        part.extra["default_sample_type"] = first.value_types[default_value(first, "stacks")].name
    part.positions = ("instr", "line") if stacks.addresses else ("line",)
    if stacks.return_addresses:
        part.descriptions.append((b"Addresses", RETURN_ADDRESSES))
    return part
