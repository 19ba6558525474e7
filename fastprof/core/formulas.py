"""Inherited events: linear formulas over the events that a profile counts.

    events: Ir Dr Dw
    event: Data = Dr + Dw              Data  -> [0, 1, 1]
    event: Est = Ir + 10*Data - 2 Dw   Est   -> [1, 10, 8]

A term is [+|-] [factor] [*] name, as KCachegrind reads it.  A name may be an
inherited event itself.  A formula with a stray character or an unknown name has
no value; KCachegrind would ignore that part of it.
"""

from collections.abc import Mapping, Sequence

from fastprof.core import lazy_re as re

# possessive: otherwise blanks that four pieces can match would be tried in each of them
_TERM = re.compile(r"\s*+([+-]?)\s*+(\d*+)\s*+\*?\s*+([A-Za-z_]\w*+)\s*+", re.ASCII)
_LARGEST = (1 << 63) - 1
_DEEPEST = 64  # events nested in events
_MOST = 1024  # maximum number of inherited events; each has a factor for each event
_SHOWN = 80  # characters of a name in a message; dependent events repeat it


def parse(formula: str) -> list[tuple[int, str]]:
    """The terms of a formula as (factor, name).  Errors: ValueError, which shows where the formula is wrong."""
    terms: list[tuple[int, str]] = []
    at = 0
    while at < len(formula) or not terms:
        match = _TERM.match(formula, at)
        if match is None:
            raise ValueError(f"formula {formula!r:.80} has {formula[at : at + 20]!r}, expected a term like 2 Dr")
        sign, digits, name = match.groups()
        if len(digits) > 19:
            raise ValueError(f"factor {digits[:24]} exceeds 2^63-1")
        factor = int(digits or 1)
        terms.append((-factor if sign == "-" else factor, name))
        at = match.end()
    return terms


def renamed_terms(formula: str, names: Mapping[str, str]) -> str:
    """The formula with other names of events."""
    return re.sub(r"[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), formula, flags=re.ASCII)


class Formulas:
    """Inherited events as sums of `events`, each with a factor.

    `inherited` maps names to formulas.  `factors` maps each inherited event that can be computed to a factor for each
    of `events`; `problems` maps the others to the reason.  If several events have a name used in a formula, each gets
    the factor: readers add them up.
    """

    def __init__(self, events: Sequence[str], inherited: Mapping[str, str]) -> None:
        self.factors: dict[str, list[int]] = {}
        self.problems: dict[str, str] = {}
        self._causes: dict[str, str] = {}  # by event: the root cause, without the chain of events that leads to it
        self._events = events
        self._inherited = inherited
        for name in inherited:
            if len(self.factors) < _MOST:
                self._resolve(name, ())
            elif name not in self.factors:
                self.problems.setdefault(name, f"only {_MOST:,} events are computed")

    def _resolve(self, name: str, path: tuple[str, ...]) -> list[int]:
        """The factors of an event, or [] if it cannot be computed.  `path`: the events whose formulas led to it."""
        if name in self._events:
            return [int(event == name) for event in self._events]
        if name in self.factors:
            return self.factors[name]
        if name in self.problems:
            return []
        try:
            self.factors[name] = self._sum(name, path)
        except ValueError as error:
            self.problems[name], self._causes[name] = error.args[0], error.args[-1]
            return []
        return self.factors[name]

    def _sum(self, name: str, path: tuple[str, ...]) -> list[int]:
        if len(path) >= _DEEPEST:
            raise ValueError(f"it is nested deeper than {_DEEPEST} events")
        total = [0] * len(self._events)
        for factor, part in parse(self._inherited[name]):
            if part == name or part in path:
                raise ValueError(f"its formula leads back to {part:.{_SHOWN}}")
            if part not in self._events and part not in self._inherited:
                raise ValueError(f"its formula needs {part:.{_SHOWN}}, which the profile does not have")
            factors = self._resolve(part, (*path, name))
            if part in self.problems:
                raise ValueError(f"its formula needs {part:.{_SHOWN}}, but {self._causes[part]}", self._causes[part])
            total = [a + factor * b for a, b in zip(total, factors, strict=True)]
        if any(abs(factor) > _LARGEST for factor in total):
            raise ValueError("a factor exceeds 2^63-1")
        return total

    def values(self, values: Sequence[int]) -> dict[str, int]:
        """The value of each inherited event, given the values of `events` (missing trailing values are 0)."""
        return {
            name: sum(factor * value for factor, value in zip(factors, values, strict=False))
            for name, factors in self.factors.items()
        }
