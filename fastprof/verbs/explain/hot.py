"""The hottest path of a profile, and what its contexts cost by kind of work (verbs/page/contexts.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fastprof.core._typing import NamedTuple
from fastprof.core.function_names import Place
from fastprof.verbs.explain.categories import kinds_of
from fastprof.verbs.page.contexts import Shown
from fastprof.verbs.page.figures import Places

_LEAST = 0.05  # share of the total below which the path ends
_EVERYTHING = (1 << 32) - 1


class Step(NamedTuple):
    """A function on the hottest path, in the value type of the explanation."""

    name: str
    file: str
    line: int  # of a function its first one; 0: unknown
    object: str
    inclusive: int  # of the calls on this path
    inclusive_share: float
    self: int  # on this path
    self_share: float
    skipped: int  # calls between the caller that is listed before and this one, all with the same inclusive cost


class Kind(NamedTuple):
    """A kind of work."""

    name: str
    cost: int
    function: str  # that began most of it
    caller: str  # of that function; "": none
    most: int  # cost of `function`, called by `caller`


class Contexts:
    """The contexts in one value column: totals, children, kinds of work."""

    def __init__(self, places: Places, shown: Shown, column: int) -> None:
        self._places = places
        shown.cut(0, _EVERYTHING)
        c = shown.contexts
        n = int(c.n)
        self._functions = list(c.function[0:n]) if n else []
        ups = list(c.up[0:n]) if n else []
        self._own = list(c.self[column * n : (column + 1) * n]) if n and column < c.n_values else [0] * n
        self._above = [i - up if up else -1 for i, up in enumerate(ups)]
        self._totals = self._own[:]
        for i in range(n - 1, -1, -1):
            if ups[i]:
                self._totals[i - ups[i]] += self._totals[i]
        self.is_cut = bool(c.above)
        self._kinds: dict[int, frozenset[str]] = {}

    def _kinds_of(self, function: int) -> frozenset[str]:
        found = self._kinds.get(function)
        if found is None:
            place = self._places[function] if function else Place("[pruned]")
            found = self._kinds[function] = kinds_of(place.name, place.object)
        return found

    def kinds(self) -> Iterator[Kind]:
        """The cost by kind of work: of its functions and all they call, once; of the kernel its own functions'."""
        costs = Counter[str]()
        parts: dict[str, Counter[tuple[int, int]]] = {}
        of: list[dict[str, int]] = []  # by context: the one in which each kind of work began
        for i, function in enumerate(self._functions):
            up = self._above[i]
            mine = self._kinds_of(function)
            whole = of[up] if up >= 0 else {}
            if "kernel" in whole and "kernel" not in mine:
                whole = {kind: first for kind, first in whole.items() if kind != "kernel"}
            if not mine <= whole.keys():
                whole = dict.fromkeys(mine, i) | whole
            of.append(whole)
            for kind, first in whole.items() if self._own[i] else ():
                costs[kind] += self._own[i]
                above = self._above[first]
                part = self._functions[first], self._functions[above] if above >= 0 else 0
                parts.setdefault(kind, Counter())[part] += self._own[i]
        for kind, cost in costs.items():
            (function, caller), most = max(parts[kind].items(), key=lambda one: (abs(one[1]), one[0]))
            yield Kind(kind, cost, self._places[function].name, self._places[caller].name if caller else "", most)

    def without_callers(self) -> int:
        """The cost of functions that were called by none."""
        return sum(
            own for own, up, f in zip(self._own, self._above, self._functions, strict=True) if f and self._is_root(up)
        )

    def _is_root(self, i: int) -> bool:
        return i < 0 or not self._functions[i]

    def path(self, total: int) -> list[Step]:
        """The most expensive callee of the most expensive callee ..., until none has a twentieth of `total`."""
        children: dict[int, list[int]] = {}
        for i, up in enumerate(self._above):
            children.setdefault(up, []).append(i)
        steps: list[Step] = []
        nodes = [i for i in children.get(-1, []) if not self._functions[i]]  # the roots of threads
        below = [*self._callees(nodes, children), *(i for i in children.get(-1, []) if self._functions[i])]
        skipped = 0
        while below:
            groups: dict[Place, list[int]] = {}
            for i in below:
                if self._functions[i]:
                    groups.setdefault(self._places[self._functions[i]], []).append(i)
            sums = {place: sum(self._totals[i] for i in mine) for place, mine in groups.items()}
            hottest = min(sums, key=lambda place: (-abs(sums[place]), place), default=None)
            if hottest is None or abs(sums[hottest]) < _LEAST * abs(total) or not sums[hottest]:
                break
            nodes, inclusive = groups[hottest], sums[hottest]
            own = sum(self._own[i] for i in nodes)
            if len(steps) > 1 and steps[-1].inclusive == steps[-2].inclusive == inclusive and not steps[-1].self:
                skipped = steps.pop().skipped + 1  # between two calls of the same cost
            name, file, line, object_ = hottest
            place = name or "[unknown]", file, line or self._places.lines[hottest], object_
            steps.append(Step(*place, inclusive, inclusive / total, own, own / total, skipped))
            skipped, below = 0, [*self._callees(nodes, children)]
        return steps

    @staticmethod
    def _callees(nodes: list[int], children: dict[int, list[int]]) -> Iterator[int]:
        for i in nodes:
            yield from children.get(i, ())
