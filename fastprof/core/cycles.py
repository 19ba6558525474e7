"""Cycles of functions that call each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastprof.core._typing import T


def cycles(callees: Mapping[T, Iterable[T]]) -> dict[T, int]:
    """Each function's cycle; numbers of callees come before those of callers.  `callees` has all functions as keys.

    Without recursion, as chains of calls may be long.  Source: Tarjan's algorithm.
    """
    order, low, found = dict[T, int](), dict[T, int](), dict[T, int]()
    stack, n = list[T](), 0
    for root in callees:
        if root in order:
            continue
        order[root] = low[root] = len(order)
        stack.append(root)
        work = [(root, iter(callees[root]))]
        while work:
            at, rest = work[-1]
            for callee in rest:
                if callee not in order:
                    order[callee] = low[callee] = len(order)
                    stack.append(callee)
                    work.append((callee, iter(callees[callee])))
                    break
                if callee not in found:
                    low[at] = min(low[at], order[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == order[at]:
                    while at not in found:
                        found[stack.pop()] = n
                    n += 1
    return found
