"""Explains a profile of any format on one page: what was recorded, where the cost is, what stands out, what is
doubtful.

Functions and their figures are those of `top`, the hottest path comes from the contexts of `report`, and what was
recorded from `info`.  The input is read once for each of these, and for its lines and threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from math import sqrt

from fastprof import bridges, plan
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload
from fastprof.core.elided import shortened
from fastprof.core.engine import Capabilities
from fastprof.core.errors import UsageError
from fastprof.core.figures import quantity
from fastprof.core.log import Log
from fastprof.core.messages import counted
from fastprof.core.model import Model, ValueType
from fastprof.core.options import Option, Options, checked
from fastprof.core.parts import default_value
from fastprof.core.printed import printed
from fastprof.verbs import info as describing
from fastprof.verbs import top as ranking
from fastprof.verbs.diff import diff
from fastprof.verbs.diff.difference import Change, Value
from fastprof.verbs.explain.categories import KINDS, is_unnamed
from fastprof.verbs.explain.hot import Contexts, Step
from fastprof.verbs.page.contexts import Shown
from fastprof.verbs.page.figures import Places
from fastprof.verbs.run import path_of, run

if TYPE_CHECKING:
    from fastprof.verbs.keywords import ExplainOptions, Input, Progress, ReadFormat

_ROWS = 10  # functions
_LINES = 3
_CHANGES = 8
_FEW = 300  # samples
_SHORT = 0.01  # seconds
_NOTABLE = 0.05  # share of a kind of work that is reported
_WARNINGS = 4
_OF_PAGES = ("pruned-cost", "many-callers")  # warnings about --prune, which only pages have
_NAMED = 20_000  # functions whose names are looked at
_PLACE = 60  # characters of a name in a finding, without its arguments if it is longer

END = plan.End(
    "explain",
    holds=Capabilities(unmerged=True, allocator=False),
    options=(bridges.MAX_MEMORY,),
    performs=(bridges.FOLD_TO_STACKS, bridges.PROJECT, bridges.ESTIMATE, bridges.SUM_PLACES, bridges.ONE_VALUE),
    fixes={
        bridges.PER_THREAD: True,
        bridges.LABELS: None,
        bridges.INLINES: True,
        bridges.AGGREGATE: True,
        bridges.FRAMES: "function",
    },
    code="verbs.explain:explained",
)


class Function(NamedTuple):
    """A function, with the figures of `top`.  Shares are parts of the total, from 0 to 1."""

    name: str
    file: str
    line: int  # of a function its first one; 0: unknown
    object: str
    self: int
    self_share: float
    inclusive: int | None  # None: the input lacks it
    inclusive_share: float | None
    calls: int | None


class Finding(NamedTuple):
    """What stands out, or what is doubtful."""

    code: str  # stays the same in later versions
    text: str  # for people
    share: float | None  # of the total, if it is about a part of the cost
    function: str = ""  # of this function, or that began most of this kind of work
    caller: str = ""  # of that function


class Recorded(NamedTuple):
    """What was recorded."""

    file: str
    format: str
    view: str  # timeline, stacks or graph
    program: str  # command or programs; "": unknown
    creator: str
    time_ns: int | None  # start, since 1970
    seconds: float | None  # duration
    samples: int | None  # None: not samples, or not counted
    calls: int | None  # of a timeline, or counted by the profiler
    functions: int | None
    processes: int | None
    threads: int | None
    totals: dict[str, int]  # self costs, by value type
    units: dict[str, str]


class Explanation(NamedTuple):
    """The page about one profile."""

    recorded: Recorded
    value: ValueType
    total: int  # self cost
    path: list[Step]  # the hottest one, callers first
    estimated: bool  # the path follows from calls between functions, not from stacks
    functions: list[Function]  # by self cost
    n_functions: int
    lines: list[Function]  # by self cost; `line` is the line
    findings: list[Finding]  # what stands out, largest first
    doubts: list[Finding]
    log: Log

    def __str__(self) -> str:
        """The page of `fastprof explain`."""
        return printed("cli.explain:text", self)


class Comparison(NamedTuple):
    """The page about two profiles.  Costs of rows are one for each of `values`, of which `shown` is sorted by."""

    old: Recorded
    new: Recorded
    values: list[Value]
    shown: int
    changes: list[Change]  # by self cost
    n_changed: int
    inclusive: list[Change]  # by inclusive cost; empty: unknown
    path: list[Step]  # the hottest one of the new profile
    doubts: list[Finding]
    log: Log

    def __str__(self) -> str:
        """The page of `fastprof explain`."""
        return printed("cli.explain:text", self)


@cache
def options() -> list[Option[Any]]:
    """The options of `explain`."""
    return plan.options_of(END)


@overload
def explain(
    path: Input,
    new: None = None,
    *,
    from_: ReadFormat | None = None,
    progress: Progress | None = None,
    **given: Unpack[ExplainOptions],
) -> Explanation: ...
@overload
def explain(
    path: Input,
    new: Input,
    *,
    from_: ReadFormat | None = None,
    progress: Progress | None = None,
    **given: Unpack[ExplainOptions],
) -> Comparison: ...
def explain(
    path: Input,
    new: Input | None = None,
    *,
    from_: ReadFormat | None = None,
    progress: Progress | None = None,
    **given: Unpack[ExplainOptions],
) -> Explanation | Comparison:
    """Explain a profile, or what changed from `path` to `new`.

    Inputs are read several times; file objects and standard input are copied to temporary files.  `progress` is called
    when the last reading begins (docs/python.md).
    Errors: FastprofError and its kinds.

    >>> import fastprof
    >>> found = fastprof.explain("tests/corpus/callgrind/good/cfi.callgrind")
    >>> [(step.name, step.inclusive) for step in found.path], found.functions[0].name
    ([('f', 14), ('g', 9)], 'g')
    """
    checked(given, options())
    if path == new == "-":
        raise UsageError("standard input (-) can be read only once")
    how: dict[str, Any] = {"from_": from_, **given}
    with _again(path) as first:
        if new is None:
            return _explained(first, how, progress)
        with _again(new) as second:
            return _compared(first, second, how, progress)


@contextmanager
def _again(path: Any) -> Iterator[Any]:
    """An input that can be read several times."""
    path = path_of(path)
    if path != "-" and not hasattr(path, "read"):
        yield path
        return
    from fastprof.inputs.copied import copy_of, copy_of_input

    with copy_of_input() if path == "-" else copy_of(path) as copy:
        yield copy


def _explained(path: Any, how: Mapping[str, Any], progress: Progress | None) -> Explanation:
    described = _read(describing.END, path, {}, how)
    found: Explanation = _read(END, path, {}, how, progress, {"described": described})
    lines: list[Function] = []
    if found.recorded.view != "timeline" and found.total:
        by_line = _ranked(path, found, how, "line", _LINES)
        lines = [_function(row) for row in by_line.rows if row.line and row.self]
    of_threads = _of_threads(path, found, how) if (found.recorded.threads or 0) > 1 else []
    return found._replace(lines=lines, findings=[*of_threads, *found.findings])


def _read(
    end: plan.End,
    path: Any,
    given: Mapping[str, Any],
    how: Mapping[str, Any],
    progress: Progress | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Any:
    """The result of an end that reads the input; options that it does not have, or does not use, are left out."""
    known = {option.name for option in plan.options_of(end)} | {o.format for o in plan.known_options() if o.format}
    chosen = checked({name: value for name, value in {**how, **given}.items() if name in known}, plan.options_of(end))
    _rewound(path)
    return run(end, [[path]], chosen, how["from_"], progress, arguments, idle=lambda option: None)


def _ranked(path: Any, found: Explanation, how: Mapping[str, Any], by: str, n: int) -> ranking.Top:
    given = {"by": by, "n": n} | ({"value": found.value.name} if found.value.name else {})
    ranked: ranking.Top = _read(ranking.END, path, given, how, None, {"patterns": []})
    return ranked


def _of_threads(path: Any, found: Explanation, how: Mapping[str, Any]) -> list[Finding]:
    """The thread that has most of the cost."""
    ranked = _ranked(path, found, how, "thread", 1)
    if not ranked.rows or not ranked.total:
        return []
    (row,) = ranked.rows
    process, _, thread = row.name.partition(": ")
    name = thread if process == thread else row.name  # the main thread's
    text = f"one of {counted(ranked.n_rows, 'thread')} has {_percent(row.self_share)} of the cost: {name}"
    return [Finding("one-thread", text, row.self_share)] if row.self_share >= 0.5 and ranked.n_rows > 1 else []


def _rewound(*inputs: Any) -> None:
    for one in inputs:
        if hasattr(one, "seek"):
            one.seek(0)


# ---- one profile


def explained(
    pipelines: Sequence[plan.Pipeline], model: Model, chosen: Options, log: Log, *, described: Log
) -> Explanation:
    """What the rows of a profile show."""
    keeps = not all(pipeline.renews_stacks for pipeline in pipelines)
    shown = Shown(
        model, chosen, log, compared=False, prune=bridges.PRUNED, alone=len(pipelines) == 1, keeps_stacks=keeps
    )
    for pipeline in pipelines:
        shown.add(0, pipeline.view, pipeline.rows(model, log))
    shown.end()
    column = next((k for k, one in enumerate(shown.columns) if one.event == shown.default), None)
    view = pipelines[0].view
    recorded = _recorded(described, shown)
    doubts = [*_doubts(recorded, described, log)]
    if column is None:
        doubts.append(Finding("no-rows", "the profile has no costs", None))
        types = model.parts[0].value_types if model.parts else []
        value = types[default_value(model.parts[0], view)] if types else ValueType("")
        return Explanation(recorded, value, 0, [], False, [], 0, [], [], doubts, log)
    costs, value = shown.costs[column], shown.events[shown.columns[column].event]
    limits = checked({"n": _ROWS}, ranking.options())
    rows = ranking.Finder(model, costs, limits, [], value, None).found(log, [recorded.file])
    places = Places(model, shown)
    contexts = Contexts(places, shown, column)
    has_path = rows.total and not costs.self_alone
    findings = [*_findings(rows, contexts, estimated=shown.estimated)]
    doubts += _doubts_of_names(places, costs.column("self"), costs.largest("self", _NAMED), rows.total)
    alone = contexts.without_callers() / rows.total if rows.total else 0
    if view == "stacks" and alone > 0.5:
        text = f"{_percent(alone)} of the cost has no callers: the stacks were not recorded, or are cut"
        doubts.append(Finding("no-callers", text, alone))
    if contexts.is_cut:
        doubts.append(Finding("cut-contexts", "small contexts are left out of the path and of kinds of work", None))
    return Explanation(
        recorded,
        value,
        rows.total,
        contexts.path(rows.total) if has_path else [],
        shown.estimated,
        [_function(row) for row in rows.rows],
        rows.n_rows,
        [],
        findings,
        doubts,
        log,
    )


def _function(row: ranking.Row) -> Function:
    place = row.name or "[unknown]", row.file, row.line, row.object
    return Function(*place, row.self, row.self_share, row.inclusive, row.inclusive_share, row.calls)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _recorded(described: Log, shown: Shown | None) -> Recorded:
    facts = described.facts

    def number(*keys: str) -> int | None:
        return next((facts[key] for key in keys if isinstance(facts.get(key), int)), None)

    seconds = facts.get("seconds")
    if seconds is None and (ns := number("duration_ns")):
        seconds = ns / 1e9
    if seconds is None and "first_time_ns" in facts:
        seconds = (facts["last_time_ns"] - facts["first_time_ns"]) / 1e9 or None
    return Recorded(
        _text(facts["file"]),
        _text(facts["format"]),
        _text(facts["view"]),
        _text(facts.get("command") or facts.get("programs") or facts.get("program")),
        _text(facts.get("creator") or facts.get("product")),
        number("time_ns"),
        seconds,
        _samples(facts),
        number("calls") or _calls(shown) or None,
        number("functions"),
        number("processes"),
        number("threads"),
        facts.get("totals", {}),
        facts.get("units", {}),
    )


def _samples(facts: Mapping[str, Any]) -> int | None:
    """The number of samples: of heaps, which have objects instead, unknown."""
    if facts["view"] != "stacks":
        return None
    totals = facts.get("totals", {})
    default = str(facts.get("default_value_type", next(iter(totals), "")))
    names = ("samples", f"{default}_samples", default if default.endswith("samples") else "sample")
    return next((int(totals[name]) for name in names if name in totals), None)


def _calls(shown: Shown | None) -> int:
    return shown.n_calls if shown is not None else 0


def _findings(rows: ranking.Top, contexts: Contexts, *, estimated: bool) -> Iterator[Finding]:
    """What stands out, the largest share first."""
    total, found = rows.total, list[Finding]()
    if not total:
        return
    if rows.rows and abs(share := rows.rows[0].self_share) >= 0.2 and not rows.rows[0].name.startswith("<cycle"):
        name = _function(rows.rows[0]).name
        found.append(Finding("one-function", f"{name} itself has {_percent(share)} of the cost", share, name))
    for row in rows.rows:
        if row.name.startswith("<cycle") and (row.inclusive_share or 0) >= 0.2:
            share = row.inclusive_share or 0
            text = f"functions that call each other ({row.name}) have {_percent(share)}: `top --no-cycles` ranks each"
            found.append(Finding("cycle", text, share))
            break
    for kind in contexts.kinds():
        share = kind.cost / total
        if abs(share) >= _NOTABLE:
            about = " (estimated)" * estimated
            place = shortened(kind.function or "[unknown]", _PLACE)
            place += f" called by {shortened(kind.caller, _PLACE)}" * bool(kind.caller)
            part = ":" if kind.most == kind.cost else f", {_percent(kind.most / total)} in"
            text = f"{_percent(share)} is in {KINDS[kind.name]}{about}{part} {place}"
            found.append(Finding(kind.name, text, share, kind.function, kind.caller))
    yield from sorted(found, key=lambda one: (-abs(one.share or 0), one.code))


def _doubts(recorded: Recorded, described: Log, log: Log) -> Iterator[Finding]:
    facts = described.facts
    for key, what in (("lost_samples", "sample"), ("lost_records", "record")):
        if isinstance(n := facts.get(key), int) and n:
            yield Finding("lost", f"the profiler lost {counted(n, what)}", None)
    lost = facts.get("samples_lost")
    if isinstance(lost, dict) and (n := sum(one for one in lost.values() if isinstance(one, int))):
        yield Finding("lost", f"the profiler lost {counted(n, 'sample')}", None)
    n = recorded.samples
    if n is not None and 0 < n < _FEW:
        spread = 100 * sqrt(0.1 * 0.9 / n)
        what = f"only {counted(n, 'sample')}: a share of 10 % is uncertain by {spread:.0f} points"
        yield Finding("small-sample", what, None)
    if recorded.seconds is not None and 0 < recorded.seconds < _SHORT:
        took = quantity(round(recorded.seconds * 1e9), "nanoseconds")
        yield Finding("short-run", f"the run took only {took}, much of which may be its start", None)
    for counts in {id(one.losses): one.losses for one in (described, log)}.values():
        for text in counts.lines(flags=True):
            yield Finding("loss", f"lost: {text}", None)
        if counts:
            break
    warned = [*log.warned(flags=True), *described.warned(flags=True)]
    of_file = f"{recorded.file}: "
    texts = ((one["code"], one["text"].removeprefix(of_file)) for one in warned)
    seen = dict.fromkeys((code, text) for code, text in texts if code not in _OF_PAGES)
    for code, text in [*seen][:_WARNINGS]:
        yield Finding(code, text, None)
    if len(seen) > _WARNINGS:
        yield Finding(
            "more-warnings", f"{counted(len(seen) - _WARNINGS, 'more warning')}; `fastprof info` has all", None
        )


def _doubts_of_names(places: Places, own: Sequence[int], largest: Sequence[int], total: int) -> Iterator[Finding]:
    """The cost of functions without a name."""
    if not total:
        return
    unnamed, objects = 0, Counter[str]()
    for i in largest:
        place = places[i]
        if own[i] and is_unnamed(place.name):
            unnamed += own[i]
            objects[place.object] += own[i]
    if abs(share := unnamed / total) >= 0.01:
        (object_, _), *_ = objects.most_common(1)
        where = f", most of it in {object_}" if object_ else ""
        text = f"{_percent(share)} of the cost is in functions without a name{where} (`--symbols` names them)"
        yield Finding("no-names", text, share)


# ---- two profiles


def _compared(old: Any, new: Any, how: dict[str, Any], progress: Progress | None) -> Comparison:
    described = [_read(describing.END, path, {}, how) for path in (old, new)]
    _rewound(old, new)
    changed = diff([old], [new], None, n=_CHANGES, **how)
    inclusive: list[Change] = []
    if any(row.inclusive for row in changed.rows):
        _rewound(old, new)
        by_inclusive = diff([old], [new], None, n=_CHANGES, sort="inclusive", **how)
        inclusive = by_inclusive.changed()[:_CHANGES]
    value = changed.values[changed.shown].name if changed.values else None
    given = {"value": value} if value else {}
    page: Explanation = _read(END, new, given, how, progress, {"described": described[1]})
    before, after = (_recorded(one, None) for one in described)
    doubts: dict[Finding, None] = {}
    for side, one, name in ((before, described[0], "old"), (after, described[1], "new")):
        doubts |= {found._replace(text=f"{name}: {found.text}"): None for found in _doubts(side, one, Log())}
    seen = {one["text"] for side in described for one in side.warned(flags=True)}
    warned = [one for one in changed.log.warned(flags=True) if one["text"] not in seen]
    if before.seconds and after.seconds and not 0.5 < after.seconds / before.seconds < 2:
        took = [quantity(round(one * 1e9), "nanoseconds") for one in (before.seconds, after.seconds)]
        what = f"the runs took {took[0]} and {took[1]}: `diff --normalize` compares shares"
        if all(one["code"] != "other-duration" for one in warned):
            doubts[Finding("different-durations", what, None)] = None
    doubts |= {Finding(one["code"], one["text"], None): None for one in warned[:_WARNINGS]}
    return Comparison(
        before,
        after,
        changed.values,
        changed.shown,
        changed.changed()[:_CHANGES],
        changed.n_changed,
        inclusive,
        page.path,
        [*doubts],
        changed.log,
    )
