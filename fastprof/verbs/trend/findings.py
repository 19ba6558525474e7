"""From changes of rows to findings: the origin of each, and cost that only moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from math import inf, sqrt

from fastprof.core._typing import NamedTuple
from fastprof.verbs.trend.keys import Key
from fastprof.verbs.trend.series import Change

_NEAR = 2  # points by which changes of one cause may be found apart
_EXPLAINED = 0.5  # share of an inclusive change that a change below it must have
_GONE = 0.1  # share of its cost that a function may keep that was renamed or inlined
_OFF = 0.15  # relative difference of what one function lost and others got
_DILUTED = 2  # standard errors by which a share may differ from what other shares explain
_MOST_PARTS = 8  # functions that one was divided into


class Finding(NamedTuple):
    """A change of one row: `others` are rows that changed with it.

    Of a cost shift, `others` are the rows that the cost went to; of other kinds, callers whose inclusive cost grew or
    fell because of it.
    """

    change: Change
    column: int  # 0: self cost, 1: inclusive cost
    others: tuple[tuple[int, Change], ...] = ()  # row, and how it changed
    is_shift: bool = False

    @property
    def kind(self) -> str:
        return "cost shift" if self.is_shift else self.change.kind

    @property
    def size(self) -> float:
        return abs(self.change.after - self.change.before)


def found(
    own: Sequence[Change],
    inclusive: Sequence[Change],
    keys: Sequence[Key],
    calls: Callable[[], dict[int, set[int]] | None],
    n_points: int,
) -> list[Finding]:
    """All findings.  `calls`: gives the callees of each row; None if they are unknown."""
    shifts, left = _shifts(own, keys)
    findings = shifts + [Finding(change, 0) for change in left]
    return _origins(findings, inclusive, calls, n_points)


# ---- shares that others change


def undiluted(changes: Sequence[Change], own: Sequence[Change] | None = None) -> list[Change]:
    """Without shares that only fell because another one grew at the same point, or grew because it fell: all shares
    change in proportion to the rest then.  `own`: for changes of inclusive cost, those of self cost."""
    kept: list[Change] = []
    # of two shares that are all of the cost, that which changed most
    for one in sorted(changes, key=lambda change: (-round(abs(change.z)), -abs(growth(change.before, change.after)))):
        if not _is_diluted(one, kept if own is None else own):
            kept.append(one)
    ids = set(map(id, kept))
    return [one for one in changes if id(one) in ids]


def _is_diluted(change: Change, origins: Iterable[Change]) -> bool:
    near = [one for one in origins if abs(one.at - change.at) <= _NEAR and one.kind == change.kind]
    near = [one for one in near if one.row != change.row]
    before, after = sum(one.before for one in near), sum(one.after for one in near)
    if not near or max(before, after) >= 1:
        return False
    grown, expected = change.after - change.before, change.before * (before - after) / (1 - before)
    return grown * expected > 0 and abs(grown - expected) <= _DILUTED * abs(grown / change.z)


# ---- cost that moved


def _lost(change: Change) -> float:
    return change.before - change.after


def _shifts(changes: Sequence[Change], keys: Sequence[Key]) -> tuple[list[Finding], list[Change]]:
    """Losses of one row that others got at the same point, in the same object; and the other changes."""
    steps = [change for change in changes if change.kind == "step"]
    losses = sorted((change for change in steps if _lost(change) > 0), key=_lost, reverse=True)
    free = [change for change in steps if _lost(change) < 0]
    used: set[int] = set()
    findings = []
    for loss in losses:
        near = [
            one
            for one in free
            if id(one) not in used and abs(one.at - loss.at) <= _NEAR and _same_place(keys[one.row], keys[loss.row])
        ]
        taken = _matching(loss, near, keys)
        if taken:
            used.update(map(id, [loss, *taken]))
            findings.append(Finding(loss, 0, tuple((one.row, one) for one in taken), is_shift=True))
    return findings, [change for change in changes if id(change) not in used]


def _same_place(a: Key, b: Key) -> bool:
    from fastprof.bridges.rows.pair import stem

    return not a[2] or not b[2] or stem(a[2]) == stem(b[2])


def _tolerance(loss: Change, gains: Iterable[Change]) -> float:
    gains = [*gains]
    noise = sqrt(sum(one.noise * one.noise for one in (loss, *gains)))
    return max(_OFF * _lost(loss), noise)


def _matching(loss: Change, gains: list[Change], keys: Sequence[Key]) -> list[Change]:
    """The rows that got what one lost: one row, or several if it is gone."""
    lost = _lost(loss)

    def alike(gain: Change) -> float:
        return _alike(keys[gain.row][0], keys[loss.row][0])

    ones = [gain for gain in gains if abs(-_lost(gain) - lost) <= _tolerance(loss, [gain])]
    if ones:
        return [max(ones, key=lambda gain: (alike(gain) > 0.6, -abs(-_lost(gain) - lost)))]
    if loss.after > _GONE * loss.before:
        return []
    parts: list[Change] = []
    # an inlined or split function: the parts are the most similar names, then the largest
    for gain in sorted(gains, key=lambda gain: (alike(gain), -_lost(gain)), reverse=True)[:_MOST_PARTS]:
        if -_lost(gain) > lost + _tolerance(loss, [*parts, gain]) - sum(map(_gain, parts)):
            continue
        parts.append(gain)
        if abs(sum(map(_gain, parts)) - lost) <= _tolerance(loss, parts):
            return parts
    return []


def _gain(change: Change) -> float:
    return -_lost(change)


def _alike(a: bytes, b: bytes) -> float:
    """How similar two names are, 0 to 1."""
    if a[:200] == b[:200]:
        return 1.0
    return SequenceMatcher(None, a[:200], b[:200], autojunk=False).ratio()


# ---- origins of inclusive costs


class _Levels:
    """The levels of rows at each point, as their changes have them: what changed a caller's cost, and when."""

    def __init__(self, changes: Iterable[Change], n_points: int) -> None:
        self._n, self._of = n_points, dict[int, list[float]]()  # by row: differences of sums
        for change in sorted(changes, key=lambda one: one.at):
            self.add(change)

    def add(self, change: Change) -> None:
        """Add a change, which is not before those of its row that are known."""
        sums, more = self._of.setdefault(change.row, [0.0] * (self._n + 1)), change.after - change.before
        at, end, so_far = change.at, min(change.end, self._n), 0.0
        for i in range(at, self._n):
            if change.kind == "drift":
                so_far += more * min(1.0, (i - at + 1) / max(1, end - at))
            elif change.kind == "step" or i < end:
                so_far += more
            sums[i + 1] += so_far

    def differences(self, change: Change, start: int) -> dict[int, float]:
        """By row: by how much its level differs between the points from `start` to a change, and those after it."""
        first, last = change.at, min(change.end, self._n)
        if change.kind == "drift" and last < self._n:
            first, last = last, self._n
        if not start < change.at or not first < last:
            return {}
        return {
            row: (sums[last] - sums[first]) / (last - first) - (sums[change.at] - sums[start]) / (change.at - start)
            for row, sums in self._of.items()
        }


