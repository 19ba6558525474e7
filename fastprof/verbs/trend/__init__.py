"""Finds which functions got slower, and since when: series of costs over commits, days or any label.

       1.prof  2.prof  3.prof  4.prof
f        20 %    20 %    24 %    24 %      step at 3.prof, +20 %
g        80 %    80 %    80 %    80 %      in proportion to the rest
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from math import isfinite

from fastprof import bridges, plan
from fastprof.core._typing import TYPE_CHECKING, Any, Unpack, overload
from fastprof.core.engine import Capabilities
from fastprof.core.errors import FastprofError, UsageError, usage_error
from fastprof.core.labels import NONE
from fastprof.core.log import Log
from fastprof.core.messages import counted, spelled
from fastprof.core.options import LENIENT, Option, Options, Share, Whole, checked
from fastprof.inputs import Progress
from fastprof.inputs.expand import expand, skipped
from fastprof.verbs.diff.gate import FAIL_OVER as OF_DIFF
from fastprof.verbs.diff.gate import noun
from fastprof.verbs.groups import RowOption, keys_of
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.run import listed
from fastprof.verbs.series_options import BY, CACHE, ORDER, OVER, PER, SERIES, WITHIN
from fastprof.verbs.trend.causes import Cause, explained, is_all
from fastprof.verbs.trend.findings import Finding as Found
from fastprof.verbs.trend.findings import found, growth, undiluted
from fastprof.verbs.trend.keys import Key, names_of
from fastprof.verbs.trend.points import Order, Over, season, usable
from fastprof.verbs.trend.reading import read
from fastprof.verbs.trend.result import Failure, Finding, Line, Point, Row, Trend
from fastprof.verbs.trend.series import Change, Points, Series
from fastprof.verbs.trend.sums import Profile, Sums

if TYPE_CHECKING:
    from fastprof.verbs.keywords import Inputs, ReadFormat, TrendOptions
    from fastprof.verbs.trend.kept import Cache
    from fastprof.verbs.trend.table import SeriesTable

N = RowOption("n", Whole(0, 1 << 31), 30, flag="-n", help="print N findings (default: 30; 0: all)")
THRESHOLD = RowOption(
    "threshold",
    Share(),
    0.0,
    help="show changes of at least this share of the total",
    details="0.1% and 0.001 are the same; with --per, of the largest value.",
)
SIGNIFICANCE = RowOption(
    "significance",
    Share(),
    0.1,
    help="probability of a false finding (default: 0.1)",
    details="If nothing changed, the probability of any finding; among many findings, four times the share of those "
    "that are noise.",
)
FAIL_OVER: Option[Any] = Option(
    "fail_over",
    OF_DIFF.kind,
    None,
    group="output",
    help="exit with 4 if a recent step exceeds it: 2 or main=5",
    details="In percent.  A step up or a drift of any function, or of the function NAME, that begins in the last "
    "--window points.  Cost that only moved does not count.",
)
WINDOW = Option(
    "window",
    Whole(1, 1 << 31),
    5,
    group="output",
    help="points in which --fail-over looks (default: 5)",
)
BISECT = Option.switch(
    "bisect",
    group="output",
    help="print the commits that are left to test",
    details="For each finding that --order lists: what lies after the last good point, up to the first bad one.",
)
EXPLAIN = RowOption(
    "explain",
    Whole(0, 1 << 31),
    5,
    help="explain the first N findings (default: 5)",
    details="By call paths, lines and labels of inputs that carry the change.  Some profiles before and after it are "
    "read again.",
)
ROWS = RowOption(
    "rows",
    Whole(0, 1 << 31),
    0,
    help="also list the values of the N rows that cost most",
    details="In --json, by point; in a page (.html), where the default is 200, as a heat map; in a table of Parquet or "
    "Arrow, where it is 1,000.",
)
_PRINTED = (N, THRESHOLD, EXPLAIN, ROWS)
_OWN = (*SERIES, *_PRINTED, SIGNIFICANCE, FAIL_OVER, WINDOW, BISECT)

END = plan.End(
    "trend",
    holds=Capabilities(unmerged=True, allocator=False),
    options=_OWN,
    performs=(bridges.FOLD_TO_GRAPH, bridges.PROJECT, bridges.SUM_PLACES, bridges.ONE_VALUE),
    fixes={bridges.PER_THREAD: False, bridges.INLINES: True, bridges.AGGREGATE: True},
    code="verbs.trend.sums:added",
)
_GROUPED = END._replace(
    view="stacks",
    performs=tuple(one for one in END.performs if one.target != "graph" or one.source == "graph"),
    fixes={**END.fixes, bridges.FRAMES: "function", bridges.STACKS: "self"},
)
LABELS_OF_INPUTS = {option.key for option in bridges.INPUT_LABELS}  # of no use to other verbs that read them again
_HOST = "host"
_NO_CACHE = "none"
_LEAST_POINTS = 4  # fewer do not distinguish a change from noise
_MOST_CELLS = 12_000_000  # values of rows at points that are tested, 8 bytes each


@cache
def options() -> list[Option[Any]]:
    """The options of `trend`."""
    return plan.options_of(END)


def trend(
    inputs: Inputs,
    *,
    from_: ReadFormat | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
    **given: Unpack[TrendOptions],
) -> Trend:
    """Which functions changed, and since when: profiles `over` a label, dates or the order of the inputs.

    docs/trend.md explains `over`, `order`, `by`, `per` and how changes are distinguished from noise.  A store
    stands for all its profiles.  With `keep_going`, unreadable inputs are skipped and counted as losses.
    `progress` is called with each input that is opened (docs/python.md).
    Errors: FastprofError and its kinds.
    """
    chosen = checked(given, options())
    if chosen[BISECT] and chosen[ORDER] is None:
        raise usage_error("{--bisect} needs the commits in between: {--order}")
    if WINDOW.key in chosen.given and chosen[FAIL_OVER] is None:
        raise usage_error("{--window} needs {--fail-over}")
    log = Log()
    with _read(inputs, from_, chosen, log, progress, keep_going=keep_going) as (sums, points, order):
        return _found(sums, points, order, chosen, log)


def series(
    inputs: Any,
    given: Mapping[str, Any],
    log: Log,
    *,
    from_: str | None = None,
    keep_going: bool = False,
    progress: Progress | None = None,
) -> SeriesTable:
    """The table `series` of all rows, without tests.  `given`: options of `trend`.  Errors: those of `trend`."""
    from fastprof.verbs.trend.table import SeriesTable

    chosen = checked(given, options())
    with _read(inputs, from_, chosen, log, progress, keep_going=keep_going) as (sums, points, _):
        rows, value = _tested(sums, len(points.names), log), sums.value.type
        of = [Series(sums, points, rows, 0, per=chosen[PER], is_tested=False)]
        if _has_inclusive(sums, chosen):
            of.append(Series(sums, points, rows, 1, per=chosen[PER], like=of[0], is_tested=False))
        about = {"over": chosen[OVER], "by": chosen[BY], "value": value.name if value else ""}
        about |= {"unit": value.unit if value else "", "per": chosen[PER] or ""}
        return SeriesTable(about, _described(points), _Lines(sums.rows.keys, _by_cost(sums, rows), of))


class _Lines(Sequence[Line]):
    """All rows.  Each is made when it is read."""

    def __init__(self, keys: Sequence[Key], rows: list[int], of: list[Series]) -> None:
        self._keys, self._rows, self._of = keys, rows, of

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Line: ...
    @overload
    def __getitem__(self, at: slice) -> list[Line]: ...
    def __getitem__(self, at: int | slice) -> Line | list[Line]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        row, own = self._rows[at], self._of[0]
        inclusive = self._of[1].values(row) if len(self._of) > 1 else None
        return Line(*names_of(self._keys[row]), own.values(row), inclusive)


@contextmanager
def _read(
    inputs: Any, from_: str | None, chosen: Options, log: Log, progress: Progress | None, *, keep_going: bool
) -> Iterator[tuple[Sums, Points, Order]]:
    """The sums of all profiles, and the points in their order."""
    over = Over(chosen[OVER])
    order = Order(over, chosen[ORDER])
    if keys_of(chosen[BY]) and chosen[PER] == "calls":
        raise usage_error("{--per:=}calls counts calls of functions, not of {--by:=}{by}", by=chosen[BY])
    inputs = listed(inputs)
    paths = _expanded(inputs, chosen, log, keep_going=keep_going)
    end = _GROUPED if keys_of(chosen[BY]) else END
    cache = _cache(inputs, len(paths), chosen, from_, log)
    sums = Sums(end, chosen[BY], chosen, from_, progress, per=chosen[PER], cache=cache)
    try:
        profiles = read(paths, sums, over, chosen, options(), log, keep_going=keep_going)
        yield sums, _points(usable(profiles, log), over, order, chosen, log), order
    finally:
        sums.close()


def _has_inclusive(sums: Sums, chosen: Options) -> bool:
    return chosen[BY] == "function" and sums.inclusive_known and chosen[PER] != "calls"


def _by_cost(sums: Sums, rows: Iterable[int]) -> list[int]:
    """Rows with the highest costs first."""
    return sorted(rows, key=lambda row: (-sums.totals[row], sums.rows.keys[row]))


def _cache(inputs: list[Any], n: int, chosen: Options, from_: str | None, log: Log) -> Cache | None:
    """The cache of --cache, or that next to a single input."""
    from fastprof.verbs.trend.kept import Cache, automatic

    given = chosen[CACHE]
    path = given if given != _NO_CACHE else None
    if given is None and len(inputs) == 1:
        path = automatic(inputs[0], n)
    if path is None:
        return None
    own = {option.name for option in _OWN} - {BY.name, PER.name}
    read = Options(**{key: value for key, value in chosen.given.items() if key not in own})
    try:
        cache = Cache(path, read, {"from": from_}, may_fail=given is None)
    except FastprofError:
        if given is None:
            return None
        raise
    if cache.is_busy and given is not None:
        log.warn(REPORTED["busy-cache"], path=path)
    return None if cache.is_busy else cache


def _expanded(inputs: list[Any], chosen: Options, log: Log, *, keep_going: bool) -> list[Any]:
    def failed(error: FastprofError) -> None:
        skipped(error, log)

    paths = expand(inputs, log.warn, failed if keep_going else None, lenient=chosen[LENIENT], stores=True)
    if chosen[CACHE] is not None:  # it may be in a folder of inputs
        own = {chosen[CACHE], f"{chosen[CACHE]}-journal"}
        names, places = {os.path.basename(path) for path in own}, {os.path.realpath(path) for path in own}

        def is_cache(path: str) -> bool:
            return os.path.basename(path) in names and os.path.realpath(path) in places

        paths = [path for path in paths if type(path) is not str or not is_cache(path) or path in inputs]
    if not paths:
        raise UsageError("no input given")
    return paths


def _points(profiles: Sequence[tuple[str, Profile]], over: Over, order: Order, chosen: Options, log: Log) -> Points:
    by_point: dict[str, list[Profile]] = {}
    for name, profile in profiles:
        by_point.setdefault(name, []).append(profile)
    if over.word == "order" and len(by_point) < len(profiles):
        raise UsageError("an input is given twice")
    names = order.sorted([*by_point], log)
    key = chosen[WITHIN]
    if key is not None and not any(key in profile.labels for _, profile in profiles):
        raise usage_error("{--within:=}{key}: no input has this label", key=key)
    groups = [group for group in keys_of(chosen[BY]) if any(group in profile.labels for _, profile in profiles)]
    hosts: dict[tuple[str, ...], int] = {}
    labels = groups or [key or _HOST]
    none = [""] * len(labels)
    of = [
        [hosts.setdefault(tuple(map(p.labels.get, labels, none)), len(hosts)) for p in by_point[name]] for name in names
    ]
    return Points(names, [by_point[name] for name in names], of, len(hosts), season(names), is_own=bool(groups))


def _found(sums: Sums, points: Points, order: Order, chosen: Options, log: Log) -> Trend:
    n, per = len(points.names), chosen[PER]
    rows = _tested(sums, n, log)
    if n < _LEAST_POINTS:
        log.warn(REPORTED["few-points"], points=counted(n, "point"), least=_LEAST_POINTS)
    _check_names(sums, chosen)
    _warn_of_labels(sums, chosen[BY], log)
    both = _has_inclusive(sums, chosen) and n > 1
    alpha = chosen[SIGNIFICANCE] / (1 + both)  # of each test
    own = Series(sums, points, rows, 0, per=per)
    changes = own.changes(alpha) if n > 1 else []
    if per is None and own.refine({change.row for change in undiluted(changes)}):
        changes = own.changes(alpha)
    if own.is_share:
        changes = undiluted(changes)
    noise, is_sampled, values = own.noise, own.is_sampled, {change.row: own.values(change.row) for change in changes}
    largest = _by_cost(sums, rows)[: chosen[ROWS]]
    lines = [Line(*names_of(sums.rows.keys[row]), own.values(row), None) for row in largest]
    inclusive: list[Change] = []
    if both:
        own.forget()  # one matrix at a time
        total = Series(sums, points, rows, 1, per=per, like=own)
        inclusive = total.changes(alpha, are_apart=False)  # callers of one function change together
        if total.is_share:
            inclusive = undiluted(inclusive, changes)
        more = {change.row: total.values(change.row) for change in inclusive}
        lines = [line._replace(inclusive=total.values(row)) for line, row in zip(lines, largest, strict=True)]
    all_ = found(changes, inclusive, sums.rows.keys, lambda: sums.callees(), n)
    if per is None:
        all_ = [one for one in all_ if not (one.column and is_all(one, sums, points))]
    all_.sort(key=lambda one: (-one.size, one.change.at, sums.rows.keys[one.change.row]))
    n_shown = sum(one.size >= chosen[THRESHOLD] for one in all_)  # the gate looks at all
    why = explained(all_[: min(n_shown, chosen[EXPLAIN])], sums, points, chosen, order.over.key)
    findings = [
        _finding(one, sums, points, (more if one.column else values)[one.change.row], order, chosen, why.get(i, ()))
        for i, one in enumerate(all_)
    ]
    failed, described = _failed(findings, chosen, n), _described(points)
    findings = [one._replace(inputs=_inputs(one, points, described)) for one in findings[:n_shown]]
    value = sums.value.type
    return Trend(
        chosen[OVER],
        chosen[BY],
        value.name if value else "",
        value.unit if value else "",
        per,
        described,
        len(sums.rows.keys),
        len(rows),
        findings[: chosen[N] or None],
        len(findings),
        noise,
        is_sampled,
        failed,
        sums.n_read,
        lines,
        log,
    )


def _described(points: Points) -> list[Point]:
    return [
        Point(
            name,
            len(mine),
            sum(profile.total for profile in mine),
            round(sum(profile.samples for profile in mine)) if all(profile.samples for profile in mine) else None,
            mine[0].name,
        )
        for name, mine in zip(points.names, points.profiles, strict=True)
    ]


def _tested(sums: Sums, n_points: int, log: Log) -> list[int]:
    """The rows that are tested: all, or those with the highest costs."""
    n, most = len(sums.rows.keys), max(1, _MOST_CELLS // max(1, n_points))
    if n <= most:
        return [*range(n)]
    rows = _by_cost(sums, range(n))
    left, all_ = sum(sums.totals[row] for row in rows[most:]), sum(sums.totals) or 1
    log.warn(REPORTED["untested-rows"], n=n - most, share=f"{100 * left / all_:.2g} %")
    return sorted(rows[:most])


def _finding(
    one: Found,
    sums: Sums,
    points: Points,
    values: list[float | None],
    order: Order,
    chosen: Options,
    why: tuple[Cause, ...],
) -> Finding:
    change, keys = one.change, sums.rows.keys
    name, file, line, object_, label = names_of(keys[change.row])
    percent = growth(change.before, change.after)
    others = []
    for row, other in one.others:
        its = names_of(keys[row])
        others.append(Row(its[0] or its[4] or its[1] or its[3], its[1], its[3], other.before, other.after))
    lasts = change.kind == "step"
    good = next((at for at in reversed(range(change.at)) if values[at] is not None), None)
    last_good = "" if good is None else points.names[good]
    since = points.names[change.at]
    left = tuple(order.left(last_good, since)) if chosen[BISECT] and last_good else ()
    return Finding(
        name,
        file,
        line,
        object_,
        label,
        "inclusive" if one.column else "self",
        one.kind,
        percent if isfinite(percent) else None,
        change.before,
        change.after,
        since,
        change.at,
        last_good,
        "" if lasts else points.names[min(change.end, len(points.names)) - 1],
        change.p,
        change.z,
        change.noise,
        values,
        tuple(others),
        why,
        left,
    )


def _inputs(one: Finding, points: Points, described: Sequence[Point]) -> tuple[str, ...]:
    """Names of a profile before a change and of one after it: of the host that has the change, else of one that both
    points have."""
    sides = [[*zip(points.profiles[at], points.hosts[at], strict=True)] for at in one.compared(described)]
    for cause in one.causes:
        if cause.kind == "label":
            key, _, value = cause.text.partition("=")
            of = [[(p, host) for p, host in side if p.labels.get(key, "") == value] for side in sides]
            sides = of if all(of) else sides
    before, after = sides
    hosts = {host for _, host in after}
    old, at = next(((p, host) for p, host in before if host in hosts), before[0])
    return old.name, next((p for p, host in after if host == at), after[0][0]).name


def _warn_of_labels(sums: Sums, by: str, log: Log) -> None:
    """Of --by: labels that no sample has."""
    keys, labels = keys_of(by), {key[4] for key in sums.rows.keys}
    for key in keys if labels else ():
        none = NONE if len(keys) == 1 else f"{key}={NONE}"
        if key not in ("function", "thread") and all(none in label for label in labels):
            log.warn(REPORTED["no-such-label"], option=spelled("--by", "name"), key=key, which=f"all are {NONE}")


def _check_names(sums: Sums, chosen: Options) -> None:
    """Errors: UsageError for a limit of something that no profile has."""
    for name in {name for name, _ in chosen[FAIL_OVER] or () if name}:
        if not any(name in _named(names_of(key)) for key in sums.rows.keys):
            raise usage_error("{--fail-over}: no profile has a {by} named {name}", by=noun(chosen[BY]), name=name)


def _named(names: tuple[str, str, int, str, str]) -> tuple[str, ...]:
    name, file, _, object_, label = names
    return name, file, object_, label


def _failed(findings: Sequence[Finding], chosen: Options, n_points: int) -> tuple[Failure, ...]:
    first = n_points - chosen[WINDOW]
    recent = [one for one in findings if one.kind in ("step", "drift") and one.is_worse and one.since_index >= first]
    failures = []
    for name, limit in chosen[FAIL_OVER] or ():
        for one in recent:
            its = one.name, one.file, one.object, one.label
            if name in ("", *its):
                changes = [(next(filter(None, its), ""), one.change)]
            else:  # callers, whose inclusive cost grew with it
                callers = [other for other in one.others if name in (other.name, other.file, other.object)]
                changes = [(name, growth(other.before, other.after)) for other in callers]
            failures += [
                Failure(who, limit, change if change is not None and isfinite(change) else None, one.since)
                for who, change in changes
                if change is None or change > limit
            ]
    return tuple(failures)
