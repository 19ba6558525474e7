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
from fastprof.formats.pgo.levels import Level

if TYPE_CHECKING:
    from fastprof.formats.pgo.join import Join, Site, Spot

SMALL = 120  # bytes of code at -O0: getters, wrappers, operators
_DEEPEST = 12
_MOST_LEVELS = 1 << 16  # of all functions; after that nothing more is nested
_LEAST = 1e-6  # of all counts; rarer calls stay calls


def _components(edges: dict[Spot, list[Spot]]) -> dict[Spot, int]:
    """The strongly connected component of each function, numbered callees first (Tarjan's algorithm, without
    recursion)."""
    component: dict[Spot, int] = {}
    index: dict[Spot, int] = {}
    low: dict[Spot, int] = {}
    stack: list[Spot] = []
    n = 0
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        while work:
            at, rest = work[-1]
            for to in rest:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    work.append((to, iter(edges[to])))
                    break
                if to not in component:
                    low[at] = min(low[at], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    while at not in component:
                        component[stack.pop()] = n
                    n += 1
    return component


class _Nesting:
    def __init__(self, join: Join, most: int) -> None:
        self._functions = functions = join.functions
        small = {
            spot
            for spot, function in functions.items()
            if function.level.head and 0 < function.nbytes <= most and not function.level.nested
        }
        callers = {id(function.level): spot for spot, function in functions.items()}
        self.sites: dict[Spot, list[Site]] = {spot: [] for spot in functions}
        for site in join.sites:
            caller = callers.get(id(site.caller))
            if caller is not None and site.callee in small:
                self.sites[caller].append(site)
        component = _components({spot: [site.callee for site in sites] for spot, sites in self.sites.items()})
        for spot, sites in self.sites.items():
            self.sites[spot] = [site for site in sites if component[site.callee] != component[spot]]
        self.order = sorted(functions, key=lambda spot: (-component[spot], spot))  # callers first
        self._least = join.total * _LEAST
        self._nested: dict[Spot, float] = {}  # calls
        self._n = 0

    def left(self, spot: Spot) -> Level:
        """The level of a function for the calls that are not nested in others, with its callees nested."""
        head = self._functions[spot].level.head
        nested = self._nested.get(spot, 0.0)
        share = 1.0 if not nested else max(1 - nested / head, 0.0)
        level = self._copy(spot, share if share > 1e-9 else 0.0, 0)
        level.head = round(head * share)
        return level

    def _copy(self, spot: Spot, scale: float, depth: int) -> Level:
        """The level of a function, times a factor, with its small callees inside."""
        level, copy = self._functions[spot].level, Level()
        self._n += 1
        if scale == 0:
            return copy
        copy.total = round(level.total * scale)
        copy.body = {at: round(count * scale) for at, count in level.body.items()}
        copy.targets = {
            at: {callee: round(count * scale) for callee, count in targets.items()}
            for at, targets in level.targets.items()
        }
        copy.nested = {at: dict(inner) for at, inner in level.nested.items()} if scale == 1 else {}
        for site in self.sites[spot]:
            calls = site.calls * scale
            callee = self._functions[site.callee].level
            part = min(calls / callee.head, 1 - self._nested.get(site.callee, 0.0) / callee.head)
            if calls < 0.5 or callee.total * part < self._least or depth > _DEEPEST or self._n > _MOST_LEVELS:
                continue
            self._nested[site.callee] = self._nested.get(site.callee, 0.0) + part * callee.head
            inner = self._copy(site.callee, part, depth + 1)
            copy.total += inner.total
            copy.inside(site.at, site.name).add(inner)  # calls from several instructions become one level
            targets = copy.targets[site.at]
            left = targets.pop(site.name, 0) - round(calls)
            if left > 0:
                targets[site.name] = left
        return copy


def nest(join: Join, most: int) -> None:
    """Nest functions of at most `most` bytes of code.  Changes the levels of functions."""
    nesting = _Nesting(join, most)
    levels = {spot: nesting.left(spot) for spot in nesting.order}
    for spot, level in levels.items():
        join.functions[spot].level = level
