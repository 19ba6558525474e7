"""What carries a change: callers, lines, and labels of inputs.

f +30 % since 77ab01d:   main > serve > f      80 % of it
                         a.c:17                95 % of it
                         host=web7             100 % of it
                         compiler: gcc 12 -> gcc 13 at the same point
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from itertools import islice

from fastprof.bridges import INPUT_LABELS
from fastprof.bridges.rows.pair import stem
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import FastprofError
from fastprof.core.options import Options
from fastprof.core.unknown_names import known
from fastprof.inputs import is_file
from fastprof.verbs.diff import diff
from fastprof.verbs.diff import options as options_of_diff
from fastprof.verbs.trend.findings import Finding
from fastprof.verbs.trend.keys import Key, names_of, unpacked
from fastprof.verbs.trend.series import Points
from fastprof.verbs.trend.sums import Profile, Sums, ends

_PROFILES = 4  # read on each side of a change
_DEEPEST = 16  # functions of a path
_LISTED = 3
_LEAST = 0.1  # share of the change of what is listed
_ALMOST_ALL = 0.75  # share of the change on one value of a label that has several
_MOST_KEYS = 20
_ALL = 0.999  # share of the cost


class Cause(NamedTuple):
    """What carries a share of the change; of a label that changed at the same point, `share` is None."""

    kind: str  # "path", "line", "label" or "changed label"
    text: str
    share: float | None


def explained(
    findings: Sequence[Finding], sums: Sums, points: Points, chosen: Options, over: str | None
) -> dict[int, tuple[Cause, ...]]:
    """By number of the finding.  Reads some profiles before and after each of the first changes again."""
    found: dict[int, tuple[Cause, ...]] = {}
    read: dict[tuple[object, ...], dict[str, Any]] = {}
    for i, one in enumerate(findings):
        change = one.change
        mine: list[Cause] = [*_of_labels(one, sums, points, over)]
        only = next((tuple(cause.text.split("=", 1)) for cause in mine if cause.kind == "label"), None)
        # a drift is compared after its end
        sides = change.at, change.end if change.kind == "drift" and change.end < len(points.names) else change.at, only
        if sides not in read:
            read[sides] = _differences(points, *sides, chosen)
        name = names_of(sums.rows.keys[change.row])[0]
        lines = _lines(change.row, sums.rows.keys, read[sides].get("line"))
        mine = [*_paths(name, read[sides].get("arc")), *lines, *mine]
        if mine:
            found[i] = tuple(mine)
    return found


# ---- callers and lines


def _differences(
    points: Points, first: int, last: int, only: tuple[str, ...] | None, chosen: Options
) -> dict[str, Any]:
    """The differences by line and by call of profiles before the point `first` and from `last` on, as far as profiles
    have them.  `only`: of profiles with this label, a key and a value."""

    def some(sides: Iterable[Sequence[Profile]]) -> list[Any]:
        of = (p for side in sides for p in side if is_file(p.path) and (not only or p.labels.get(only[0]) == only[1]))
        return [p.path for p in islice(of, _PROFILES)]

    before, after = some(reversed(points.profiles[:first])), some(points.profiles[last:])
    if not before or not after:
        return {}
    known = {option.key for option in options_of_diff() if option not in INPUT_LABELS}
    known -= {"by", "n", "threshold", "significance", "fail_over"}
    given = {key: value for key, value in chosen.given.items() if key in known}
    several = {"significance": 1.0} if min(len(before), len(after)) > 1 else {}
    found = {}
    for by in ("arc", "line"):
        with suppress(FastprofError):  # a view without calls or lines
            found[by] = diff(before, after, by=by, n=0, normalize="total", **several, **given)  # type: ignore[arg-type]
    return found


def _changed(found: Any) -> list[tuple[Any, float]]:
    return [(row, float(new - old)) for row in found.rows for old, new in [found.sides(row)] if new != old]


def _paths(name: str, found: Any) -> list[Cause]:
    """The callers whose calls carry the change, each with its callers."""
    if found is None:
        return []
    into: dict[str, dict[str, float]] = {}  # builds that are not paired have several rows of one name
    for row, change in _changed(found):
        callers = into.setdefault(row.callee, {})
        callers[row.name] = callers.get(row.name, 0.0) + change
    mine = into.get(name, {})
    total = sum(mine.values())
    if not total:
        return []
    listed = []
    for caller, change in sorted(mine.items(), key=lambda one: -one[1] / total)[:_LISTED]:
        if change / total < _LEAST:
            break
        path = [name, caller]
        while len(path) < _DEEPEST:
            above = [one for one in into.get(path[-1], {}).items() if one[0] not in path and one[1] * change > 0]
            if not above:
                break
            path.append(max(above, key=lambda one: abs(one[1]))[0])
        listed.append(Cause("path", " > ".join(reversed(path)), min(1.0, change / total)))
    return listed


def _lines(at: int, keys: Sequence[Key], found: Any) -> list[Cause]:
    """The lines that carry the change of a row: not of files that may be those of others of its name."""
    if found is None:
        return []
    key = keys[at]
    name, its_file, _, object_, _ = names_of(key)
    same = (one for one in keys if name and one[0] == key[0] and one[1] != key[1])
    others = {file for _, file, of, *_ in same if _may_be_one(known(of), object_)}
    theirs = {end for other in others for end in ends(other)}
    mine: dict[tuple[str, int], tuple[str, float]] = {}  # of a file in another folder, and of several functions, too
    for row, change in _changed(found):
        its = row.file or its_file
        is_mine = row.name == name if name else row.file == its_file
        if row.line and its and is_mine and _is_nearest(its, its_file, theirs) and _may_be_one(row.object, object_):
            place = its.rpartition("/")[2], row.line
            of, so_far = mine.get(place, (its, 0.0))
            mine[place] = its if change > 0 else of, so_far + change
    total = sum(change for _, change in mine.values())
    if not total:
        return []
    listed = sorted(((change / total, of, line) for (_, line), (of, change) in mine.items()), reverse=True)
    return [Cause("line", f"{of}:{line}", min(1.0, share)) for share, of, line in listed[:_LISTED] if share >= _LEAST]


def _is_nearest(its: str, file: str, theirs: Set[bytes]) -> bool:
    """Whether a path shares more names at its end with `file` than with any of those whose `ends` are `theirs`."""
    mine = {*ends(its.encode())} & {*ends(file.encode())}
    return not theirs or bool(mine - theirs)


def _may_be_one(one: str, other: str) -> bool:
    return not one or not other or stem(one.encode()) == stem(other.encode())


# ---- labels of inputs


def _of_labels(one: Finding, sums: Sums, points: Points, over: str | None) -> Iterable[Cause]:
    """A value of a label that has almost all of the change; labels whose values changed at the same point."""
    change = one.change
    sides = points.profiles[max(0, change.at - 16) : change.at], points.profiles[change.at : change.end][:16]
    before, after = ([p for of in side for p in of] for side in sides)
    if not before or not after:
        return
    keys = {key for p in (*before, *after) for key in p.labels} - {over, "input"}
    costs: dict[int, float] = {}
    for key in sorted(keys)[:_MOST_KEYS]:
        values = [{p.labels.get(key, "") for p in side} for side in (before, after)]
        if not values[0] & values[1]:
            if len(values[0]) <= _LISTED and len(values[1]) <= _LISTED:
                texts = [", ".join(sorted(side)) or "(none)" for side in values]
                yield Cause("changed label", f"{key}: {texts[0]} -> {texts[1]}", None)
            continue
        if 1 < len(values[0] & values[1]) <= 64:
            yield from _of_values(key, one, sums, before, after, costs)


def _of_values(
    key: str, one: Finding, sums: Sums, before: list[Profile], after: list[Profile], costs: dict[int, float]
) -> Iterable[Cause]:
    changes: dict[str, float] = {}
    for sign, side in ((-1, before), (1, after)):
        by_value: dict[str, list[float]] = {}
        for p in side:
            if p.at not in costs:
                costs[p.at] = _cost(sums, p, one)
            by_value.setdefault(p.labels.get(key, ""), []).append(costs[p.at])
        for value, found in by_value.items():
            changes[value] = changes.get(value, 0.0) + sign * sum(found) / len(found)
    in_both: Mapping[str, float] = {value: changes[value] for value in changes if changes[value]}
    total = sum(in_both.values())
    if total and len(changes) > 1:
        value, largest = max(in_both.items(), key=lambda item: item[1] / total)
        if largest / total >= _ALMOST_ALL:
            yield Cause("label", f"{key}={value}", min(1.0, largest / total))


def is_all(one: Finding, sums: Sums, points: Points) -> bool:
    """Whether a row has all of the cost before and after its change: its share says nothing, without noise."""
    at = one.change.at
    near = (p for of in points.profiles[max(0, at - _PROFILES) : at + _PROFILES] for p in of if p.total)
    return all(_cost(sums, p, one) >= _ALL for p in near)


def _cost(sums: Sums, profile: Profile, one: Finding) -> float:
    rows, *columns, _ = unpacked(sums.kept(), len(sums.rows.keys), profile.at, profile.size)
    costs = columns[one.column]
    return sum(costs[i] for i, row in enumerate(rows) if row == one.change.row) / (profile.unit or 1)
