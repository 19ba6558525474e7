"""Nests small callees in the profiles of their callers.

In a profile of a program built with -O0 every function stands alone, with exact counts.  A compiler that inlines from
the bottom up then fills small functions with their large, rarely needed callees first, and they are too large for
hundreds of callers (QuickJS: 94.7 instead of 84.3 million instructions).  Nested levels say what belongs together:

    main:100:1              main:160:1
     3: 20 get:20            3: 20
    get:60:20         ->     3: get:60
     1: 20                    1: 20

A callee's counts are divided by the number of calls from each site; what is nested is taken off the callee's own
record.
"""

from __future__ import annotations

from fastprof.core._typing import TYPE_CHECKING
from fastprof.formats.pgo.levels import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastprof.formats.pgo.join import Site
    from fastprof.formats.pgo.levels import Profile

SMALL = 120  # bytes of code at -O0: getters, wrappers, operators
_DEEPEST = 12
_MOST_LEVELS = 1 << 20  # of all functions; after that nothing more is nested
_ROUNDS = 8


class _Nesting:
    """Shares of functions that are left after one round, from those before it."""

    def __init__(self, profile: Profile, sites: Sequence[Site], sizes: dict[str, int], most: int) -> None:
        self._profile = profile
        self._small = {
            name
            for name, level in profile.functions.items()
            if level.head and 0 < sizes.get(name, 0) <= most and not level.nested
        }
        callers = {id(level): name for name, level in profile.functions.items()}
        self._sites: dict[str, list[Site]] = {}
        for site in sites:
            caller = callers.get(id(site.caller))
            if caller is not None and site.name in self._small:
                self._sites.setdefault(caller, []).append(site)
        self.left = dict.fromkeys(profile.functions, 1.0)
        self._nested: dict[str, float] = {}
        self._n = 0

    def round(self, levels: dict[str, Level] | None = None) -> bool:
        """Measure what is nested, or make the `levels`.  Whether shares changed."""
        self._nested, self._n = {}, 0
        for name, left in self.left.items():
            if left > 0:
                level = self._copy(name, left, (name,), levels is not None)
                if levels is not None and level.total:
                    level.head = round(self._profile.functions[name].head * left)
                    levels[name] = level
        before = self.left
        self.left = dict(before)
        for name, calls in self._nested.items():
            left = 1 - calls / self._profile.functions[name].head
            self.left[name] = left if left > 1e-6 else 0.0
        return any(abs(left - before[name]) > 1e-3 for name, left in self.left.items())

    def _copy(self, name: str, scale: float, path: tuple[str, ...], is_wanted: bool) -> Level:
        """The level of a function, times a factor, with its small callees inside."""
        level, copy = self._profile.functions[name], Level()
        self._n += 1
        if is_wanted:
            copy.total = round(level.total * scale)
            copy.body = {at: round(count * scale) for at, count in level.body.items()}
            copy.targets = {
                at: {callee: round(count * scale) for callee, count in targets.items()}
                for at, targets in level.targets.items()
            }
            copy.nested = {at: dict(inner) for at, inner in level.nested.items()}
        for site in self._sites.get(name, ()):
            calls = site.calls * scale
            if calls < 0.5 or site.name in path or len(path) > _DEEPEST or self._n > _MOST_LEVELS:
                continue
            self._nested[site.name] = self._nested.get(site.name, 0.0) + calls
            inner = self._copy(
                site.name, calls / self._profile.functions[site.name].head, (*path, site.name), is_wanted
            )
            if is_wanted and inner.total:
                copy.total += inner.total
                copy.inside(site.at, site.name).add(inner)  # calls from several instructions become one level
                targets = copy.targets[site.at]
                left = targets.pop(site.name, 0) - round(calls)
                if left > 0:
                    targets[site.name] = left
        return copy


def nest(profile: Profile, sites: Sequence[Site], sizes: dict[str, int], most: int) -> None:
    """Nest functions of at most `most` bytes of code.  Changes the profile."""
    nesting = _Nesting(profile, sites, sizes, most)
    for _ in range(_ROUNDS):
        if not nesting.round():
            break
    levels: dict[str, Level] = {}
    nesting.round(levels)
    profile.functions = levels
