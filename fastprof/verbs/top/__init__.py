"""Ranks functions (or lines, files, objects, threads, labels) of profiles of any format by cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial

from fastprof import bridges, plan
from fastprof.core import lazy_re as re
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.chosen_value import ChosenValue
from fastprof.core.engine import Capabilities
from fastprof.core.errors import inputs_of, printable, usage_error
from fastprof.core.function_names import same
from fastprof.core.log import Log
from fastprof.core.messages import spelled
from fastprof.core.model import Model, ValueType
from fastprof.core.options import Option, Options, Pattern, Share, Text, Whole, Words, checked
from fastprof.core.unknown_names import known, text_of
from fastprof.verbs.function_costs import Arc, Durations, FunctionCosts
from fastprof.verbs.groups import Grouping, RowOption, keys_of
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.run import listed, run

if TYPE_CHECKING:
    from typing import NamedTuple as Record
    from typing import Unpack

    from fastprof.verbs.keywords import Inputs, Progress, ReadFormat, TopOptions
    from fastprof.verbs.top.matrix import Matrix

    Patterns = Sequence[tuple[re.Pattern[str], bool]]  # a pattern, and whether names must match it
else:
    from fastprof.core._typing import Record

N = RowOption("n", Whole(0, 1 << 31), 30, flag="-n", help="print N rows (default: 30; 0: all)")
SORT = RowOption(
    "sort",
    Text("KEY"),
    "self",
    help="sort by self (default), inclusive, calls or a value",
    details="The name of a value type sorts by self cost in that type.  Largest first.",
)
THRESHOLD: Option[float | None] = RowOption(
    "threshold",
    Share(),
    None,
    help="show rows with at least this share of the total",
    details="0.1% and 0.001 are the same.",
)
CUMULATIVE = RowOption.switch(
    "cumulative",
    help="show rows until they add up to --threshold",
    details="--threshold then defaults to 99%.",
)
FOCUS: Option[str | None] = RowOption("focus", Pattern(), None, help="show only rows whose name matches")
IGNORE: Option[str | None] = RowOption("ignore", Pattern(), None, help="hide rows whose name matches")


BY = RowOption(
    "by",
    Grouping("function", "line", "file", "object", "category", "thread", "thread,function", "label", "input", "branch"),
    "function",
    help="line, file, object, category, thread, label, branch",
    details="Default: function.  `category` is the object of a trace's calls.  "
    "label:KEY groups by the value of one label, label:KEY,KEY,... by several; the key "
    "`function` stands for the function of the sample, as in thread,function.  `input` is label:input with "
    "--label-input.",
)
TREE: Option[str | None] = RowOption(
    "tree",
    Words("callers", "callees", "both", metavar="WHAT", renamed={"caller": "callers", "calling": "callees"}),
    None,
    help="list callers, callees or both",
    details="For each function, with the costs and calls of each arc.  With --by label:KEY, the callees of a "
    "group are its outermost functions; with the key `function`, arcs stay within the group.",
)
CYCLES = RowOption.switch(
    "cycles",
    default=True,
    help="show members of a recursive cycle separately",
    details="By default, a cycle is one row.  Shown separately, its members' inclusive costs overlap.",
)
STATS = RowOption.switch(
    "stats",
    help="show min, median, 90 %, 99 % and max duration of calls",
    details="Durations of the calls of each function, including callees; for timelines.  "
    "Percentiles are at most 1 % off.",
)
MATRIX: Option[str | None] = RowOption(
    "matrix",
    Text("KEY"),
    None,
    help="compare values of label KEY, or input; outliers first",
    details="Functions by values of label KEY: each function's share of the self cost of each, the functions that "
    "differ most from the median first.  `input` compares inputs.  -o writes a heat map to .html, "
    "exact costs to .csv, .arrows and .parquet.",
)
OPTIONS = (N, SORT, THRESHOLD, CUMULATIVE, FOCUS, IGNORE, BY, TREE, CYCLES, STATS, MATRIX)

_ALL = (1 << 32) - 1
END = plan.End(
    "top",
    holds=Capabilities(unmerged=True, allocator=False),
    options=OPTIONS,
    performs=(bridges.FOLD_TO_GRAPH, bridges.PROJECT, bridges.SUM_PLACES, bridges.ONE_VALUE),
    fixes={bridges.PER_THREAD: False, bridges.INLINES: True, bridges.AGGREGATE: True},
    code="verbs.top:ranked",
)
_GROUPED = tuple(one for one in END.performs if one.target != "graph" or one.source == "graph")
_COLUMNS = ("self", "inclusive", "calls")


class Call(NamedTuple):
    """A caller or callee of a row's function.  A cycle is called `<cycle 1>` and has neither file nor object."""

    name: str
    file: str
    line: int  # the first one of the function; 0: unknown
    object: str
    cycle: int | None  # the number of the cycle that the function belongs to
    cost: int  # inclusive cost of these calls
    calls: int | None