def _origins(
    findings: list[Finding],
    inclusive: Sequence[Change],
    calls: Callable[[], dict[int, set[int]] | None],
    n_points: int,
) -> list[Finding]:
    """Attach changes of inclusive cost to the changes of self cost that cause them.  Of the rest, the deepest ones are
    findings, with the callers under them."""
    if not inclusive:
        return findings
    callees = calls()

    def is_below(row: int, caller: int) -> bool:
        return callees is None or row in _reached(callees, caller)

    findings = [*findings]
    rows = [{one.change.row, *(row for row, _ in one.others if one.is_shift)} for one in findings]
    levels = _Levels((c for f in findings for c in (f.change, *(o for _, o in f.others if f.is_shift))), n_points)
    starts = _starts(inclusive)
    # the deepest first: they cost least
    for change in sorted(inclusive, key=lambda one: (one.before + one.after, one.at)):
        below = {row for row in set().union(*rows) if is_below(row, change.row)}
        origin = _origin(change, findings, rows, below, levels.differences(change, starts[change.row, change.at]))
        if origin is None:
            findings.append(Finding(change, 1))
            rows.append({change.row})
            levels.add(change)
        elif not findings[origin].is_shift and findings[origin].change.row != change.row:
            one = findings[origin]
            if change.row not in {row for row, _ in one.others}:
                findings[origin] = one._replace(others=(*one.others, (change.row, change)))
    return findings


def _starts(changes: Iterable[Change]) -> dict[tuple[int, int], int]:
    """By row and point of a change: where the level before it begins."""
    found: dict[tuple[int, int], int] = {}
    last: dict[int, int] = {}
    for one in sorted(changes, key=lambda one: one.at):
        found[one.row, one.at] = last.get(one.row, 0)
        last[one.row] = one.at if one.kind == "step" else one.end
    return found


def _origin(
    change: Change, findings: Sequence[Finding], rows: Sequence[set[int]], below: set[int], by_row: dict[int, float]
) -> int | None:
    """The number of the finding that explains most of a change of inclusive cost; None: none does.

    That is one at the same point, or those of the rows `below`, which together differ by half as much or more.
    """
    b = change.after - change.before
    near = [
        (one.size, i)
        for i, one in enumerate(findings)
        if abs(one.change.at - change.at) <= _NEAR
        and rows[i] & below
        and (one.is_shift or ((one.change.after - one.change.before) * b > 0 and one.size >= _least(one, change)))
    ]
    if near:
        own = [i for _, i in near if findings[i].change.row == change.row]
        return own[0] if own else max(near, key=lambda one: (not findings[one[1]].is_shift, one))[1]
    mine = {row: by_row.get(row, 0.0) * (1 if b > 0 else -1) for row in below}
    if sum(mine.values()) < _EXPLAINED * abs(b):
        return None
    most = max(mine, key=mine.__getitem__)
    at_once = [i for i, of in enumerate(rows) if most in of]
    return min(at_once, key=lambda i: abs(findings[i].change.at - change.at))


def _least(one: Finding, change: Change) -> float:
    """How large a finding has to be that explains a change of inclusive cost: less if it is of the same row."""
    share = _EXPLAINED if one.change.row != change.row else _EXPLAINED / 2
    return share * abs(change.after - change.before)


def _reached(callees: dict[int, set[int]], caller: int) -> set[int]:
    """All rows below a caller, and itself.  Kept in the dictionary under -1 - caller."""
    key = -1 - caller
    if key not in callees:
        seen, todo = {caller}, [caller]
        while todo:
            new = callees.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        callees[key] = seen
    return callees[key]


def growth(before: float, after: float) -> float:
    """In percent; from 0 infinite."""
    return 100 * (after - before) / abs(before) if before else inf if after > 0 else -inf if after < 0 else 0.0
