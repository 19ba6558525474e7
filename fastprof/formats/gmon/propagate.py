"""Inclusive times by numbers of calls, as gprof estimates them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

Arc = tuple[int, int]


def cycles(arcs: Mapping[Arc, int]) -> dict[int, int]:
    """Each function's cycle, of functions that call each other; numbers of callees come before those of callers.

    Without recursion, as chains of calls may be long.  Source: Tarjan's algorithm.
    """
    callees = defaultdict[int, list[int]](list)
    for caller, callee in arcs:
        callees[caller].append(callee)
    order, low, found = dict[int, int](), dict[int, int](), dict[int, int]()
    stack, n = list[int](), 0
    for root in [function for arc in arcs for function in arc]:
        work = [] if root in order else [(root, iter(callees[root]))]
        for at, _ in work:
            order[at] = low[at] = len(order)
            stack.append(at)
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


def inclusive(own: Mapping[int, int], arcs: Mapping[Arc, int]) -> dict[Arc, int]:
    """The time of the callee and what it calls, for the calls of each arc: callers share it by their numbers of calls.

    Calls within a cycle pass no time, and so do those of a function to itself.
    """
    of = cycles(arcs)
    into, times = defaultdict[int, list[Arc]](list), defaultdict[int, int](int)
    for function, time in own.items():
        if function in of:
            times[of[function]] += time
    for arc in arcs:
        if of[arc[0]] != of[arc[1]]:
            into[of[arc[1]]].append(arc)
    found = dict.fromkeys(arcs, 0)
    for cycle in sorted(into):  # callees first, so that their times are complete
        left, calls = times[cycle], sum(arcs[arc] for arc in into[cycle])
        for arc in into[cycle]:
            found[arc] = share = left * arcs[arc] // calls if calls else 0
            left, calls = left - share, calls - arcs[arc]
            times[of[arc[0]]] += share
    return found
