"""Costs of functions, lines, files, objects, threads or labels: rows of any view, added up (csrc/ends/top.h).

Memory grows with functions, call arcs and the model's distinct stacks, never with the number of rows.  The sums of
stacks that the model need not keep stay within --max-memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fastprof.bridges import MAX_MEMORY, PER_THREAD
from fastprof.bridges.project.project import calls_of, is_full, selected
from fastprof.bridges.project.project import to_graph as projected
from fastprof.bridges.room import Room
from fastprof.bridges.rows.coarse import coarse
from fastprof.core._c import ffi, lib
from fastprof.core._typing import NamedTuple, Pointer, fp_project, fp_top_arc, fp_top_durations, fp_top_sums
from fastprof.core.c_memory import enough, owned
from fastprof.core.chosen_value import ChosenValue, own_calls, recorded_inclusive
from fastprof.core.engine import Capabilities, batches_of
from fastprof.core.errors import FastprofError, check_sums, inputs_of, usage_error
from fastprof.core.labels import GROUP_END, label_text
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.parts import match_columns
from fastprof.core.thread_names import ThreadNames, apart, text_of_part
from fastprof.plan import Pipeline
from fastprof.verbs.branches import Branches
from fastprof.verbs.groups import Groups, keys_of

_BY = {
    "function": lib.FP_TOP_BY_FUNCTION,
    "line": lib.FP_TOP_BY_LINE,
    "file": lib.FP_TOP_BY_FILE,
    "object": lib.FP_TOP_BY_OBJECT,
    "category": lib.FP_TOP_BY_OBJECT,  # as which traces have it
}


class Arc(NamedTuple):
    caller: int
    callee: int
    cost: int
    calls: int


class Durations(NamedTuple):
    """Durations of the calls of a function, in the profile's unit of time.  Percentiles are at most 1 % off."""

    ended: int  # number of calls that ended
    min: int
    median: int
    p90: int
    p99: int
    max: int


