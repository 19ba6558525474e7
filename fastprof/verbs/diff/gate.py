"""The gate of a difference: limits for the growth of costs.

--fail-over 2               the total of any value type by 2 %
--fail-over Ir=2,main=5     the total of Ir by 2 %, the self cost of main in the shown value type by 5 %
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastprof.bridges.rows.pair import stem
from fastprof.core._typing import Any
from fastprof.core.errors import usage_error
from fastprof.core.options import Kind, Option
from fastprof.core.unknown_names import readable
from fastprof.verbs.diff.difference import Change, Difference, Failure, Runs, exceeds
from fastprof.verbs.groups import keys_of

Limits = tuple[tuple[str, float], ...]  # names, "" for any value type, and percent

_LIMIT = re.compile(r"(?:(.+?)=)?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)%?(?:,|$)", re.DOTALL)  # names may have commas


class _Limits(Kind):
    metavar = "PERCENT"
    typed = "float | str"
    values = "PERCENT|NAME=PERCENT,..."

    def check(self, value: Any) -> Limits:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
            return (("", float(value)),)
        if not isinstance(value, str):
            raise ValueError(f"{value!r:.80} is not a percentage of 0 or more")
        found, at = [], 0
        while at < len(value):
            match = _LIMIT.match(value, at)
            if not match:
                break
            found.append((match[1] or "", float(match[2])))
            at = match.end()
        if at < len(value) or not found:
            raise ValueError(f"{value!r:.80} is neither a percentage of 0 or more nor NAME=PERCENT,...")
        return tuple(found)

    def parse(self, text: str) -> str:
        self.check(text)
        return text


FAIL_OVER: Option[Any] = Option(
    "fail_over",
    _Limits(),
    None,
    group="output",
    help="exit with 4 if a total grew by more: 2 or Ir=2,main=5",
    details="PERCENT: any total.  NAME=PERCENT: the total of a value type, else the self cost of a function (line, "
    "file or object; files and objects also by base name without version), or with --sort=inclusive its inclusive "
    "one, in the shown value type.  Of several profiles a side, growth within the noise passes.",
)


def noun(by: str) -> str:
    """What a row is."""
    keys = keys_of(by)
    return "function" if "function" in keys else f"value of label {', '.join(keys)}" if keys else by


def short_of(name: str) -> tuple[str, ...]:
    """The names by which a file or object is called: its path, its base name, and that without version and hash."""
    base = name.rpartition("/")[2]
    return name, base, stem(base.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def failed(found: Difference, limits: Limits, watched: Iterable[Change] | None, alpha: float) -> tuple[Failure, ...]:
    """The costs that grew by more than their limits.  `watched`: the rows named in limits; None if a file is written.

    Errors: UsageError for a name that neither profile has.
    """

    def noise(runs: Runs | None) -> bool:
        return runs is not None and runs.p is not None and runs.p > alpha

    failures: list[Failure] = []
    values, rows = {value.name for value in found.values}, [*(watched or ())]
    for name, limit in limits:
        if not name or name in values:
            runs = found.runs or [None] * len(found.values)
            of = [pair for pair in zip(found.values, runs, strict=True) if name in ("", pair[0].name)]
            grown = [value for value, its in of if exceeds(value.old, value.new, limit) and not noise(its)]
            failures += [Failure(value.name, limit, value.old, value.new) for value in grown]
            continue
        if watched is None:
            what = "{--fail-over}: {name} is not a value type, and rows written with {-o} are not checked"
            raise usage_error(what, name=name)
        printed = readable(name)  # as in rows
        is_place = found.by in ("file", "object")
        mine = [row for row in rows if row.name == printed or (is_place and printed in short_of(row.name))]
        if not mine:
            what = "{--fail-over}: neither profile has a value type or a {by} named {name}"
            raise usage_error(what, by=noun(found.by), name=name)
        for row in mine:
            old, new = found.sides(row)
            if exceeds(old, new, limit) and not noise(row.runs):
                failures.append(Failure(name, limit, old, new))
    return tuple(failures)
