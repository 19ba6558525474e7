"""Writes and reads profiles of XLA (XSpace), slowly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple


class Event(NamedTuple):
    kind: int
    offset: int  # picoseconds
    duration: int
    stats: int = 0


class Line(NamedTuple):
    id: int
    name: str
    start: int  # nanoseconds
    events: tuple[Event, ...] = ()


class Plane(NamedTuple):
    name: str
    lines: tuple[Line, ...] = ()
    kinds: tuple[tuple[int, str], ...] = ()  # id and name
    categories: tuple[tuple[int, str], ...] = ()  # of kinds


def varint(v: int) -> bytes:
    v &= (1 << 64) - 1
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes([*out, v])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(number: int, key: int, value: bytes) -> bytes:
    return field(number, field(1, key) + field(2, value))


def plane(of: Plane) -> bytes:
    """Maps come after the lines, as C++ writes them."""
    out = [field(2, of.name)]
    for line in of.lines:
        events = []
        for event in line.events:
            stat = field(4, field(1, 1) + field(4, 7))
            events.append(
                field(4, field(1, event.kind) + field(2, event.offset) + field(3, event.duration) + stat * event.stats)
            )
        out.append(field(3, field(1, line.id) + field(2, line.name) + field(3, line.start) + b"".join(events)))
    categories = dict(of.categories)
    for id, name in of.kinds:
        stats = field(5, field(1, 2) + field(5, categories[id])) if id in categories else b""
        out.append(entry(4, id, field(1, id) + field(2, name) + stats))
    out += [entry(5, id, field(1, id) + field(2, name)) for id, name in ((1, "run_id"), (2, "hlo_category"))]
    return b"".join(out)


def write(planes: list[Plane]) -> bytes:
    return b"".join(field(1, plane(one)) for one in planes)


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    def number(at: int) -> tuple[int, int]:
        v = shift = 0
        while True:
            v |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return v, at

    at = 0
    while at < len(data):
        key, at = number(at)
        if key & 7 == 0:
            value, at = number(at)
            yield key >> 3, value
            continue
        n, at = number(at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
        yield key >> 3, data[at : at + n]
        at += n


Row = tuple[str, str, str, int, int]  # plane, line, event, beginning and length in picoseconds


def rows(data: bytes) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for number, space in fields(data):
        if number != 1:
            continue
        name, names, lines = "", dict[int, str](), list[bytes]()
        for number, value in fields(space):
            if number == 2:
                name = value.decode()
            elif number == 3:
                lines.append(value)
            elif number == 4:
                of = dict(fields(value))
                kind = dict(fields(of[2]))
                names[of[1]] = (kind.get(4) or kind.get(2) or b"").decode()
        for line in lines:
            of = dict(fields(line))
            for number, value in fields(line):
                if number == 4:
                    event = {1: 0, 2: 0, 3: 0, **dict(fields(value))}
                    begin = of.get(3, 0) * 1000 + (event[2] ^ 1 << 63) - (1 << 63)
                    shown = of.get(11, of.get(2, b"")).decode()
                    found[name, shown, names.get(event[1]) or f"#{event[1]}", begin, event[3]] += 1
    return found


def many(n: int) -> bytes:
    """A thread with n pairs of events, one within the other."""
    line = Line(1, "a", 0, tuple(one for i in range(n) for one in (Event(1, 20 * i, 9), Event(2, 20 * i + 5, 3))))
    return write([Plane("/host:CPU", (line,), ((1, "f"), (2, "g")))])
