"""Several parts become one: which of their value types are the same, and what the header of the merged part says.

Every operator and writer that merges parts uses these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fastprof.core._c import ffi
from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError
from fastprof.core.model import Part, ValueType


def match_values(part: Part, n_values: int, events: list[ValueType]) -> list[int]:
    """For each value of a part its index in `events`, to which new value types are appended.

    Two value types are the same if they have the same name, and the same unit if both have one.  Two values of the
    same part are never the same.
    """
    columns: list[int] = []
    for k in range(n_values):
        mine = part.value_types[k] if k < len(part.value_types) else ValueType(f"value{k + 1}")
        at = next((i for i, e in enumerate(events) if i not in columns and _same(e, mine)), len(events))
        if at == len(events):
            events.append(mine)
        elif not events[at].unit:
            events[at] = events[at]._replace(unit=mine.unit)
        columns.append(at)
    return columns


def _same(one: ValueType, other: ValueType) -> bool:
    return one.name == other.name and (one.unit == other.unit or not one.unit or not other.unit)


def match_columns(part: Part, n_values: int, events: list[ValueType]) -> Any:
    """As `match_values`, for C: a uint32_t[]."""
    return ffi.new("uint32_t[]", match_values(part, n_values, events) or [0])


def in_any_order(matched: Iterable[tuple[Part, list[int]]], events: list[ValueType]) -> list[int]:
    """The `events` that parts were matched with, in an order that does not depend on that of the parts: events by event
    of the first part, then what others have more.  First is the part whose names are the least.

    `matched`: each part and what `match_values` returned for it.  The result: indices in `events`.
    """
    ordered: list[ValueType] = []
    index: dict[int, int] = {}  # in `ordered`: in `events`
    for part, columns in sorted(matched, key=lambda one: [(t.name, t.unit) for t in one[0].value_types]):
        for at, event in zip(match_values(part, len(columns), ordered), columns, strict=True):
            index.setdefault(at, event)
    order = [index[at] for at in range(len(ordered))]
    return order if len({*order}) == len(events) else [*range(len(events))]


def default_value(part: Part, view: str) -> int:
    """Index of the value type to show first: the one that the source names, else a graph's first or stacks' last."""
    names = [t.name for t in part.value_types]
    named = part.extra.get("default_sample_type")
    if named in names:
        return names.index(named)
    return 0 if view == "graph" or not names else len(names) - 1


def program_of(part: Part, names: list[bytes]) -> bytes | None:
    """Which of these names of objects is the program that a part says it ran; None if it says nothing of them.

    The command begins with its path, or a path that leads to it: `python3` to `python3.11`.  Without a command it is
    what the operator that made the part takes for it.
    """
    command = part.command or b""
    found = [name for name in names if name and (command == name or command.startswith(name + b" "))]
    word = command.split(b" ")[0]
    if word:
        last = word.rpartition(b"/")[2]
        found += [name for name in names if name.rpartition(b"/")[2] == last]
        found += [name for name in names if last and name.startswith(word)]
    found += [name for name in names if name == part.extra.get("program")]
    return found[0] if found else None


# Fields in which parts may differ.  A merged part then lists the values in a description of this name.
_LISTED = {"creator": b"Original creators", "pid": b"Processes", "thread": b"Threads", "trigger": b"Triggers"}

# How the `extra` values of several parts become one.  A key that is not here is kept if all parts agree on it.
_COMBINED: dict[str, Callable[[list[Any]], Any]] = {
    "duration_ns": sum,
    "time_ns": lambda times: min(filter(None, times), default=0),
    "remarks": lambda lists: all_of(lists),
    "inherited": lambda lists: [*{event.name: event for event in all_of(lists)}.values()],
    "process_names": lambda lists: all_of(lists),
    "thread_names": lambda lists: all_of(lists),
    "labels": lambda lists: tuple(all_of(lists)),
    "default_sample_type": min,
    "drop_frames": min,
    "keep_frames": min,
    "doc_url": min,
    "period": max,
}
# Keys that hold for the merged part only if all parts have them.
_OF_ALL = {"cpu"}


def all_of(lists: Iterable[Iterable[Any]]) -> list[Any]:
    """What is in any of the lists, once.  First what is in all, in its order; then the rest, sorted.  So it is the same
    for the lists in any order, and for some of them put together before, unless they say the same in different orders.

        I1 cache, LL cache, Trigger: exit         gives        I1 cache, LL cache, Trigger: exit, Trigger: user
        I1 cache, LL cache, Trigger: user
    """
    distinct = [dict.fromkeys(items) for items in lists]
    if not distinct:
        return []
    shared = set.intersection(*({*items} for items in distinct))
    first = min([item for item in items if item in shared] for items in distinct)
    return [*first, *sorted({item for items in distinct for item in items if item not in shared})]


def merge_parts(parts: Iterable[Part], value_types: list[ValueType]) -> Part:
    """One part for several: what they agree on, all their descriptions and comments, the sum of their summaries.

    Creators, processes, threads and triggers that differ are listed in descriptions, commands in the command.
    Lost: totals, part numbers that differ, periods of different types.
    Errors: FastprofError when a sum does not fit into 64 bits.
    """
    parts = [*parts]
    merged = Part(value_types=value_types)
    if not parts:
        return merged
    merged.positions = tuple(p for p in ("instr", "bb", "line") if any(p in part.positions for part in parts))
    merged.command = b"; ".join(sorted({part.command for part in parts if part.command is not None})) or None
    merged.number = only(part.number for part in parts)
    for name, title in _LISTED.items():
        values = sorted({part.named(name) for part in parts}, key=lambda v: (isinstance(v, bytes), v is not None, v))
        if len(values) == 1:
            setattr(merged, name, getattr(parts[0], name))
            if f"{name}_text" in parts[0].extra:
                merged.extra[f"{name}_text"] = values[0]
        else:
            text = (b"%d" % v if isinstance(v, int) else v or b"none" for v in values if v is not None)
            merged.descriptions.append((title, b"; ".join(text)))
    merged.descriptions += all_of(part.descriptions for part in parts)
    merged.comments = all_of(part.comments for part in parts)
    merged.summary = _sum_of_summaries(parts, value_types)
    extras = [part.extra for part in parts]
    for key in all_of([key for key in extra if not key.endswith("_text")] for extra in extras):
        values = [extra[key] for extra in extras if key in extra]
        value = None if key in _OF_ALL and len(values) < len(parts) else _COMBINED.get(key, only)(values)
        if value is not None:
            merged.extra[key] = value
    if "period_type" not in merged.extra and any("period_type" in extra for extra in extras):
        merged.extra.pop("period", None)  # the parts' periods have different types
    return merged


def _sum_of_summaries(parts: list[Part], value_types: list[ValueType]) -> list[int] | None:
    if any(part.summary is None for part in parts):
        return None
    sums = [0] * len(value_types)
    events = [*value_types]
    for part in parts:
        summary = part.summary or []
        for column, value in zip(match_values(part, len(summary), events), summary, strict=True):
            if column < len(sums):
                sums[column] += value
    for value_type, value in zip(value_types, sums, strict=True):
        if abs(value) >= 1 << 63:
            raise FastprofError(f"the sum of the summary: lines in value type {value_type.name} is beyond 2^63 - 1")
    return sums


def only(values: Iterable[Any]) -> Any:
    """The one value if all are equal, else None."""
    distinct = [*dict.fromkeys(values)]
    return distinct[0] if len(distinct) == 1 else None
