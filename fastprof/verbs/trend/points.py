"""The points of a trend, in order: labels, dates, commits, or the order of the inputs.

--over date           2026-03-01, 2026-03-02 ...     the day of the recording, else of the file
--over label:commit   9f31c2a, 77ab01d ...           as --order lists them, else as inputs come
--over order          1.prof, 2.prof ...             an input each
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, UsageError, errors_of, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import some
from fastprof.core.urls import is_url, shown
from fastprof.inputs.expand import _natural as natural
from fastprof.inputs.stored import Stored
from fastprof.verbs.reported import REPORTED
from fastprof.verbs.trend.sums import Profile

_NUMBERED = re.compile(r"[0-9]+(?:[-.:T][0-9]+)*Z?")
_HASH = re.compile(r"[0-9a-f]{7,64}")  # of a commit
_DAY = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[T ].*)?")
_LEAST_SEASON = 28  # points
_MOST_ORDER = 1 << 26  # bytes of a file of --order


class Over:
    """What points are: the word of --over."""

    def __init__(self, word: str) -> None:
        key = word.removeprefix("label:")
        self.key = None if word in ("order", "date", "time") else key
        self.word = word if self.key is None else "label"
        self.given = word
        if self.key == "":
            raise usage_error("{--over:=}label: is not followed by the key of a label")

    def settle(self, labels: Iterable[Mapping[str, str]]) -> None:
        """`date` and `time` are labels if inputs have them."""
        if self.needs_time() and any(self.word in of for of in labels):
            self.key, self.word = self.word, "label"

    def needs_time(self) -> bool:
        return self.word in ("date", "time")

    def moment(self, time_ns: int | None) -> str | None:
        """The point of `date` and `time`; None: it is unknown."""
        if time_ns is None:
            return None
        from datetime import UTC, datetime

        try:
            at = datetime.fromtimestamp(time_ns // 10**9, UTC)
        except (ValueError, OverflowError, OSError):
            return None
        return at.date().isoformat() if self.word == "date" else at.isoformat().replace("+00:00", "Z")


def times_of(paths: Sequence[Any]) -> dict[int, int]:
    """When inputs were written, in nanoseconds since 1970, by number: of profiles in stores what the index has."""
    found: dict[int, int] = {}
    by_store: dict[Any, list[tuple[str, int]]] = {}
    for number, path in enumerate(paths):
        if isinstance(path, Stored):
            by_store.setdefault(path.state, []).append((path.name or "", number))
        elif isinstance(path, str) and path != "-" and not is_url(path):
            try:
                found[number] = os.stat(path).st_mtime_ns
            except (OSError, ValueError):
                continue  # reading it reports that
    for state, named in by_store.items():
        named.sort()
        members = state.members(name for name, _ in named)
        for (_, number), one in zip(named, members, strict=True):
            if one is not None and one.about.get("mtime"):
                found[number] = one.about["mtime"]
    return found


_FEW = 50  # how many times fewer samples than usual a profile may have


def usable(profiles: Sequence[tuple[str, Profile]], log: Log) -> list[tuple[str, Profile]]:
    """(point, profile) of those that say something of shares: neither empty nor with far fewer samples than the median.

    If all are empty, all of them.
    """
    full = [one for one in profiles if one[1].total and one[1].unit]
    if not full:
        log.warn(REPORTED["all-empty-inputs"])
        return [*profiles]
    if len(full) < len(profiles):
        first = next(one.name for _, one in profiles if not (one.total and one.unit))
        log.warn(REPORTED["empty-inputs"], n=len(profiles) - len(full), first=first)
    samples = sorted(one.samples for _, one in full if one.samples)
    least = samples[len(samples) // 2] / _FEW if samples else 0
    few = [one.name for _, one in full if 0 < one.samples < least]
    if few:
        log.warn(REPORTED["sparse-inputs"], n=len(few), first=few[0])
    return [one for one in full if not 0 < one[1].samples < least]


class Order:
    """The order of points by name."""

    def __init__(self, over: Over, order: str | None) -> None:
        self.over = over
        if order is not None and over.key is None:
            raise usage_error("{--order} sorts the values of a label, not {--over:=}{over}", over=over.word)
        self.listed = _listed(order) if order is not None else None
        self.source = order

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.listed or ())}

    def place(self, name: str) -> int | None:
        """The place in the given list; also of a commit whose hash is abbreviated on either side."""
        found = self._places.get(name)
        if found is None and _HASH.fullmatch(name):
            same = [i for i, one in enumerate(self.listed or ()) if one.startswith(name) or name.startswith(one)]
            return same[0] if len(same) == 1 else None
        return found

    def sorted(self, names: Sequence[str], log: Log) -> list[str]:
        """The points in order, without those that the list lacks.  `names`: as inputs come.  Errors: UsageError."""
        names = [*dict.fromkeys(names)]
        if self.listed is not None:
            places = {name: self.place(name) for name in names}
            missing = [name for name in names if places[name] is None]
            if missing:
                log.warn(REPORTED["unordered-points"], n=len(missing), names=some(missing))
            if len(missing) == len(names):
                raise usage_error("{--order:=}{order} lists none of: {names}", order=self.source, names=some(names))
            return sorted((name for name in names if name not in missing), key=lambda name: places[name] or 0)
        if self.over.word != "order" and all(map(_NUMBERED.fullmatch, names)):
            return sorted(names, key=natural)
        if self.over.key is not None and len(names) > 1 and all(map(_HASH.fullmatch, names)):
            log.warn(REPORTED["unsorted-commits"])
        return names

    def left(self, before: str, after: str) -> list[str]:
        """Of the list, what lies after `before` up to `after`, which is known to be changed."""
        first, last = self.place(before), self.place(after)
        if first is None or last is None:
            return []
        return list((self.listed or ())[first + 1 : last + 1])


def _listed(order: str) -> list[str]:
    """Commits, oldest first, of `git log --format=%H` in the current clone or of a file in its form."""
    if order == "git":
        command = ["git", "log", "--topo-order", "--format=%H"]
        try:
            done = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise UsageError(f"`--order git`: git cannot be run: {error.strerror}") from None
        except subprocess.CalledProcessError as error:
            why = error.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise UsageError(f"`--order git`: git log: {why or f'exit code {error.returncode}'}") from None
        lines = done.stdout.decode("utf-8", "replace").split()
    else:
        with errors_of(order), open(order, "rb") as file:
            data = file.read(_MOST_ORDER + 1)
        if len(data) > _MOST_ORDER:
            raise FastprofError(f"{shown(order)}: is larger than {_MOST_ORDER >> 20} MiB, expected a list of points")
        # a hash may be followed by the subject, as of --oneline
        texts = data.decode("utf-8", "surrogateescape").splitlines()
        lines = [text.split(maxsplit=1)[0] for text in texts if text.strip()]
    if not lines:
        raise UsageError(f"{shown(order)}: lists no points")
    return [*dict.fromkeys(lines)][::-1]


def season(names: Iterable[str]) -> list[int]:
    """The weekday of each point, if points are days, one after the other, for at least four weeks; else []."""
    from datetime import date

    days = []
    for name in names:
        found = _DAY.fullmatch(name)
        if not found:
            return []
        try:
            days.append(date(*map(int, found.groups())).toordinal())
        except ValueError:
            return []
    gaps = sorted(b - a for a, b in pairwise(days))
    if len(days) < _LEAST_SEASON or gaps[0] < 1 or gaps[len(gaps) * 3 // 4] > 1:
        return []
    return [day % 7 for day in days]
