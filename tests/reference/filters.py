"""The obvious filters: they take rows as plain values and return the kept ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

ENTER, EXIT, TAIL, ENTER_ARGS, ARGUMENT, CUSTOM, TYPED, BUFFER = range(8)

Function = tuple[str, str]  # name, object


class Row(NamedTuple):
    """A row of any view: `says` holds the fields that filters ignore."""

    part: int  # its number in its input, from 1
    thread: int | None  # in a graph, that of its part
    time: int
    labels: tuple[tuple[str, str], ...]
    op: int
    function: Function
    stack: tuple[tuple[Function, ...], ...]  # the functions of each frame
    says: tuple[object, ...]


def by_part(rows: Iterable[Row], part: int) -> list[Row]:
    return [row for row in rows if row.part == part]


def by_thread(rows: Iterable[Row], *threads: int) -> list[Row]:
    return [row for row in rows if row.thread in threads]


def by_time(rows: Iterable[Row], view: str, first: int, last: int) -> list[Row]:
    timeless = view == "timeline" or (first, last) == (0, (1 << 64) - 1)
    return [row for row in rows if first <= row.time <= last and (row.time or timeless)]


def by_label(rows: Iterable[Row], *labels: tuple[str, str]) -> list[Row]:
    wanted = {key: {v for k, v in labels if k == key} for key, _ in labels}
    return [row for row in rows if all(any((k, v) in row.labels for v in vs) for k, vs in wanted.items())]


def by_function(rows: Iterable[Row], view: str, name: str = "", object_: str = "") -> list[Row]:
    def matches(function: Function) -> bool:
        return bool(re.search(name, function[0]) and re.search(object_, function[1]))

    if view == "graph":
        return [row for row in rows if matches(row.function)]
    if view == "stacks":
        return [row for row in rows if any(matches(f) for frame in row.stack for f in frame)]
    return [*_calls(rows, matches)]


def _calls(rows: Iterable[Row], matches: Callable[[Function], bool]) -> Iterator[Row]:
    stacks: dict[int | None, list[Function]] = {}
    kept = False
    for row in rows:
        stack = stacks.setdefault(row.thread, [])
        inside = [i for i, f in enumerate(stack) if matches(f)]
        if row.op in (ENTER, ENTER_ARGS):
            stack.append(row.function)
            kept = bool(inside) or matches(row.function)
        elif row.op in (EXIT, TAIL):
            kept = bool(inside)
            if row.function in stack:
                at = len(stack) - 1 - stack[::-1].index(row.function)
                if inside and at < inside[0]:  # a caller ends, and the matching call with it
                    row = row._replace(op=EXIT, function=stack[inside[0]])
                del stack[at:]
        elif row.op != ARGUMENT:
            kept = bool(inside) or row.op == BUFFER
        if kept:
            yield row