class Row(NamedTuple):
    """One group: a function, line, file, object, thread or label.  Shares are parts of the total, from 0 to 1."""

    name: str  # of the function; "" for a file or an object; `<cycle 1>` for a cycle of functions
    file: str
    line: int  # of a function its first one; 0: unknown
    object: str
    self: int
    self_share: float
    cumulated_share: float  # of this row and those above
    inclusive: int | None  # None: the input lacks it
    inclusive_share: float | None
    calls: int | None
    second: int | None  # self cost in the value type to sort by, if different
    cycle: int | None
    callers: tuple[Call, ...] = ()  # with --tree
    callees: tuple[Call, ...] = ()
    durations: Durations | None = None  # with --stats, if a call of the function ended
    label: str = ""  # by label:KEY,function: the values of the labels; by thread,function: what the thread is called
    pid: int | None = None  # by thread: its ids, if they are known and numbers
    tid: int | None = None
    thread: str = ""  # and its name


class Top(Record):
    """The result of `top`.  Of `n_rows` rows, `n_cycles` are cycles of functions; those not in `rows` have the share
    `rest`."""

    by: str
    value: ValueType
    second: ValueType | None
    total: int
    rows: list[Row]
    n_rows: int
    n_cycles: int
    rest: float
    log: Log
    inputs: list[str]

    def columns(self) -> dict[str, list[Any]]:
        """The rows as columns, for data frames: the fields of a Row, and of `durations` with `stats`; of a matrix its
        rows, with the costs of each value of the label."""
        from fastprof.verbs.top.shown import columns

        return columns(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """`columns()` for readers of Arrow streams, with units."""
        from fastprof.verbs.top.shown import stream

        return stream(self)

    def __str__(self) -> str:
        """The table of `fastprof top`."""
        from fastprof.core.printed import printed

        return printed("cli.top:text", self)

    def _repr_html_(self) -> str:
        from fastprof.verbs.top.shown import html

        return html(self)

    stats: ValueType | None = None  # with --stats: the value type of durations
    matrix: Matrix | None = None  # with --matrix
    other_values: Sequence[str] = ()  # the names of the inputs' other value types, which `value` chooses


@cache
def options() -> list[Option[Any]]:
    """The options of `top`."""
    return plan.options_of(END)


def top(
    inputs: Inputs,
    *,
    from_: ReadFormat | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    **given: Unpack[TopOptions],
) -> Top:
    """The most expensive rows of one or several inputs together: paths, bytes or binary file objects.

    docs/top.md explains `n`, `sort`, `by`, `tree`, `threshold`, `cumulative`, `focus`, `ignore` and `cycles`.  With
    `matrix` the result has no rows, but a Matrix: functions by the values of a label.
    `value` chooses the value type.  `progress` is called with each input that is opened (docs/python.md).
    With `keep_going`, unreadable inputs are skipped and counted as losses.
    Errors: FastprofError and its kinds.

    >>> import fastprof
    >>> found = fastprof.top("tests/corpus/callgrind/good/cfi.callgrind", sort="inclusive")
    >>> [(row.name, row.self, row.inclusive) for row in found.rows], found.total
    ([('f', 5, 14), ('g', 9, 9)], 14)
    """
    chosen = checked(given, options, OPTIONS)
    patterns = [(re.compile(chosen[o]), o is FOCUS) for o in (FOCUS, IGNORE) if chosen[o] is not None]
    if chosen[CUMULATIVE] and chosen[SORT] in ("inclusive", "calls"):
        raise usage_error(
            "{--cumulative} adds up self costs, but {--sort:=}{column} does not sort by them", column=chosen[SORT]
        )
    if chosen[MATRIX] is not None:
        chosen = _of_matrix(chosen)
    if chosen[BY] == "input":
        chosen = chosen.with_given(**{BY.name: "label:input", bridges.LABEL_INPUT.name: True})
    if chosen[TREE] and chosen[BY] != "function" and not keys_of(chosen[BY]):
        raise usage_error("{--tree} shows functions, not {--by:=}{by}", by=chosen[BY])
    if chosen[STATS] and chosen[BY] != "function":
        raise usage_error("{--stats} shows functions, not {--by:=}{by}", by=chosen[BY])
    if chosen[STATS] and chosen[TREE]:
        raise usage_error("{--stats} shows no callers or callees: {--tree} has no effect")

    end = _grouped(chosen) if keys_of(chosen[BY]) else END
    if chosen[BY] == "branch":
        chosen = chosen.with_given(**({} if bridges.VALUE in chosen else {bridges.VALUE.name: "mispredicted"}))
        end = END._replace(view="stacks", performs=_GROUPED, holds=END.holds._replace(branches=True))
    found: Top = run(end, [listed(inputs)], chosen, from_, progress, {"patterns": patterns}, keep_going=keep_going)
    return found


def _grouped(chosen: Options) -> plan.End:
    """The end of `by` label:KEY or thread,function.  Only stacks have labels, so other views become stacks: of a graph,
    functions with the self costs of its own rows, and callers only for `tree`."""
    fixes = {**END.fixes, bridges.FRAMES: "function"}
    if chosen[BY] == "thread,function":
        fixes |= {bridges.PER_THREAD: True, bridges.LABELS: ("thread", "process")}
    if not chosen[TREE]:
        fixes[bridges.STACKS] = "self"
    return END._replace(view="stacks", performs=_GROUPED, fixes=fixes)


def _of_matrix(chosen: Options) -> Options:
    """The options of the sums for a matrix.  Errors: UsageError for options without a meaning there."""
    for option in (SORT, CUMULATIVE, BY, TREE, CYCLES, STATS):
        if option in chosen:
            raise usage_error(f"{{{option.flag}}} does not apply to {{--matrix}}: functions by a label's values")
    key = (chosen[MATRIX] or "").removeprefix("label:")  # as in --by
    if not key or key == "function" or "," in key:
        raise usage_error("{--matrix:=}{key} is not the key of one label", key=key)
    given: dict[str, Any] = {BY.name: f"label:{key},function", MATRIX.name: key}
    return chosen.with_given(**given, **({bridges.LABEL_INPUT.name: True} if key == "input" else {}))


def ranked(pipelines: Sequence[plan.Pipeline], model: Model, chosen: Options, log: Log, *, patterns: Patterns) -> Top:
    value = ChosenValue(chosen[bridges.VALUE], "--value")
    second = ChosenValue(chosen[SORT], "--sort", also=_COLUMNS) if chosen[SORT] not in _COLUMNS else None
    costs = FunctionCosts(model, chosen[BY], value, second, arcs=chosen[TREE] is not None, cycles=chosen[CYCLES])
    if chosen[STATS]:
        _check_timelines(pipelines)
        costs.keep_durations()
    for pipeline in pipelines:
        costs.add(pipeline, log)
        if not value.others and value.name is None and model.parts and model.parts[0].value_types:  # without rows
            value.of(model.parts[0], pipeline.view)
    costs.end()
    _warn(costs, chosen, log)
    if costs.groups:
        costs.groups.warn(MATRIX.flag if chosen[MATRIX] is not None else BY.flag, log)
    names = [input_.name for pipeline in pipelines for input_ in pipeline.inputs]
    if (key := chosen[MATRIX]) is not None:
        matches = partial(_matches, patterns)
        from fastprof.verbs.top.matrix import matrix_of

        cells = matrix_of(key, model, _cells(model, costs), matches, chosen[THRESHOLD] or 0, chosen[N])
        total = costs.sum("self")
        top_ = Top(chosen[BY], value.known(model), None, total, [], cells.n_rows, 0, 0.0, log, names)
        return top_._replace(matrix=cells, other_values=_others(value))
    finder = Finder(model, costs, chosen, patterns, value.known(model), second.known(model) if second else None)
    found = finder.found(log, names)._replace(other_values=_others(value))
    return found._replace(stats=model.parts[-1].value_types[0]) if chosen[STATS] else found


def _others(value: ChosenValue) -> list[str]:
    return [name for name in dict.fromkeys(t.name for t in value.others) if value.type and name != value.type.name]


def _cells(model: Model, costs: FunctionCosts) -> Iterator[tuple[str, int, int]]:
    """Value of the label, function and self cost.  Functions that are the same are one."""
    first: dict[tuple[int, ...], int] = {}
    own = costs.column("self")
    for i in costs.largest("self", _ALL):
        label, function = costs.group(i)
        yield label, first.setdefault(same(model, function), function), own[i]


def _matches(patterns: Patterns, name: str) -> bool:
    return all(bool(pattern.search(name)) == wanted for pattern, wanted in patterns)


def _check_timelines(pipelines: Sequence[plan.Pipeline]) -> None:
    """Errors: UsageError for an input without calls in time."""
    for pipeline in pipelines:
        if pipeline.view != "timeline":
            what = "{name}: {--stats} needs calls with begin and end, but the profile has only {rows}"
            rows = "sums of costs and calls" if pipeline.view == "graph" else "samples"
            raise usage_error(what, name=printable(next(iter(pipeline.inputs)).name), rows=rows)


def _warn(costs: FunctionCosts, chosen: Options, log: Log) -> None:
    """Warn of figures that the rows lack.  Errors: UsageError if they were requested."""
    model, value = costs.model, costs.value
    if costs.self_alone and (chosen[TREE] or chosen[SORT] in ("inclusive", "calls")):
        flag = spelled("--tree", "name") if chosen[TREE] else spelled("--sort", "=") + chosen[SORT]
        what = "{inputs}{flag}: the profile has only self costs, no calls"
        raise usage_error(what, inputs=inputs_of(model), flag=flag)
    if chosen[SORT] == "calls" and costs.count and not costs.calls_known:
        raise usage_error("{inputs}{--sort:=}calls: the profile does not count calls", inputs=inputs_of(model))
    for column, option in ((value, "--value"), (costs.second, "--sort")):
        if column and column.known(model) and column.missing:
            log.warn(REPORTED["partly-missing-value"], option=spelled(option, "name"), name=column.known(model).name)
    value.note(log)
    if costs.count and costs.is_zero:
        value.warn_of_zeros(log)


class _Place(NamedTuple):
    """The identity of a row: that of a function, and the values of labels."""

    name: str
    file: str = ""
    line: int = 0
    object: str = ""
    label: str = ""


class _Item(NamedTuple):
    """A row before its names are looked up."""

    place: _Place
    key: int
    figures: tuple[int, int, int, int]  # self, inclusive, calls, second
    id: int  # of a function, line, ...; -1: a thread or label
    cycle: int | None = None
    is_cycle: bool = False


class Finder:
    """Finds the rows to show among the sums."""

    def __init__(
        self,
        model: Model,
        costs: FunctionCosts,
        chosen: Options,
        patterns: Patterns,
        value: ValueType,
        second: ValueType | None,
        same: Finder | None = None,
    ) -> None:
        """`same`: a Finder of the same model, whose names are reused."""
        self._model, self._costs, self._chosen, self._patterns = model, costs, chosen, patterns
        self._value, self._second = value, second
        self._key = chosen[SORT] if chosen[SORT] in _COLUMNS else "second"
        self._columns = {name: costs.column(name) for name in ("self", "inclusive", "calls", "second")}
        self._places: dict[int, _Place] = same._places if same else {}
        self._cycles = self._numbered_cycles()
        self._threads = costs.threads()

    def cycle_rows(self) -> list[Row]:
        """The rows of cycles, in any order."""
        total = self._costs.sum("self") if self._cycles else 0
        return [self._row(item, total, 0) for item in self._cycle_items()]

    @property
    def has_cycles(self) -> bool:
        return bool(self._cycles)

    def cycle_of(self, function: int) -> int | None:
        """The number of the cycle that the function belongs to."""
        return self._cycles.get(self._costs.cycle_of(function)) if self._cycles else None

    def found(self, log: Log, paths: list[str]) -> Top:
        costs, chosen = self._costs, self._chosen
        named = self._named()
        total = costs.sum("self") + sum(item.figures[0] for item in named)
        by_share = THRESHOLD in chosen or chosen[CUMULATIVE]
        limit = _ALL if by_share and N not in chosen else chosen[N] or _ALL
        items = [self._item(i) for i in costs.largest(self._key, _ALL if self._patterns or by_share else limit)]
        items += [*self._cycle_items(), *named]
        count, cycles = costs.count + len(named) + len(self._cycles), len(self._cycles)
        if self._patterns:
            items = [
                item
                for item in items
                if _matches(self._patterns, item.place.name or item.place.file or item.place.object)
            ]
            count, cycles = len(items), sum(item.is_cycle for item in items)
        items.sort(key=lambda item: (-abs(item.key), item.place))
        if by_share:
            by_total = self._key in ("self", "inclusive")
            whole = total if by_total else costs.sum(self._key) + sum(item.key for item in named)
            items = self._above_threshold(items, whole)
        items = items[:limit]
        rows, cumulated = [], 0
        for item in items:
            if not item.is_cycle:
                cumulated += item.figures[0]
            rows.append(self._row(item, total, cumulated))
        rest = _share(total - cumulated, total)
        return Top(chosen[BY], self._value, self._second, total, rows, count, cycles, rest, log, paths)

    def _above_threshold(self, items: list[_Item], base: int) -> list[_Item]:
        threshold: float | None = self._chosen[THRESHOLD]
        if self._chosen[CUMULATIVE]:
            enough = abs(base) * (0.99 if threshold is None else threshold)
            n = reached = 0
            while n < len(items) and abs(reached) < enough:
                reached += 0 if items[n].is_cycle else items[n].key
                n += 1
            return items[:n]
        if threshold is None:
            return items
        return [item for item in items if abs(item.key) >= abs(base) * threshold]

    # ---- groups

    def _item(self, i: int) -> _Item:
        own, inclusive, calls, second = (column[i] for column in self._columns.values())
        figures = own, inclusive, calls, second
        return _Item(self._place(i), self._columns[self._key][i], figures, i, self.cycle_of(i))

    def _place(self, i: int) -> _Place:
        if i not in self._places:
            self._places[i] = self._found_place(i)
        return self._places[i]

    def _found_place(self, i: int) -> _Place:
        model, by = self._model, self._chosen[BY]
        if keys_of(by) and not self._chosen[TREE]:
            label, function = self._costs.group(i)
            if "function" not in keys_of(by):
                return _Place(label)
            f = model.get_function(function)
            name = text_of(f.name) or ("[unknown]" if function else "[no stack]")
            return _Place(name, known(f.file), f.line, known(f.object), label)
        if by == "file":
            return _Place("", file=known(model.string(i)))
        if by in ("object", "category"):
            return _Place("", object=known(model.string(model.row("objects", i)[0])))
        if by == "line":
            function, file, line = self._costs.place(i)
            f = model.get_function(function)
            return _Place(text_of(f.name), known(model.string(file)), line, known(f.object))
        f = model.get_function(i)
        label, name = self._costs.split(text_of(f.name))
        if label and not name and "function" not in keys_of(by):
            return _Place(label)
        return _Place(name, known(f.file), f.line, known(f.object), label)

    def _named(self) -> list[_Item]:
        """The items of threads and labels."""
        items = []
        for name, (value, second) in self._costs.named.items():
            figures = (value, 0, 0, second)
            items.append(_Item(_Place(name), second if self._key == "second" else value, figures, -1))
        return items

    # ---- cycles

    def _numbered_cycles(self) -> dict[int, int]:
        """The number of each cycle; the most expensive one is 1."""
        inclusive = self._columns["inclusive"]
        self._members = self._costs.cycle_members() if self._chosen[BY] == "function" else {}
        costs = {cycle: sum(inclusive[i] for i in members) for cycle, members in self._members.items()}
        as_much = Counter(abs(cost) for cost in costs.values())

        def key(cycle: int) -> tuple[int, _Place]:
            """Sort key.  Names are looked up only for members of equal cost: there may be very many."""
            cost = abs(costs[cycle])
            return -cost, min(map(self._place, self._members[cycle])) if as_much[cost] > 1 else _Place("")

        return {cycle: number for number, cycle in enumerate(sorted(costs, key=key), 1)}

    def _cycle_items(self) -> list[_Item]:
        items: list[_Item] = []
        calls: Counter[int] = Counter()
        for arc in self._costs.cycle_arcs(0) if self._cycles else ():
            calls[self._costs.cycle_of(arc.callee)] += arc.calls
        for cycle, number in self._cycles.items():
            sums = {name: sum(column[i] for i in self._members[cycle]) for name, column in self._columns.items()}
            sums["calls"] = calls[cycle]
            figures = sums["self"], sums["inclusive"], sums["calls"], sums["second"]
            items.append(_Item(_Place(f"<cycle {number}>"), sums[self._key], figures, cycle, number, True))
        return items

    # ---- rows

    def _row(self, item: _Item, total: int, cumulated: int) -> Row:
        costs, tree = self._costs, self._chosen[TREE]
        own, inclusive, calls, second = item.figures
        has_calls = (self._chosen[BY] in ("function", "line") or tree) and costs.calls_known
        pid, tid, thread = self._threads.get(item.place.label or item.place.name, (None, None, ""))
        return Row(
            *item.place[:4],
            label=item.place.label,
            pid=pid,
            tid=tid,
            thread=thread,
            self=own,
            self_share=_share(own, total),
            cumulated_share=_share(cumulated, total),
            inclusive=inclusive if costs.inclusive_known else None,
            inclusive_share=_share(inclusive, total) if costs.inclusive_known else None,
            calls=calls if has_calls else None,
            second=second if self._second else None,
            cycle=item.cycle,
            callers=self._calls(item, True) if tree in ("callers", "both") else (),
            callees=self._calls(item, False) if tree in ("callees", "both") else (),
            durations=costs.durations(item.id) if self._chosen[STATS] and not item.is_cycle else None,
        )

    def _calls(self, item: _Item, into: bool) -> tuple[Call, ...]:
        """The callers or callees of a row, as KCachegrind shows them.

        Functions outside a cycle call the cycle, not its members; the cycle calls its members, with their costs.
        """
        costs = self._costs
        found: dict[tuple[_Place, int | None], list[int]] = {}

        def add(place: _Place, cycle: int | None, cost: int, calls: int) -> None:
            sums = found.setdefault((place, cycle), [0, 0])
            sums[0] += cost
            sums[1] += calls

        def add_function(function: int, arc: Arc) -> None:
            add(self._place(function), self.cycle_of(function), arc.cost, arc.calls)

        if item.is_cycle and into:
            for arc in costs.cycle_arcs(item.id):
                add_function(arc.caller, arc)
        elif item.is_cycle:
            for member in self._members[item.id]:
                add(self._place(member), item.cycle, self._columns["inclusive"][member], 0)
        else:
            for arc in costs.arcs(item.id, into):
                other = arc.caller if into else arc.callee
                cycle = self.cycle_of(other)
                if not into and cycle and cycle != item.cycle:
                    add(_Place(f"<cycle {cycle}>"), None, arc.cost, arc.calls)
                else:
                    add_function(other, arc)
            if into and item.cycle:
                add(_Place(f"<cycle {item.cycle}>"), None, item.figures[1], 0)
        # without call counts, `calls` of arcs only counts sums
        known = costs.calls_known
        order = sorted(found.items(), key=lambda entry: (-abs(entry[1][0]), -entry[1][1] * known, entry[0][0]))
        return tuple(
            Call(*place[:4], cycle, cost, calls if costs.calls_known else None)
            for (place, cycle), (cost, calls) in order
        )


def _share(value: int, total: int) -> float:
    return value / total if total else 0.0