class FunctionCosts:
    """Adds up the rows of each view; call `end` after the last row.

    `inclusive_only`: the caller reads only inclusive costs; once they are unknown, nothing is added up.
    """

    def __init__(
        self,
        model: Model,
        by: str,
        value: ChosenValue,
        second: ChosenValue | None,
        *,
        arcs: bool,
        cycles: bool,
        inclusive_only: bool = False,
    ) -> None:
        self.model, self.value, self.second = model, value, second
        # calls of groups: functions within their groups, see Groups.within
        self.groups = Groups(model, keys_of(by), within=arcs) if keys_of(by) else None
        self._is_within = arcs and self.groups is not None
        self._branches = Branches(model) if by == "branch" else None
        self.by = by = "function" if self._is_within or self._branches else by
        self._inclusive_only = inclusive_only
        self._arcs, self._cycles = arcs and by == "function", cycles and by == "function"
        self._err = ffi.new("struct fp_err *")
        self._functions = owned(lib.fp_top_functions_new(model.c), "the sums of functions")
        self._c = self._functions.all
        self._places = owned(ffi.new("struct fp_table *"), "the table of lines")
        enough(lib.fp_table_init(self._places, 3))
        # Threads of the model, other threads by name, and labels: self costs in both columns.
        self._named: dict[str | int, list[int]] = {}
        self.calls_known = True
        self.inclusive_known = by in _BY and self._branches is None
        self.self_alone = False  # some part has only self costs
        self._durations: fp_top_durations | None = None
        self._totals = owned(ffi.new("struct fp_top_sums *"), "the sums of groups")  # with callees

    def keep_durations(self) -> None:
        """Also summarize the durations of each function's calls; call it before the rows of a timeline."""
        self._durations = new_durations()

    # ---- adding up

    def add(self, pipeline: Pipeline, log: Log) -> None:
        rows = pipeline.rows(self.model, log, encoded=pipeline.view == "timeline")
        if pipeline.view == "timeline":
            self.timeline(rows, pipeline.options, log)
            return
        rows = self.value.settled(rows, self.model)
        if pipeline.view == "stacks":
            self.stacks(rows, pipeline.options, keeps_stacks=not pipeline.renews_stacks)
        else:
            self.graph(rows)

    def timeline(self, batches: Iterable[Batch], options: Options, log: Log) -> None:
        from fastprof.bridges.fold.fold import to_functions, to_graph

        if self.by == "line":
            raise usage_error("{inputs}{--by:=}line: a timeline has no lines", inputs=inputs_of(self.model))
        if self.by == "function":
            rows = to_functions(batches, self.model, options, log, self.inclusive_to, self._durations)
            self.begin_timeline()
            self._graph(rows, lib.FP_FOLD_CALLS)
        else:
            own = options.with_given(**{PER_THREAD.name: self.by == "thread"})
            self.graph(to_graph(batches, self.model, own, log))

    def inclusive_to(self, types: list[ValueType]) -> list[tuple[fp_top_sums, int]]:
        """Where the stack machine adds inclusive costs, for the value type of a timeline."""
        column = self.value.of(Part(types), "graph")
        return [(self.sums, column)] if column >= 0 else []

    @property
    def sums(self) -> fp_top_sums:
        return ffi.addressof(self._c)

    def begin_timeline(self, *, arcs: bool = True) -> None:
        lib.fp_top_functions_begin(self._functions, lib.FP_PART_EXACT, self._arcs and arcs)

    def begin_graph(self, part: Part, value: int) -> tuple[int, int]:
        """Start rows of this part, to be added up in column `value`.  Returns the columns of calls and of recorded
        inclusive costs."""
        inclusive = recorded_inclusive(part.value_types, value)
        how = lib.FP_PART_GRAPH if inclusive < 0 else lib.FP_PART_RECORDED
        lib.fp_top_functions_begin(self._functions, how, self._arcs or inclusive < 0)
        return own_calls(part.value_types), inclusive

    def graph(self, batches: Iterable[Batch]) -> None:
        """Add rows of a graph."""
        self.inclusive_known &= self.by not in ("file", "object", "category")
        self._graph(batches)

    def through(
        self, pipeline: Pipeline, log: Log, compared: Callable[[Iterator[Batch]], Iterator[Batch]]
    ) -> Iterator[Batch]:
        """The rows of a pipeline as a graph (of stacks, only self costs by function), adding up their functions; and a
        row of zeros for each function without self cost.  `compared` gives stacks and graphs of all inputs the same
        value types, and may drop those that record inclusive costs; those of a timeline are known afterwards."""
        is_timeline = pipeline.view == "timeline"
        rows = pipeline.rows(self.model, log, encoded=is_timeline)
        if is_timeline:
            from fastprof.bridges.fold.fold import to_functions

            rows = to_functions(rows, self.model, pipeline.options, log, self.inclusive_to)
            self.begin_timeline()
            rows = self._added(rows, lib.FP_FOLD_CALLS)
        elif pipeline.view == "stacks":
            holds = Capabilities(keeps_stacks=not pipeline.renews_stacks, of_one=len([*pipeline.inputs]) == 1)
            rows = self._chosen(self.value.settled(compared(rows), self.model))
            rows = projected(rows, self.model, pipeline.options, log, holds, self._add_inclusive, self._self_costs)
        else:
            rows = compared(self._added(self.value.settled(rows, self.model)))
        part, n_values = -1, 0
        for batch in rows:
            part, n_values = batch.part, int(batch.c.n_values)
            yield batch
        if self.inclusive_known and part >= 0:
            zeros = partial(lib.fp_top_sums_zeros, ffi.addressof(self._c), ffi.new("uint32_t *"))
            yield from batches_of("graph", n_values, part, zeros)

    def _chosen(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Pass batches on and choose the value type from their parts."""
        current = -1
        for batch in batches:
            if batch.part != current:
                current = batch.part
                self.value.of(self.model.parts[current], "stacks")
            yield batch

    def _add_inclusive(self, project: fp_project, events: list[ValueType]) -> None:
        add_stacks(project, events, [(self, self.value.of(Part(value_types=events), "stacks"), -1)], -1)

    def _self_costs(self, rows: Iterator[Batch]) -> Iterator[Batch]:
        return coarse(rows, self.model, "function")

    def _graph(self, batches: Iterable[Batch], calls: int = -1) -> None:
        for _ in self._added(batches, calls):
            pass

    def _added(self, batches: Iterable[Batch], calls: int = -1) -> Iterator[Batch]:
        """Add batches up and pass them on.  `calls`: the column of calls, if the graph is that of a timeline."""
        current, columns, counts, inclusive = -1, (-1, -1), calls, -1
        for batch in batches:
            if batch.part != current:
                if current >= 0:
                    self.end_part()
                current = batch.part
                part = self.model.parts[current]
                self.begin_part(part)
                columns = self._columns(part, "graph")
                if calls < 0:
                    counts, inclusive = self.begin_graph(part, columns[0])
            if self._inclusive_only and not self.inclusive_known:
                pass
            elif self.by == "function":
                self.put(batch, *columns, counts, inclusive)
            elif self.by in _BY:
                by = _BY[self.by]
                top = ffi.addressof(self._c)
                self._fits(
                    lib.fp_top_graph(top, self.model.c, batch.c, by, *columns, inclusive, self._places, self._err)
                )
            elif self.by == "thread":
                totals = ffi.new("int64_t[]", batch.c.n_values or 1)
                if lib.fp_batch_add_self(batch.c, totals, batch.c.n_values):
                    raise FastprofError(f"{inputs_of(self.model)}top: the sum of a thread's costs exceeds 2^63 - 1")
                owner = self.model.names.of_parts.get(current) or text_of_part(part)
                self._name(owner, *(totals[k] if k >= 0 else 0 for k in columns))
            else:
                what = "{inputs}{--by:=}{by}: only stacks have labels"
                raise usage_error(what, inputs=inputs_of(self.model), by=self.by)
            yield batch
        if current >= 0:
            self.end_part()

    def begin_part(self, part: Part) -> None:
        """Start rows of this part of a graph."""
        if part.extra.get("self_costs"):
            self.self_alone = True
            self.calls_known = self.inclusive_known = False

    def put(self, batch: Batch, value: int, second: int = -1, calls: int = -1, inclusive: int = -1) -> None:
        """Add rows of a graph in the current part, with these value columns; -1: none."""
        self._fits(lib.fp_top_functions_put(self._functions, batch.c, value, second, calls, inclusive, self._err))

    def end_part(self) -> None:
        self._fits(lib.fp_top_functions_end_part(self._functions, self._err))

    def stacks(self, batches: Iterable[Batch], options: Options, *, keeps_stacks: bool = True) -> None:
        """Add rows of stacks.  `keeps_stacks`: the model's stacks must not be emptied."""
        if self._branches is not None:
            batches = self._branches.replaced(batches)
        if self.groups is not None:
            batches = self._grouped(batches, self.groups)
        if self.by in _BY:
            self._stacks(batches, options, keeps_stacks)
            return
        if self.groups is not None:
            for _ in batches:
                pass
            return
        model = self.model
        sums = owned(ffi.new("struct fp_top_sums *"), "the sums of threads and labels")
        current = -1
        for batch in batches:
            if batch.part != current:
                self._named_stacks(sums, current)
                current = batch.part
                columns = self._columns(model.parts[current], "stacks")
            if columns[0] >= 0:
                self._add_by(sums, batch.c.thread if self.by == "thread" else batch.c.label, batch, *columns)
        self._named_stacks(sums, current)

    def _grouped(self, batches: Iterable[Batch], groups: Groups) -> Iterator[Batch]:
        """Add rows by group and pass them on; for calls, with the stacks within their groups."""
        if self._is_within:
            if groups.has_functions:
                yield from groups.within(batches)
            else:
                yield from groups.within(self._added_groups(batches, groups, self._totals))
        else:
            yield from self._added_groups(batches, groups, ffi.addressof(self._c))

    def _added_groups(self, batches: Iterable[Batch], groups: Groups, top: fp_top_sums) -> Iterator[Batch]:
        current = -1
        for batch in batches:
            if batch.part != current:
                current = batch.part
                columns = self._columns(self.model.parts[current], "stacks")
            if columns[0] >= 0:
                self._add_by(top, groups.ids(batch), batch, *columns)
            yield batch

    def _columns(self, part: Part, view: str) -> tuple[int, int]:
        """The columns of the value and the second value in a part; -1: none."""
        return self.value.of(part, view), self.second.of(part, view) if self.second else -1

    def _add_by(self, top: fp_top_sums, ids: Pointer[int], batch: Batch, value: int, second: int) -> None:
        """Add the rows of a batch to the sums of these ids, one for each row."""
        c = batch.c
        other = c.values + second * c.cap if second >= 0 else ffi.NULL
        self._fits(lib.fp_top_sums_add(top, ids, c.values + value * c.cap, other, c.n, self._err))

    def _only_groups(self, groups: Groups) -> None:
        """Of the functions, leave those that stand for groups, with the costs of their groups."""
        for name, size in (("self", 8), ("inclusive", 8), ("second", 8), ("seen", 1)):
            ffi.buffer(getattr(self._c, name), size * self._c.cap)[:] = bytes(size * self._c.cap)
        for group in range(self._totals.cap):
            if self._totals.seen[group]:
                function = groups.functions[group]
                self._c.seen[function] = 1
                self._c.self[function] = self._c.inclusive[function] = self._totals.self[group]
                self._c.second[function] = self._totals.second[group]

    def group(self, i: int) -> tuple[str, int]:
        """The values of a group's labels, and its function."""
        assert self.groups is not None
        return self.groups.group(i)

    def split(self, name: str) -> tuple[str, str]:
        """For calls of groups: the values of the labels in a function's name, and the rest; ("", name) otherwise."""
        label, end, function = name.partition(GROUP_END.decode())
        return (label, function) if self._is_within and end else ("", name)

    def _named_stacks(self, sums: fp_top_sums, part: int) -> None:
        """Add the sums of a part under their names."""
        model = self.model
        for i in range(sums.cap):
            if not sums.seen[i]:
                continue
            if self.by == "label":
                self._name(label_text(model, i), sums.self[i], sums.second[i])
            else:
                self._name(i or text_of_part(model.parts[part]), sums.self[i], sums.second[i])
        lib.fp_top_sums_clear(sums)

    def _stacks(self, batches: Iterable[Batch], options: Options, keeps_stacks: bool) -> None:
        model = self.model
        project = owned(lib.fp_project_new(model.c, False, True), "the sums of stacks")
        events: list[ValueType] = []
        columns: dict[int, Pointer[int]] = {}
        room = Room(options[MAX_MEMORY], keeps_stacks)
        for batch in batches:
            if batch.part not in columns:
                self._columns(model.parts[batch.part], "stacks")
                columns[batch.part] = match_columns(model, batch.part, batch.c.n_values, events)
                enough(lib.fp_project_set_values(project, len(events)))
            self._fits(lib.fp_project_put(project, batch.c, columns[batch.part], self._err), events)
            if is_full(room, batch.c.n, project):
                self._add_up(project, events)
                if not keeps_stacks:
                    model.empty_stacks()
        if events:
            self._add_up(project, events)
            self.calls_known &= calls_of(events) >= 0

    def _add_up(self, project: fp_project, events: list[ValueType]) -> None:
        """Add the stacks so far and drop them."""
        self._fits(lib.fp_project_end(project, self._err), events)
        columns = self._columns(Part(value_types=events), "stacks")
        add_projected(project, events, [(self, *columns)], calls_of(events))
        lib.fp_project_empty(project)

    def _begin_arcs(self, which: int) -> None:
        lib.fp_top_functions_begin(self._functions, lib.FP_PART_ARCS, which)

    def _selected(self, project: fp_project, events: list[ValueType], calls: int) -> Iterator[Batch]:
        totals, check = ffi.new("int64_t[]", len(events)), partial(self._fits, events=events)
        return selected(project, lib.FP_NO_ID, calls, totals, 0, check, self._err)

    def _name(self, name: str | int, value: int, second: int) -> None:
        sums = self._named.setdefault(name, [0, 0])
        sums[0] += value
        sums[1] += second

    def _fits(self, status: int, events: list[ValueType] | None = None) -> int:
        return check_sums(status, self._err, self.model, "top", events or [])

    # ---- results

    def end(self) -> None:
        self.calls_known = self.calls_known and any(self.column("calls"))  # counts of 0 are those that nobody counted
        if self.by == "function":
            self._fits(lib.fp_top_functions_end(self._functions, self._cycles, self._err))
        if self._is_within and self.groups and not self.groups.has_functions:
            self._only_groups(self.groups)
        if self._arcs:
            enough(lib.fp_top_functions_index(self._functions))

    def column(self, name: str) -> memoryview:
        """self, inclusive, calls or second, by id: a memoryview."""
        c = self._c
        return memoryview(ffi.buffer(getattr(c, name), 8 * c.cap)).cast("q") if c.cap else memoryview(b"").cast("q")

    def regrouped(self, ids: Pointer[int]) -> memoryview:
        """Inclusive costs by other ids: `ids` has one for each function."""
        sums = owned(ffi.new("struct fp_top_sums *"), "the sums of functions")
        self._fits(lib.fp_top_sums_add(sums, ids, self._c.inclusive, ffi.NULL, self._c.cap, self._err))
        return memoryview(bytes(ffi.buffer(sums.self, 8 * sums.cap)) if sums.cap else b"").cast("q")

    def sum(self, name: str) -> int:
        """The sum of a column."""
        total = ffi.new("int64_t *")
        self._fits(lib.fp_top_sums_sum(ffi.addressof(self._c), getattr(self._c, name), total, self._err))
        return int(total[0])

    @property
    def seen(self) -> bytes:
        """By id: 1 if it has rows."""
        return bytes(ffi.buffer(self._c.seen, self._c.cap)) if self._c.cap else b""

    @property
    def named(self) -> dict[str, list[int]]:
        """Self costs of threads and labels, in both columns."""
        names = ThreadNames(self.model)
        texts = apart(names.text(name) if isinstance(name, int) else name for name in self._named)
        return dict(zip(texts, self._named.values(), strict=True))

    def threads(self) -> dict[str, tuple[int | None, int | None, str]]:
        """By what threads are called: the ids of process and thread, and the name of the thread; None: unknown."""
        ids: dict[str, int] = {}
        if self.groups and self.groups.has_threads:
            ids = {self.groups.group(i)[0]: self.groups.thread(i) for i in range(1, self.groups.n)}
        elif self.by == "thread":
            ids = {text: id_ for text, id_ in zip(self.named, self._named, strict=True) if isinstance(id_, int)}
        names, found = ThreadNames(self.model), {}
        for text, id_ in ids.items():
            input_, pid, tid = self.model.row("threads", id_)
            own = (names.id(input_, number) for number in (pid, tid))
            its_pid, its_tid = (int(one) if one.isdecimal() else None for one in own)
            found[text] = its_pid, its_tid, names.thread(input_, pid, tid)
        return found

    @property
    def is_zero(self) -> bool:
        """Whether every self cost is 0."""
        return not any(self.column("self")) and not any(value for value, _ in self._named.values())

    @property
    def count(self) -> int:
        """The number of groups."""
        return self.seen.count(1)

    def largest(self, key: str, want: int) -> list[int]:
        """Ids of the groups with the largest figures in column `key`, in any order, including ties with the last."""
        c = self._c
        if not c.cap:
            return []
        ids = ffi.new("uint32_t[]", c.cap)
        n = lib.fp_top_sums_largest(ffi.addressof(c), getattr(c, key), min(want, c.cap), ids)
        if n == lib.FP_NO_ID:
            raise MemoryError("no memory to sort")
        return list(ids[0:n])

    def durations(self, function: int) -> Durations | None:
        """None: no call of the function ended."""
        return durations_of(self._durations, function) if self._durations else None

    @property
    def has_arcs(self) -> bool:
        return bool(lib.fp_top_functions_has_arcs(self._functions))

    def cycle_of(self, function: int) -> int:
        return int(self._functions.cycle[function])

    def cycle_members(self) -> dict[int, list[int]]:
        """The functions of each cycle."""
        members: dict[int, list[int]] = {}
        n = lib.fp_top_functions_in_cycles(self._functions, ffi.NULL, 0)
        functions = ffi.new("uint32_t[]", n or 1)
        lib.fp_top_functions_in_cycles(self._functions, functions, n)
        cycles = self._functions.cycle
        for function in functions[0:n]:
            members.setdefault(cycles[function], []).append(function)
        return members

    def arcs(self, function: int, into: bool) -> list[Arc]:
        """Callers or callees, in any order (fp_top_functions_arcs)."""
        n = self._arc_count(lib.fp_top_functions_arcs(self._functions, function, into, ffi.NULL, 0, self._err))
        arcs = ffi.new("struct fp_top_arc[]", n)
        lib.fp_top_functions_arcs(self._functions, function, into, arcs, n, self._err)
        return _arcs(arcs, n)

    def largest_arcs(self, function: int, into: bool, most: int) -> list[int]:
        """The functions at the other end of the most expensive arcs."""
        arcs = ffi.new("struct fp_top_arc[]", most)
        n = self._arc_count(lib.fp_top_functions_arcs(self._functions, function, into, arcs, most, self._err))
        return ffi.unpack(ffi.cast("uint32_t *", arcs), 6 * min(n, most))[not into :: 6]

    def arcs_with(self, function: int, into: bool, others: list[int]) -> Iterator[tuple[int, int, int, int]]:
        """The arcs with these functions at the other end, as tuples with the fields of Arc."""
        arcs = ffi.new("struct fp_top_arc[]", len(others))
        c, n = self._functions, len(others)
        n = self._arc_count(lib.fp_top_functions_arcs_with(c, function, into, others, n, arcs, self._err))
        return _fields(arcs, n)

    def _arc_count(self, n: int) -> int:
        self._fits(min(0, n))
        return n

    def cycle_arcs(self, cycle: int) -> list[Arc]:
        """The calls into a cycle from outside; 0: into any cycle."""
        n = lib.fp_top_functions_cycle_arcs(self._functions, cycle, ffi.NULL, 0)
        arcs = ffi.new("struct fp_top_arc[]", n or 1)
        lib.fp_top_functions_cycle_arcs(self._functions, cycle, arcs, n)
        return _arcs(arcs, n)

    def place(self, row: int) -> tuple[int, int, int]:
        """Function, file and line of a row by line."""
        function, file, line = self._places.words[3 * row : 3 * row + 3]
        return function, file, line


def add_projected(
    project: fp_project,
    events: list[ValueType],
    to: list[tuple[FunctionCosts, int, int]],
    calls: int,
    *,
    sparse: bool = False,
) -> None:
    """Add the costs of a finished projection's stacks to several FunctionCosts, each of another value type.

    `to`: costs, and the columns of their values and second values in the projection, whose columns are `events`.
    `calls`: the column of calls.  -1: it has none.  `sparse`: only the first one gets arcs without a cost, but those
    of recursion.
    """
    first = to[0][0]
    add_stacks(project, events, to, calls)
    if not first._arcs:
        return
    for costs, _, _ in to:
        costs._begin_arcs(lib.FP_ARCS_OF_COSTS if sparse and costs is not first else lib.FP_ARCS_ALL)
    for batch in first._selected(project, events, calls):
        for costs, value, _ in to:
            costs.put(batch, value)
    for costs, _, _ in to:
        costs.end_part()


def add_stacks(
    project: fp_project, events: list[ValueType], to: list[tuple[FunctionCosts, int, int]], calls: int
) -> None:
    """Add the costs of a finished projection's stacks as add_projected does, but no arcs between functions."""
    first = to[0][0]
    columns = ffi.new("struct fp_top_column[]", [(costs.sums, value, second) for costs, value, second in to])
    counted = calls if first.by == "function" else -1
    status = lib.fp_top_stacks(project, _BY[first.by], columns, len(to), counted, first._places, first._err)
    first._fits(status, events)


def new_durations() -> fp_top_durations:
    return owned(ffi.new("struct fp_top_durations *"), "the durations of calls")


def durations_of(found: fp_top_durations, function: int) -> Durations | None:
    """None: no call of the function ended."""
    if function >= found.cap or not found.of[function].calls:
        return None
    of = found.of[function]
    return Durations(of.calls, of.min, of.median, of.p90, of.p99, of.max)


def _fields(arcs: fp_top_arc, n: int) -> Iterator[tuple[int, int, int, int]]:
    from struct import iter_unpack

    return iter_unpack("=IIqq", ffi.buffer(arcs, 24 * n))


def _arcs(arcs: fp_top_arc, n: int) -> list[Arc]:
    return [*map(Arc._make, _fields(arcs, n))]
