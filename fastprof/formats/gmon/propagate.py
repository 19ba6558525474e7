"""Inclusive times by numbers of calls, as gprof estimates them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from fastprof.core.cycles import cycles

Arc = tuple[int, int]


def inclusive(own: Mapping[int, int], arcs: Mapping[Arc, int]) -> dict[Arc, int]:
    """The time of the callee and what it calls, for the calls of each arc: callers share it by their numbers of calls.

    Calls within a cycle pass no time, and so do those of a function to itself.
    """
    callees = {function: list[int]() for arc in arcs for function in arc}
    for caller, callee in arcs:
        callees[caller].append(callee)
    of = cycles(callees)
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
