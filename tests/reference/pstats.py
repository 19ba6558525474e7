"""A slow reader of cProfile's profiles that uses Python's marshal."""

from __future__ import annotations

import marshal
from typing import Any

Key = tuple[str, int, str]
# Calls, primitive calls, own and cumulative time in nanoseconds.
Values = tuple[int, int, int, int]
Entry = tuple[Values, dict[Key, Values]]


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _divided(key: Key, own: int, cumulative: int, callers: dict[Key, Any]) -> dict[Key, Values]:
    """Callers; a caller with only a number of calls, as the module `profile` writes it, gets a part of the function's
    times.

    Each gets its part of the remainder, so the parts add up to the times: 100 ns of 1, 1 and 1 calls are 33, 33 and 34.
    """
    counts = {caller: n for caller, n in callers.items() if isinstance(n, int)}
    left = sum(n for caller, n in counts.items() if caller != key)
    found = {}
    for caller, values in callers.items():
        if caller not in counts:
            calls, primitive, tt, ct = values
            found[caller] = (calls, primitive, _ns(tt), _ns(ct))
            continue
        n = 0 if caller == key else values
        parts = [rest * n // left if left else 0 for rest in (own, cumulative)]
        own, cumulative, left = own - parts[0], cumulative - parts[1], left - n
        found[caller] = (values, n, *parts)
    return found


def read(data: bytes) -> dict[Key, Entry]:
    """By function: its values, and those of each caller."""
    found = {}
    for key, (primitive, calls, own, cumulative, callers) in marshal.loads(data).items():
        values = calls, primitive, _ns(own), _ns(cumulative)
        found[key] = values, _divided(key, values[2], values[3], callers)
    return found
