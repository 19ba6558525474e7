"""Encodes Perfetto traces, field by field: `packet(seq=1, event=event(BEGIN, name="f"))`."""

from __future__ import annotations

from collections.abc import Iterable

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS_STATE = 1, 2
BOOTTIME, MONOTONIC, OWN = 6, 3, 64

Value = int | str | bytes


def varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def message(*fields: tuple[int, Value | None]) -> bytes:
    """Fields by number, without those that are None."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif value is not None:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def packet(
    *others: tuple[int, Value | None],
    seq: int | None = 1,
    flags: int | None = None,
    time: int | None = None,
    clock: int | None = None,
    interned: bytes | None = None,
    event: bytes | None = None,
    track: bytes | None = None,
) -> bytes:
    """A field of a trace."""
    return message(
        (
            1,
            message(
                (8, time),
                (10, seq),
                (13, flags),
                (58, clock),
                (12, interned),
                (11, event),
                (60, track),
                *others,
            ),
        )
    )


def event(
    kind: int,
    *others: tuple[int, Value | None],
    name: str | None = None,
    iid: int | None = None,
    track: int | None = None,
) -> bytes:
    return message((9, kind), (10, iid), (23, name), (11, track), *others)


def interned(names: Iterable[tuple[int, str]] = (), categories: Iterable[tuple[int, str]] = ()) -> bytes:
    return message(
        *((2, message((1, iid), (2, name))) for iid, name in names),
        *((1, message((1, iid), (2, name))) for iid, name in categories),
    )


def thread(uuid: int, pid: int, tid: int, name: str | None = None) -> bytes:
    return message((1, uuid), (4, message((1, pid), (2, tid), (5, name))))


def process(uuid: int, pid: int, name: str | None = None) -> bytes:
    return message((1, uuid), (3, message((1, pid), (6, name))))


def lane(uuid: int, name: str | None = None, parent: int | None = None) -> bytes:
    return message((1, uuid), (2, name), (5, parent))


def snapshot(*clocks: tuple[int, int, int, int], primary: int | None = None) -> tuple[int, bytes]:
    """Clocks as (id, time, whether it is incremental, unit)."""
    return 6, message(
        *((1, message((1, id_), (2, time), (3, inc or None), (4, unit or None))) for id_, time, inc, unit in clocks),
        (2, primary),
    )
