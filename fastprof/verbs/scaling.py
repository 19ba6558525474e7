"""Scales the costs of compared profiles, and warns if they are not comparable.

diff a.prof b.prof --normalize total      b's costs times (total of a / total of b), by value type
diff 1.prof 2.prof -- 3.prof 4.prof       (1 + 2) / 2 against (3 + 4) / 2; --normalize scales each to the mean of 1, 2
diff week.prof day.prof --base-of 7       week / 7 against day
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lcm

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import printable, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import Message
from fastprof.core.model import Part, ValueType
from fastprof.core.options import Option, Options, Text, ValueOption, Whole
from fastprof.verbs.reported import REPORTED

if TYPE_CHECKING:
    from fractions import Fraction

NORMALIZE: Option[str | None] = ValueOption(
    "normalize",
    Text("WHAT"),
    None,
    help="scale NEW by total, duration, samples or a value type",
    details="To OLD.  `total`: each value type by its totals; `duration`: all by the durations of the recordings; "
    "`samples`: by the numbers of samples; the name of a value type: by its totals.  Like `pprof -normalize`.",
)
BASE_OF = ValueOption(
    "base_of",
    Whole(1, 1 << 31),
    1,
    help="divide the costs of OLD, a sum of N runs, by N",
)
OPTIONS: tuple[Option[Any], ...] = (NORMALIZE, BASE_OF)
_DIFFERENT = 0.01  # relative difference of durations above which a warning is given
_MOST = 1 << 61  # of weights in C


# Types of periods by which values are already multiplied: heaps and waits for locks are the same at any rate.
_ESTIMATED = (("space",), ("contentions",))


class Side:
    """Facts about a profile, known after its last row."""

    def __init__(self, name: str, n_inputs: int, parts: Sequence[Part], totals: dict[int, int]) -> None:
        self.name, self.totals = name, totals
        durations = [part.extra.get("duration_ns", 0) for part in parts]
        self.duration = sum(durations) if all(durations) else 0
        self.periods = {
            (part.extra["period"], *of)
            for part in parts
            if part.extra.get("period") and (of := part.extra.get("period_type", ()))[:1] not in _ESTIMATED
        }
        merged = [part.extra["merged"]["parts"] for part in parts if "merged" in part.extra]
        self.n_inputs = sum(merged) if merged else n_inputs


class Weights:
    """The factor of costs for each run and value type.  The first `n_old` of `runs` are of the old side."""

    def __init__(self, runs: Sequence[Side], n_old: int, events: Sequence[ValueType], options: Options) -> None:
        self._runs, self._n_old, self._events = runs, n_old, events
        self._options, self._how, self._base_of = options, options[NORMALIZE], options[BASE_OF]
        self._measured: dict[int, list[Fraction]] = {}

    @staticmethod
    def needed(n_runs: int, options: Options) -> bool:
        """Whether any weight may be other than 1."""
        return n_runs > 2 or options[NORMALIZE] is not None or options[BASE_OF] != 1

    def of(self, event: int) -> Sequence[Fraction | int]:
        """The weight of each run; weighted costs of a side add up to its mean."""
        if not self.needed(len(self._runs), self._options):
            return [1] * len(self._runs)
        n_old, n_new = self._n_old, len(self._runs) - self._n_old
        return [
            factor / (n_old * self._base_of if run < n_old else n_new) for run, factor in enumerate(self.scale(event))
        ]

    def scale(self, event: int) -> list[Fraction]:
        """The scale of each run, without dividing by the number of runs."""
        from fractions import Fraction

        if self._how is None:
            return [Fraction(1)] * len(self._runs)
        key = event if self._how == "total" else -1
        if key not in self._measured:
            measures = [self._measure(run, event) for run in self._runs]
            base = Fraction(sum(measures[: self._n_old]), self._n_old)
            self._measured[key] = [base / measure if measure else Fraction(0) for measure in measures]
        return self._measured[key]

    def _measure(self, run: Side, event: int) -> int:
        """What is made equal.  Errors: UsageError if it is unknown or 0; a value type of total 0 stays 0."""
        if self._how == "total":
            return run.totals.get(event, 0)
        measure = run.duration if self._how == "duration" else run.totals.get(self._counted(), 0)
        if not measure:
            what = "{file}: {--normalize:=}{how}: the profile has no {how}, or they are 0"
            raise usage_error(what, file=printable(run.name), how=self._how)
        return measure

    def _counted(self) -> int:
        names = [event.name for event in self._events]
        found = [e for e, name in enumerate(names) if name == self._how]
        if not found and self._how == "samples":
            found = [e for e, event in enumerate(self._events) if event.unit == "count" and "sample" in event.name]
        if not found and self._how == "samples":
            what = "{--normalize:=}samples: the profiles have no value type that counts samples, only {names}"
            raise usage_error(what, names=", ".join(names))
        if not found:
            what = "{--normalize:=}{how}: expected total, duration, samples or a value type: {names}"
            raise usage_error(what, how=self._how, names=", ".join(names))
        return found[0]

    def note(self, log: Log) -> None:
        """Unless costs are scaled, warn of causes other than the program that make them differ."""
        if self._how is None:
            note(self._runs[: self._n_old], self._runs[self._n_old :], log, summed=self._base_of != 1)


def note(old: Sequence[Side], new: Sequence[Side], log: Log, *, summed: bool = False, scales: bool = True) -> None:
    """Warn of causes other than the program that make costs differ.  `summed`: OLD is known to be a sum of profiles;
    `scales`: the verb has options for it."""

    def hint(text: str) -> Message:
        return Message("; " + text if scales else "")

    durations = [_mean([run.duration for run in side]) for side in (old, new)]
    if all(durations) and abs(durations[0] - durations[1]) > _DIFFERENT * max(durations):
        seconds, scaled = [*map(_seconds, durations)], hint("{--normalize:=}duration scales NEW")
        log.warn(REPORTED["other-duration"], old=seconds[0], new=seconds[1], hint=scaled)
    periods = [set[tuple[Any, ...]]().union(*(run.periods for run in side)) for side in (old, new)]
    if all(periods) and periods[0] != periods[1]:
        listed, scaled = [*map(_listed, periods)], hint("{--normalize:=}total scales NEW")
        log.warn(REPORTED["other-period"], old=listed[0], new=listed[1], hint=scaled)
    inputs = [_mean([run.n_inputs for run in side]) for side in (old, new)]
    if inputs[0] != inputs[1] and not summed:
        numbers, scaled = [f"{n:,g}" for n in inputs], hint("{--normalize:=}total or {--base-of} scales them")
        log.warn(REPORTED["other-number"], old=numbers[0], new=numbers[1], hint=scaled)


def in_integers(weights: Sequence[Fraction | int]) -> tuple[list[int], int]:
    """Weights as integers and their common divisor, below 2^62; rounded if they do not fit."""
    divisor = lcm(*(weight.denominator for weight in weights))
    factors = [int(weight * divisor) for weight in weights]
    largest = max(divisor, *map(abs, factors))
    if largest > _MOST:
        shift = largest.bit_length() - _MOST.bit_length() + 1
        factors, divisor = [factor >> shift for factor in factors], max(1, divisor >> shift)
    return factors, divisor


def _mean(numbers: Iterable[float]) -> float:
    numbers = [*numbers]
    return sum(numbers) / len(numbers) if all(numbers) else 0


def _seconds(duration_ns: float) -> str:
    return f"{duration_ns / 1e9:.4g} s"


def _listed(periods: Iterable[tuple[Any, ...]]) -> str:
    return ", ".join(sorted(" ".join(map(str, (f"{period[0]:,}", *period[2:]))) for period in periods)[:3])
