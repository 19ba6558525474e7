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


# ---- the kernel's events


def bundle(cpu: int, *fields: tuple[int, Value | None]) -> bytes:
    return packet((1, message((1, cpu), *fields)), seq=None)


def kernel_event(time: int, tid: int, number: int, *fields: tuple[int, Value | None]) -> tuple[int, bytes]:
    return 2, message((1, time), (2, tid), (number, message(*fields)))


def switch(time: int, prev: int, state: int, next_: int) -> tuple[int, bytes]:
    return kernel_event(time, prev, 4, (1, f"t{prev}"), (2, prev), (4, state), (5, f"t{next_}"), (6, next_))


def waking(time: int, tid: int) -> tuple[int, bytes]:
    return kernel_event(time, 0, 20, (2, tid))


def atrace(time: int, tid: int, text: str) -> tuple[int, bytes]:
    return kernel_event(time, tid, 3, (2, text))


def compact(switches: list[tuple[int, int, int]], wakings: list[tuple[int, int]]) -> tuple[int, bytes]:
    """Switches as (time, state of the thread before, next thread)."""

    def packed(numbers: Iterable[int]) -> bytes:
        return b"".join(map(varint, numbers))

    def deltas(times: list[int]) -> bytes:
        return packed(time - before for time, before in zip(times, [0, *times], strict=False))

    tids = sorted({next_ for _, _, next_ in switches})
    return 4, message(
        (1, deltas([time for time, _, _ in switches])),
        (2, packed(state for _, state, _ in switches)),
        (3, packed(next_ for _, _, next_ in switches)),
        (4, packed(120 for _ in switches)),
        *((5, f"t{tid}") for tid in tids),
        (6, packed(tids.index(next_) for _, _, next_ in switches)),
        (7, deltas([time for time, _ in wakings])),
        (8, packed(tid for _, tid in wakings)),
        *((field, packed(0 for _ in wakings)) for field in (9, 10, 11)),
    )


def tree(*threads: tuple[int, int, str]) -> bytes:
    """Threads as (process, number, name)."""
    return packet((2, message(*((2, message((1, tid), (2, name), (3, pid))) for pid, tid, name in threads))), seq=None)
