"""Costs, slowly: from every sample, and from every path of a graph."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from tests.reference.bridges import positions
from tests.support.profiles import At, Fn, Row, Sample


class Cost(NamedTuple):
    self: int
    inclusive: int
    calls: int = 0


def of_stacks(samples: Iterable[Sample], thing: Callable[[At], Hashable], k: int) -> dict[Hashable, Cost]:
    """A sample counts once for a key, however often the key is on its stack."""
    own: Counter[Hashable] = Counter()
    inclusive: Counter[Hashable] = Counter()
    for sample in samples:
        path = [thing(p) for f in sample.frames or (None,) for p in positions(f, True)]
        own[path[-1]] += sample.values[k]
        for one in set(path):
            inclusive[one] += sample.values[k]
    return {one: Cost(own[one], inclusive[one]) for one in inclusive}


def of_graph(parts: Iterable[list[Row]], k: int, with_cycles: bool) -> tuple[dict[Fn, Cost], set[frozenset[Fn]]]:
    """Inclusive costs by arcs (docs/top.md), and the cycles; the cost of a cycle is the sum of its members'."""
    parts = [*parts]
    own: Counter[Fn] = Counter()
    inclusive: Counter[Fn] = Counter()
    recursive: Counter[Fn] = Counter()
    calls: Counter[Fn] = Counter()
    arcs: Counter[tuple[Fn, Fn]] = Counter()
    for rows in parts:
        self_: Counter[Fn] = Counter()
        into: Counter[Fn] = Counter()
        out: Counter[Fn] = Counter()
        called: Counter[Fn] = Counter()
        functions = set()
        for row in rows:
            f = row.at.function
            functions.add(f)
            if row.callee is None:
                self_[f] += row.values[k]
                continue
            functions.add(row.callee)
            called[row.callee] += row.calls
            arcs[f, row.callee] += row.values[k]
            if row.callee != f:
                into[row.callee] += row.values[k]
                out[f] += row.values[k]
        for f in functions:
            own[f] += self_[f]
            calls[f] += called[f]
            spent = self_[f] + out[f]
            inclusive[f] += max(into[f], spent, key=abs) if called[f] else spent
            recursive[f] += max(into[f], self_[f], key=abs) if called[f] or into[f] else spent
    reach: dict[Fn, set[Fn]] = defaultdict(set)
    for f in own:
        todo = [f]
        while todo:
            at = todo.pop()
            for caller, callee in arcs:
                if caller == at and callee not in reach[f]:
                    reach[f].add(callee)
                    todo.append(callee)
    found = {frozenset(g for g in own if g in reach[f] and f in reach[g]) for f in own if f in reach[f]}
    found = {members for members in found if len(members) > 1}
    for members in found:
        for f in members:
            outside = sum(cost for (a, b), cost in arcs.items() if a == f and b not in members)
            inclusive[f] = own[f] + outside if with_cycles else recursive[f]
    return {f: Cost(own[f], inclusive[f], calls[f]) for f in own}, found if with_cycles else set()
