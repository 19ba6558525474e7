"""What the bridges that add up several parts share."""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core._c import ffi
from fastprof.core._typing import Any
from fastprof.core.model import Part, ValueType


def columns_of(part: Part, n_values: int, events: list[ValueType]) -> Any:
    """Which event each value of a part is (a C array); those that are new are appended to `events`.

    The same name and unit is the same event, but two values of one part never are.
    """
    columns: list[int] = []
    for k in range(n_values):
        mine = part.value_types[k] if k < len(part.value_types) else ValueType(f"value{k + 1}")
        same = (i for i, e in enumerate(events) if (e.name, e.unit) == (mine.name, mine.unit) and i not in columns)
        at = next(same, len(events))
        if at == len(events):
            events.append(mine)
        columns.append(at)
    return ffi.new("uint32_t[]", columns or [0])


def only(values: Iterable[Any]) -> Any:
    """The value that all agree on, else None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
