"""A page's data from profiles of any view: contexts, functions, calls in time order.

A timeline is folded into stacks, a graph's stacks are estimated.  Stacks give the contexts (csrc/ends/contexts.h) and
the costs of functions (verbs/function_costs.py); the functions of a graph come from the graph itself, so they are
exact, and those of a timeline from the stack machine, which also has the durations of single calls.
In a comparison the values of the old and the new profile are separate columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from functools import partial

from fastprof.bridges import FRAMES, MAX_MEMORY, PER_THREAD, PRUNE, VALUE
from fastprof.bridges.estimate.estimate import to_stacks as estimated
from fastprof.bridges.fold.fold import ContextTree, Functions
from fastprof.bridges.fold.fold import to_stacks as folded
from fastprof.bridges.project.project import calls_of, is_full
from fastprof.bridges.room import Room
from fastprof.core._c import ffi, lib
from fastprof.core._typing import (
    NamedTuple,
    Pointer,
    fp_contexts,
    fp_fold,
    fp_page_callers,
    fp_project,
    fp_top_durations,
    fp_top_sums,
)
from fastprof.core.c_memory import enough, owned
from fastprof.core.chosen_value import ChosenValue, settled_default
from fastprof.core.engine import Capabilities
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import CORES, Options, cores_of
from fastprof.core.parts import match_part
from fastprof.core.workers import Workers
from fastprof.verbs.function_costs import FunctionCosts, add_projected, new_durations
from fastprof.verbs.page.labels import Labels
from fastprof.verbs.page.tracks import Tracks

_MOST_CALLS = 250_000  # kept while a timeline is read: more than fit the page
_MOST_SAMPLES = 400_000  # the same of samples with times
_OFF_CPU = "off-cpu", "nanoseconds"  # the value type of times between switches, as of perf.data
_LEAST_CONTEXTS = 1 << 16  # kept while they are added up: more than a page shows
_LABEL_BYTES = 8 + 8  # per sum of fp_context_labels: its row and index entry
_CONTEXT_BYTES = 12 + 22 + 8  # per node of fp_contexts: its row, index entry and total


class SideEvent(NamedTuple):
    """A value type of one side: 0, or 1 for the new profile of a comparison."""

    event: int
    side: int


class Shown:
    """Adds up a page's data: `add` once for each side and view, then `end`."""

    def __init__(
        self,
        model: Model,
        options: Options,
        log: Log,
        *,
        compared: bool,
        prune: float,
        alone: bool = False,
        timed: bool = False,
        keeps_stacks: bool = True,
        sparse: bool = False,
    ) -> None:
        """`alone`: all rows of the page have one view.  `timed`: samples with times are kept, which are of one input.
        `keeps_stacks`: those of the model must not be emptied.  `sparse`: of several value types only the first has
        call arcs without a cost."""
        self._model, self._log, self._compared, self._alone = model, log, compared, alone and not compared
        self._keeps_stacks, self._sparse = keeps_stacks, sparse
        # options of the bridges to stacks
        self._bridging = options.with_given(
            **{PER_THREAD.name: not compared, FRAMES.name: "function", PRUNE.name: prune}
        )
        self._options = options
        self._err = ffi.new("struct fp_err *")
        self.events: list[ValueType] = []
        self.value = ChosenValue(options[VALUE], VALUE.flag)
        self.default: int | None = None  # the event shown first
        self.columns: list[SideEvent] = []
        self.costs: list[FunctionCosts] = []  # by column
        self.contexts: fp_contexts = owned(lib.fp_contexts_new(), "the context tree")
        self.in_time = ffi.addressof(self.contexts.times)  # samples with times
        self.in_time.room = _MOST_SAMPLES if timed and not compared else 0
        self._has_labels = False  # labels to show
        self._arcs = ffi.new("struct fp_page_callers_arc[]", lib.FP_PAGE_CALLERS * lib.FP_PAGE_CALLERS_VALUES)
        self.labels = Labels(model, ffi.addressof(self.contexts.labels), self._fits, self._err)
        self.estimated = False
        self.times: Times | None = None
        self.tracks = None if compared else Tracks(model)
        self._waits: Times | None = None  # off-CPU time, as calls of one function
        self._waiting: dict[int, tuple[int, int]] = {}  # by part: its value, -1: none; that function
        self._lines = owned(ffi.new("struct fp_first_lines *"), "the lines of functions")
        self._contexts = self._new_project(per_thread=not compared)
        self._functions = self._new_project(per_thread=False)  # costs are added up once, not for each thread
        self.durations: fp_top_durations | None = None  # of single calls
        self.listed: fp_page_callers | None = None  # callers and callees of a timeline, instead of those in `costs`

    def _new_project(self, *, per_thread: bool) -> fp_project:
        return owned(lib.fp_project_new(self._model.c, per_thread, True), "the sums of stacks")

    def _fits(self, status: int) -> int:
        types = [self.events[c.event] for c in self.columns] or [ValueType("time"), ValueType("calls")]
        return check_sums(status, self._err, self._model, "report", types)

    # ---- adding up

    def add(self, side: int, view: str, batches: Iterable[Batch]) -> None:
        if view == "timeline":
            self._timeline(side, batches if self._compared else self._timed(batches))
        elif view == "stacks":
            self._stacks(side, view, batches, self._functions)
        else:
            self.estimated = True
            log = Log()
            rows = estimated(self._graph(side, batches), self._model, self._bridging, log)
            self._stacks(side, view, rows)
            lost = log.not_representable
            lost.drop("call-counts", "unshown-arcs")  # the table has them
            self._log.not_representable.take(lost)
            self._log.take_warnings(log)

    def folded(self, view: str, batches: Iterator[Batch]) -> Iterator[Batch]:
        """A timeline as stacks; other views unchanged."""
        return folded(batches, self._model, self._bridging, self._log) if view == "timeline" else batches

    def _timeline(self, side: int, batches: Iterable[Batch]) -> None:
        # arcs get less memory than contexts: they are spilled, not cut
        limit = self._options[MAX_MEMORY] // 4
        options = self._options.with_given(**{PER_THREAD.name: False, CORES.name: 1, MAX_MEMORY.name: limit})
        self.durations = None if self._compared else new_durations()
        if self._alone:
            self.listed = owned(ffi.new("struct fp_page_callers *"), "callers and callees")
        functions = Functions(self._model, options, self._log if self._alone else Log(), self.durations)
        rows = functions.through(batches)
        if self._alone:
            tree = ContextTree(self._model, options, self._take_tree)
            tree.read(rows)
            self._fits(lib.fp_contexts_scale(self.contexts, tree.ticks_per_second, self._err))
        else:
            # the model drops stacks between batches, so they must be added at once
            rows = folded(rows, self._model, self._bridging, self._log, Capabilities(keeps_stacks=False))
            self._stacks(side, "timeline", rows, at_once=True)
        found = list[int]()

        def inclusive(types: list[ValueType]) -> list[tuple[fp_top_sums, int]]:
            found.extend(self._columns_of(side, "graph", Part(types)))
            for k in found:
                self.costs[k].begin_timeline(arcs=self.listed is None)
            return [(self.costs[k].sums, value) for value, k in enumerate(found)]

        for batch in functions.rows(inclusive):
            if self.listed is not None:
                self._fits(lib.fp_page_callers_put(self.listed, batch.c, self._err))
            for value, k in enumerate(found):
                self.costs[k].put(batch, value, calls=lib.FP_FOLD_CALLS)
            self._fits(lib.fp_first_lines_graph(self._lines, self._model.c, batch.c, self._err))
        for k in found:
            self.costs[k].end_part()

    def _take_tree(self, fold: fp_fold) -> None:
        self._fits(lib.fp_contexts_take(self.contexts, fold, self._err))
        most = self._most(_CONTEXT_BYTES, 2)
        if self.contexts.above:  # more than a page shows came, so fewer are kept, which are found quicker
            most //= 2
        self._shrink(most, most // (2 if self.contexts.above else 4))

    def _timed(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        self.times = self.times or Times(self._model)
        for batch in batches:
            self.times.put(batch)
            if self.tracks is not None:
                self.tracks.put(batch)
            yield batch

    def add_timeline(self, batches: Iterable[Batch]) -> None:
        """Add the timeline of the input whose samples the page shows: its calls are states of threads."""
        assert self.tracks is not None
        states = Times(self._model)
        for batch in batches:
            start = self._model.parts[batch.part].extra.get("time_ns", 0)
            if len(batch) and batch["time"][0] < start:  # they count from there, those of samples from 1970
                lib.fp_tracks_shift(batch.c, start)
            states.put(batch)
            self.tracks.put(batch)
        states.end()
        self.tracks.states = states

    def _columns_of(self, side: int, view: str, part: Part) -> list[int]:
        """The column of each value of a part."""
        found = []
        for event in match_part(self._model, part, len(part.value_types), self.events):
            column = SideEvent(event, side)
            if column not in self.columns:
                self.columns.append(column)
                value = ChosenValue(None, "--value")
                self.costs.append(FunctionCosts(self._model, "function", value, None, arcs=True, cycles=True))
            found.append(self.columns.index(column))
            self.costs[found[-1]].begin_part(part)
        chosen = self.value.of(part, view)
        if self.default is None and chosen >= 0:
            self.default = self.columns[found[chosen]].event
        return found

    def _stacks(
        self,
        side: int,
        view: str,
        batches: Iterable[Batch],
        functions: fp_project | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        """Add rows to the contexts and, with `functions`, to the costs of functions."""
        columns: dict[int, Pointer[int]] = {}
        chosen: dict[int, int] = {}  # by part: the value that samples with times have
        projects = [self._contexts, *([functions] if functions else [])]
        keeps_stacks = self._keeps_stacks or not functions
        room = Room(self._options[MAX_MEMORY] // 4, keeps_stacks)
        cores, are_many = cores_of(self._options), False
        for batch in batches:
            if batch.part not in columns:
                found = self._columns_of(side, view, self._model.parts[batch.part])
                columns[batch.part] = ffi.new("uint32_t[]", found or [0])
                chosen[batch.part] = max(0, self.value.of(self._model.parts[batch.part], view))
                for project in projects:
                    enough(lib.fp_project_set_values(project, len(self.columns)))
            of = columns[batch.part]
            for project in projects:
                self._fits(lib.fp_project_put(project, batch.c, of, self._err))
            self._fits(lib.fp_context_labels_put(self.labels.c, self._contexts, batch.c, of, self._err))
            if view == "stacks":
                self._put_waits(batch)
                self._fits(lib.fp_context_times_put(self.in_time, self._contexts, batch.c, of, chosen[batch.part]))
            full = is_full(room, batch.c.n, *projects)
            are_many |= full
            if at_once or full or self._has_many_labels():
                self._take(None if not full or keeps_stacks else functions, side, cores)
            if full and not keeps_stacks:
                self._model.empty_stacks()
        self._take(functions, side, cores if are_many else 1)

    def _take(self, functions: fp_project | None, side: int, cores: int) -> None:
        """Add the contexts so far and, with `functions`, at the same time their costs; drop their stacks."""
        for project in (self._contexts, *([functions] if functions else [])):
            self._fits(lib.fp_project_end(project, self._err))  # adds to the model, which the rest only reads
        workers = Workers()
        try:
            if functions and cores > 1:
                workers.give(partial(self._take_functions, functions, side))
            self._take_contexts()
            if functions and cores > 1:
                workers.result()
            elif functions:
                self._take_functions(functions, side)
        finally:
            workers.stop()
        self.labels.shrink(self._most(_LABEL_BYTES, len(self.columns)))

    def _put_waits(self, batch: Batch) -> None:
        """Samples with off-CPU time state when their thread waited."""
        if not self.in_time.room or self.tracks is None:
            return
        if batch.part not in self._waiting:
            types = [(type_.name, type_.unit) for type_ in self._model.parts[batch.part].value_types]
            found = (types.index(_OFF_CPU), self._model.function(_OFF_CPU[0])) if _OFF_CPU in types else (-1, 0)
            self._waiting[batch.part] = found
        value, function = self._waiting[batch.part]
        if value >= 0:
            self._waits = self._waits or Times(self._model)
            self._waits.put_waits(batch, value, function)

    def _take_contexts(self) -> None:
        most, status = self._most_contexts(len(self.columns)), lib.FP_FULL
        while status == lib.FP_FULL:
            status = self._fits(lib.fp_contexts_add(self.contexts, self._contexts, most, self._err))
            self._shrink(most, most // 2)
        lib.fp_project_empty(self._contexts)

    def _take_functions(self, project: fp_project, side: int) -> None:
        mine = [k for k, column in enumerate(self.columns) if column.side == side]
        events = [self.events[column.event] for column in self.columns]
        counted = calls_of([events[k] for k in mine])
        calls = -1 if counted < 0 else mine[counted]
        if mine:
            add_projected(project, events, [(self.costs[k], k, -1) for k in mine], calls, sparse=self._sparse)
        for k in mine:
            self.costs[k].calls_known &= calls >= 0
        self._fits(lib.fp_first_lines_stacks(self._lines, project))
        lib.fp_project_empty(project)

    def _has_many_labels(self) -> bool:
        return bool(self.labels.c.samples.n > self._most(_LABEL_BYTES, len(self.columns)))

    def _shrink(self, most: int, to: int) -> None:
        """Keeps the `to` largest contexts if there are more than `most`."""
        if self.contexts.nodes.n > most:
            self._fits(lib.fp_contexts_shrink(self.contexts, to, self._err))

    def _most(self, nbytes: int, n_values: int) -> int:
        """The number of sums to keep, each of `nbytes` and its values, in the memory that stacks leave."""
        return max(_LEAST_CONTEXTS, self._options[MAX_MEMORY] * 5 // 6 // (nbytes + 16 * n_values))

    def _most_contexts(self, n_values: int) -> int:
        """The number of contexts of stacks to keep: of two value types, as most CPU profiles have, in the whole limit.

        With the default limit these are 480,000 of one value type, 450,000 of two."""
        most = self._most(_CONTEXT_BYTES, n_values)
        return most if n_values != 2 else max(most, self._options[MAX_MEMORY] // (_CONTEXT_BYTES + 2 * 16))

    def _graph(self, side: int, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Add up the costs of functions and pass batches on."""
        current, found, recorded = -1, list[int](), list[tuple[int, int]]()
        for batch in batches:
            if batch.part != current:
                for column in found:
                    self.costs[column].end_part()
                current = batch.part
                part = self._model.parts[current]
                found = self._columns_of(side, "graph", part)
                recorded = [self.costs[column].begin_graph(part, value) for value, column in enumerate(found)]
            for value, column in enumerate(found):
                calls, inclusive = recorded[value]
                self.costs[column].put(batch, value, calls=calls, inclusive=inclusive)
            self._fits(lib.fp_first_lines_graph(self._lines, self._model.c, batch.c, self._err))
            yield batch
        for column in found:
            self.costs[column].end_part()

    # ---- results

    def end(self) -> None:
        del self._contexts, self._functions
        for costs in self.costs:
            costs.end()
        self._fits(lib.fp_contexts_end(self.contexts, self._err))
        if self._waits is not None and self.tracks is not None:
            self._waits.end()
            self.tracks.states = self._waits
        if self.times is not None:
            self.times.end()
            if self.n_calls:
                self._log.not_representable.drop("call-times")  # the page shows them in order of time
            if self.tracks and not self.times.mixed:
                self._log.not_representable.drop("events")  # it shows them, too
        if self._options[VALUE] is None and self.default is not None:
            has_cost = [False] * len(self.events)
            for column, costs in zip(self.columns, self.costs, strict=True):
                has_cost[column.event] |= not costs.is_zero
            self.default = settled_default(self.events, self.default, has_cost, self._log)

    @property
    def n_calls(self) -> int:
        """The number of calls, or of samples, that time order can show."""
        if self.times is not None:
            return 0 if self.times.mixed else self.times.c.n
        return 0 if self.sampled is None else self.in_time.n

    @property
    def sampled(self) -> int | None:
        """The value column of the samples in time order: the one shown first, or else that with most samples."""
        counts = [lib.fp_context_times_count(self.in_time, k) for k in range(len(self.columns))]
        if self.times is not None or not any(counts):
            return None
        return max(
            range(len(counts)), key=lambda k: (self.columns[k].event == self.default and counts[k] > 0, counts[k])
        )

    def samples(self, column: int, most: int) -> Samples:
        """At most `most` samples with times of a value column, and one of each thread, after `cut`."""
        times = self.in_time
        columns, step = ffi.new("struct fp_context_times_columns *"), ffi.new("uint32_t *")
        found = [(name, type_, ffi.new(f"{type_}[]", times.n)) for name, type_ in _SAMPLE_COLUMNS]
        for name, _, pointer in found:
            setattr(columns, name, pointer)
        n = lib.fp_context_times_take(times, column, min(most, times.n), columns, step)
        taken = [bytes(ffi.buffer(pointer))[: n * ffi.sizeof(type_)] for _, type_, pointer in found]
        return Samples(array("Q", taken[0]), array("q", taken[1]), array("I", taken[2]), step[0])

    def listed_arcs(self, function: int, into: bool, column: int) -> array[int]:
        """The arcs in `listed`, the most expensive in a value column first: the other function, time, inclusive calls,
        and calls, one arc after the other."""
        assert self.listed is not None
        n = lib.fp_page_callers_get(self.listed, function, into, column, self._arcs)
        return array("q", bytes(ffi.buffer(self._arcs, n * ffi.sizeof("struct fp_page_callers_arc"))))

    def first_line(self, function: int) -> int:
        """The first line of a function; 0 if unknown."""
        return int(self._lines.of[function]) if function < self._lines.cap else 0

    def calls_to_itself(self, columns: list[int]) -> dict[int, list[int]]:
        """By function: the cost of its calls to itself in stacks, counting only the outermost one per stack.

        Arcs of stacks have no cost within a recursion.
        """
        if self.estimated:
            return {}
        self.cut(0, (1 << 32) - 1)
        c = self.contexts
        n = int(c.n)
        ups, functions = list(c.up[0:n]) if n else [], list(c.function[0:n]) if n else []
        totals = [list(c.self[k * n : (k + 1) * n]) if k < c.n_values else [0] * n for k in columns]
        for i in range(n - 1, -1, -1):
            if ups[i]:
                for total in totals:
                    total[i - ups[i]] += total[i]
        found: dict[int, list[int]] = {}
        above: list[frozenset[int]] = []  # by context: the functions that have called themselves
        for i, (function, up) in enumerate(zip(functions, ups, strict=True)):
            outer: frozenset[int] = above[i - up] if up else frozenset()
            if function and up and functions[i - up] == function and function not in outer:
                outer |= {function}
                sums = found.setdefault(function, [0] * len(columns))
                for k, total in enumerate(totals):
                    sums[k] += total[i]
            above.append(outer)
        return found

    def cut(self, least: float, most: int, *, fits: bool = False) -> None:
        """Keep contexts with at least this share, at most `most`; with `fits` as many labels as fit a page."""
        if not self._has_labels:
            self._has_labels = True
            self.labels.choose(limited=fits)
        self.labels.begin()
        self._fits(lib.fp_contexts_cut(self.contexts, least, most, self._err))
        while fits and self.labels.fit():
            self._fits(lib.fp_contexts_cut(self.contexts, least, most, self._err))


class Samples(NamedTuple):
    """Columns of samples by thread and time; of each thread each `step`-th."""

    times: array[int]
    values: array[int]
    contexts: array[int]
    step: int


class Calls(NamedTuple):
    """Columns of calls, a lower bound of their durations, and the number left out."""

    begins: array[int]
    durations: array[int]
    threads: array[int]
    functions: array[int]
    depths: array[int]
    shortest: int
    left_out: int


_SAMPLE_COLUMNS = (("times", "uint64_t"), ("values", "int64_t"), ("contexts", "uint32_t"))
_CALL_COLUMNS = (
    ("starts", "uint64_t"),
    ("durations", "uint64_t"),
    ("threads", "uint32_t"),
    ("functions", "uint32_t"),
    ("depths", "uint32_t"),
)


class Times:
    """The calls of a timeline (csrc/bridges/rows/spans.h)."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._err = ffi.new("struct fp_err *")
        self.c = owned(lib.fp_spans_new(model.c, _MOST_CALLS), "the calls of a timeline")
        self.ticks_per_second: int | None = None
        self.mixed = False  # the inputs' clocks differ, so their times are not comparable

    def put(self, batch: Batch) -> None:
        clock = self._model.parts[batch.part].extra.get("ticks_per_second", 0)
        if self.ticks_per_second is None:
            self.ticks_per_second = clock
        self.mixed |= clock != self.ticks_per_second
        self._fits(lib.fp_spans_put(self.c, batch.c, self._err))

    def put_waits(self, batch: Batch, value: int, function: int) -> None:
        """Add the nanoseconds of a value of samples, from their times on, as calls of a function."""
        self._fits(lib.fp_spans_put_values(self.c, batch.c, value, function, self._err))

    def end(self) -> None:
        self._fits(lib.fp_spans_end(self.c))

    def longest(self, most: int) -> Calls:
        """The longest calls, at most `most`, sorted by thread and begin."""
        most = min(most, self.c.n)
        columns, shortest = ffi.new("struct fp_spans_columns *"), ffi.new("uint64_t *")
        found = [(name, type_, ffi.new(f"{type_}[]", most)) for name, type_ in _CALL_COLUMNS]
        for name, _, pointer in found:
            setattr(columns, name, pointer)
        n = lib.fp_spans_longest(self.c, most, columns, shortest)
        begins, durations, threads, functions, depths = (
            array("Q" if type_ == "uint64_t" else "I", bytes(ffi.buffer(pointer))[: n * ffi.sizeof(type_)])
            for _, type_, pointer in found
        )
        left_out = self.c.left_out + self.c.n - n
        return Calls(begins, durations, threads, functions, depths, max(shortest[0], self.c.pixel), left_out)

    def _fits(self, status: int) -> None:
        check_sums(status, self._err, self._model, "report", [])
