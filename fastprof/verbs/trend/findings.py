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
) -> list[Finding]:
    """All findings.  `calls`: gives the callees of each row; None if they are unknown."""
    shifts, left = _shifts(own, keys)
    findings = shifts + [Finding(change, 0) for change in left]
    return _origins(findings, inclusive, calls)


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


def _origins(
    findings: list[Finding], inclusive: Sequence[Change], calls: Callable[[], dict[int, set[int]] | None]
) -> list[Finding]:
    """Attach changes of inclusive cost to the change of self cost that causes them.  Of the rest, the deepest ones are
    findings, with the callers under them."""
    if not inclusive:
        return findings
    callees = calls()

    def is_below(row: int, caller: int) -> bool:
        return callees is None or row in _reached(callees, caller)

    under: dict[int, list[tuple[int, Change]]] = {}
    left = []
    for change in inclusive:
        causes = [
            (one.size, i)
            for i, one in enumerate(findings)
            if one.column == 0 and _agree(one, change) and is_below(one.change.row, change.row)
        ]
        own = [i for _, i in causes if findings[i].change.row == change.row]
        if own:
            continue
        if causes:
            under.setdefault(max(causes)[1], []).append((change.row, change))
        elif not any(_is_of_shift(one, change, is_below) for one in findings):
            left.append(change)
    findings = [
        one._replace(others=one.others + tuple(sorted(under.get(i, ()), key=lambda o: o[1].before)))
        for i, one in enumerate(findings)
    ]
    return findings + _deepest(left, is_below)


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


def _agree(finding: Finding, change: Change) -> bool:
    """Whether a change of self cost may be the cause of one of inclusive cost."""
    one = finding.change
    if abs(one.at - change.at) > _NEAR or finding.is_shift:
        return False
    a, b = one.after - one.before, change.after - change.before
    return a * b > 0 and abs(a) >= _EXPLAINED * abs(b)


def _is_of_shift(finding: Finding, change: Change, is_below: Callable[[int, int], bool]) -> bool:
    """Whether an inclusive cost changed because cost moved."""
    if not finding.is_shift or abs(finding.change.at - change.at) > _NEAR:
        return False
    rows = [finding.change.row, *(row for row, _ in finding.others)]
    return change.row in rows or any(is_below(row, change.row) for row in rows)


def _deepest(left: list[Change], is_below: Callable[[int, int], bool]) -> list[Finding]:
    findings: list[Finding] = []
    for change in sorted(left, key=lambda one: (one.before + one.after, one.at)):
        for i, one in enumerate(findings):
            a, b = one.change.after - one.change.before, change.after - change.before
            near = abs(one.change.at - change.at) <= _NEAR
            if near and a * b > 0 and abs(a) >= _EXPLAINED * abs(b) and is_below(one.change.row, change.row):
                findings[i] = one._replace(others=(*one.others, (change.row, change)))
                break
        else:
            findings.append(Finding(change, 1))
    return findings


def growth(before: float, after: float) -> float:
    """In percent; from 0 infinite."""
    return 100 * (after - before) / abs(before) if before else inf if after > 0 else -inf if after < 0 else 0.0
