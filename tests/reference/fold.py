"""The obvious stack machine: from one thread's records in time order to calls, arcs and contexts.

O(depth) per record on purpose: each question is answered from the whole stack, so no state has to be carried over
correctly between records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.reference.xray import ENTER, ENTER_ARGS, EXIT, TAIL, Log, Record

Arc = tuple[int | None, int]  # (caller, callee); the caller of a thread's first frame is None
Path = tuple[int, ...]  # root first


@dataclass
class Folded:
    self_ticks: Counter[int] = field(default_factory=Counter)
    calls: Counter[int] = field(default_factory=Counter)
    # Each moment and each call counts once for a function or arc, however often it is on the stack.
    inclusive_ticks: Counter[int] = field(default_factory=Counter)
    inclusive_calls: Counter[int] = field(default_factory=Counter)
    arc_calls: Counter[Arc] = field(default_factory=Counter)
    arc_inclusive_ticks: Counter[Arc] = field(default_factory=Counter)
    arc_inclusive_calls: Counter[Arc] = field(default_factory=Counter)
    context_ticks: Counter[Path] = field(default_factory=Counter)
    context_calls: Counter[Path] = field(default_factory=Counter)
    # Every activation from enter to pop, recursive ones separately.
    durations: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    # unwound, orphan-exits, unfinished: frames ended by an outer exit, exits without a frame,
    # frames open at the thread's end.
    repairs: Counter[str] = field(default_factory=Counter)
    max_depth: int = 0


def fold(log: Log) -> Folded:
    result = Folded()
    for records in log.threads.values():
        fold_thread(records, result)
    return result


def fold_thread(records: Iterable[Record], result: Folded) -> None:
    """Add one thread's records, which must be in time order."""
    functions: list[int] = []
    entered: list[int] = []
    now = 0

    def pop() -> None:
        result.durations[functions.pop()].append(now - entered.pop())

    for record in records:
        spend(functions, record.tsc - now, result)
        now = record.tsc
        if record.op in (ENTER, ENTER_ARGS):
            functions.append(record.function)
            entered.append(now)
            count_call(functions, result)
        elif record.op in (EXIT, TAIL):
            if record.function not in functions:
                result.repairs["orphan-exits"] += 1
                continue
            # Exceptions and longjmp leave frames without exit records.
            while functions[-1] != record.function:
                result.repairs["unwound"] += 1
                pop()
            pop()
    while functions:
        result.repairs["unfinished"] += 1
        pop()


def arcs_of(functions: list[int]) -> set[Arc]:
    callers: list[int | None] = [None, *functions[:-1]]
    return set(zip(callers, functions, strict=True))


def spend(functions: list[int], ticks: int, result: Folded) -> None:
    """Time outside every known call belongs to no function."""
    if not functions:
        return
    result.self_ticks[functions[-1]] += ticks
    result.context_ticks[tuple(functions)] += ticks
    for function in set(functions):
        result.inclusive_ticks[function] += ticks
    for arc in arcs_of(functions):
        result.arc_inclusive_ticks[arc] += ticks


def count_call(functions: list[int], result: Folded) -> None:
    """Count the call that has just been pushed, and count it for all enclosing calls too."""
    result.max_depth = max(result.max_depth, len(functions))
    result.calls[functions[-1]] += 1
    result.context_calls[tuple(functions)] += 1
    result.arc_calls[(functions[-2] if len(functions) > 1 else None, functions[-1])] += 1
    for function in set(functions):
        result.inclusive_calls[function] += 1
    for arc in arcs_of(functions):
        result.arc_inclusive_calls[arc] += 1


def to_ns(ticks: int, frequency: int) -> int:
    """Ticks as nanoseconds, half rounded up; without a frequency, ticks are nanoseconds."""
    if frequency == 0:
        return ticks
    return (2 * ticks * 1_000_000_000 + frequency) // (2 * frequency)
