"""Shares the times of functions among their callers as gprof does, slowly and in fractions."""

from __future__ import annotations

from fractions import Fraction


def inclusive(own: dict[int, int], arcs: dict[tuple[int, int], int]) -> dict[tuple[int, int], Fraction]:
    """Functions that reach each other are a cycle; its time goes to its callers, once all it calls is known."""
    functions = {function for arc in arcs for function in arc}
    reach = {f: {callee for caller, callee in arcs if caller == f} for f in functions}
    for _ in functions:
        reach = {f: found.union(*(reach[g] for g in found)) for f, found in reach.items()}
    cycle = {f: frozenset({f} | {g for g in reach[f] if f in reach[g]}) for f in functions}
    times: dict[frozenset[int], Fraction] = {}
    found: dict[tuple[int, int], Fraction] = {}

    def time_of(one: frozenset[int]) -> Fraction:
        if one not in times:
            time = Fraction(sum(own.get(f, 0) for f in one))
            for (caller, callee), n in arcs.items():
                if caller in one and callee not in one:
                    into = sum(n for (a, b), n in arcs.items() if b in cycle[callee] and a not in cycle[callee])
                    found[caller, callee] = time_of(cycle[callee]) * n / into if into else Fraction(0)
                    time += found[caller, callee]
            times[one] = time
        return times[one]

    for f in functions:
        time_of(cycle[f])
    return {arc: found.get(arc, Fraction(0)) for arc in arcs}
