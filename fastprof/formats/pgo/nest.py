"""Nests small callees in the profiles of their callers.

In a profile of a program built with -O0 every function stands alone, with exact counts.  A compiler that inlines from
the bottom up then fills small functions with their large, rarely needed callees first, and they are too large for
hundreds of callers (QuickJS: 94.7 instead of 84.3 million instructions).  Nested levels show what is inlined first:

    main:100:1              main:160:1
     3: 20 get:20            3: 20
    get:60:20         ->     3: get:60
     1: 20                    1: 20

A callee's counts are divided by the number of calls from each site; what is nested is taken off the callee's own
record.  Functions are taken callers first, so that it is known then what is left.  Calls within a cycle stay calls.
"""

from __future__ import annotations

from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.cycles import cycles
from fastprof.formats.pgo.levels import Level, Location

if TYPE_CHECKING:
    from fastprof.formats.pgo.join import Join, Site, Spot

SMALL = 120  # bytes of code at -O0: getters, wrappers, operators
_FLAT = 0.05  # of the counts, in inlined functions, or without lines: 1 to 2 % at -O0, 14 to 23 % at clang's -O2
BY_HAND = 0.5  # of the counts, in always_inline functions: above it, nesting costs LZ4, zstd and Brotli 2 %
_INLINED = 5  # inlined functions for each small one that is called: up to 4 at -O0 (Brotli), from 6 at clang's -O2
_DEEPEST = 12
_MOST_LEVELS = 1 << 16  # of all functions; after that nothing more is nested
_LEAST = 1e-6  # of all counts; rarer calls stay calls


class _Nesting:
    def __init__(self, join: Join, most: int) -> None:
        self._functions = functions = join.functions
        small = {
            spot
            for spot, function in functions.items()
            if function.level.head and 0 < function.nbytes <= most and _height(function.level) <= _DEEPEST
        }
        owner = {id(level): spot for spot, function in functions.items() for level in function.level.all()}
        self._sites: dict[int, list[Site]] = {}  # by level: those of always_inline functions are in others
        edges: dict[Spot, list[Spot]] = {spot: [] for spot in functions}
        for site in join.sites:
            if site.callee in small and id(site.caller) in owner:
                edges[owner[id(site.caller)]].append(site.callee)
                self._sites.setdefault(id(site.caller), []).append(site)
        component = cycles(edges)
        for level, sites in self._sites.items():
            self._sites[level] = [site for site in sites if component[site.callee] != component[owner[level]]]
        self.order = sorted(functions, key=lambda spot: (-component[spot], spot))  # callers first
        self._least = join.total * _LEAST
        self._nested: dict[Spot, float] = {}  # calls
        self._n = 0

    def left(self, spot: Spot) -> Level:
        """The level of a function for the calls that are not nested in others, with its callees nested."""
        level = self._functions[spot].level
        nested = self._nested.get(spot, 0.0)
        share = 1.0 if not nested else max(1 - nested / level.head, 0.0)
        copy = self._copy(level, share if share > 1e-9 else 0.0, 0)
        copy.head = round(level.head * share)
        return copy

    def _copy(self, level: Level, scale: float, depth: int) -> Level:
        """A level, times a factor, with its small callees inside."""
        copy = Level()
        self._n += 1
        if scale == 0:
            return copy
        own = level.total - sum(inner.total for levels in level.nested.values() for inner in levels.values())
        copy.total = round(own * scale)
        copy.body = {at: round(count * scale) for at, count in level.body.items()}
        copy.targets = {
            at: {callee: round(count * scale) for callee, count in targets.items()}
            for at, targets in level.targets.items()
        }
        for at, levels in level.nested.items():
            for name, inner in levels.items():
                self._put(copy, at, name, self._copy(inner, scale, depth + 1))
        for site in self._sites.get(id(level), ()):
            calls = site.calls * scale
            callee = self._functions[site.callee].level
            part = min(calls / callee.head, 1 - self._nested.get(site.callee, 0.0) / callee.head)
            if calls < 0.5 or callee.total * part < self._least or depth > _DEEPEST or self._n > _MOST_LEVELS:
                continue
            self._nested[site.callee] = self._nested.get(site.callee, 0.0) + part * callee.head
            self._put(copy, site.at, site.name, self._copy(callee, part, depth + 1))
            targets = copy.targets[site.at]
            left = targets.pop(site.name, 0) - round(calls)
            if left > 0:
                targets[site.name] = left
        return copy

    @staticmethod
    def _put(level: Level, at: Location, name: str, inner: Level) -> None:
        """Calls from several instructions become one level."""
        level.total += inner.total
        level.inside(at, name).add(inner)


def _height(level: Level) -> int:
    """How deep levels are nested in it."""
    height, row = 0, [level]
    while row := [inner for one in row for levels in one.nested.values() for inner in levels.values()]:
        height += 1
    return height


def is_flat(join: Join) -> bool:
    """Whether the program is built with -O0, where always_inline functions alone are inlined (of QuickJS 5 % of the
    counts, of Brotli 87 %).  Few lines are lost then, and many small functions are called."""
    if join.inlined <= _FLAT * join.total:
        return True
    inlined = {
        name
        for function in join.functions.values()
        for level in function.level.all()
        for levels in level.nested.values()
        for name in levels
    }
    called = {site.callee for site in join.sites}
    n_small = sum(0 < function.nbytes <= SMALL and spot in called for spot, function in join.functions.items())
    return join.unplaced <= _FLAT * join.total and n_small * _INLINED >= len(inlined)


def nest(join: Join, most: int) -> None:
    """Nest functions of at most `most` bytes of code.  Changes the levels of functions."""
    nesting = _Nesting(join, most)
    levels = {spot: nesting.left(spot) for spot in nesting.order}
    for spot, level in levels.items():
        join.functions[spot].level = level
