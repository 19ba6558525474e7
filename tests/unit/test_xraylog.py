"""Builder and reference reader against each other, on random logs and on every known oddity."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from tests.reference import xray
from tests.support import strategies_xray as strategies
from tests.support.xraylog import BasicLog, FdrBuffer, FdrLog, ProfilingLog


def check(case: strategies.Case) -> None:
    log = xray.read(case.data)
    assert {key: records for key, records in log.threads.items() if records} == case.threads
    assert log.repairs == case.repairs


@given(strategies.fdr_cases())
def test_fdr(case: strategies.Case) -> None:
    check(case)


@given(strategies.cut_typed_cases())
def test_typed_events_cut_their_buffer(case: strategies.Case) -> None:
    check(strategies.Case(case.data, {k: r for k, r in case.threads.items() if r}, case.repairs))


@given(strategies.basic_cases())
def test_basic(case: strategies.Case) -> None:
    check(case)


@given(strategies.profile_logs())
def test_profile(built: tuple[ProfilingLog, list[tuple[int, int, tuple[int, ...], int, int]]]) -> None:
    log, rows = built
    assert [tuple(row) for row in xray.read_profile(log.bytes(), log.order).rows] == rows


def one(version: int = 5, **options: int) -> tuple[FdrLog, FdrBuffer]:
    """A log and its only buffer, which contains a call of function 3."""
    log = FdrLog(version, **options)  # type: ignore[arg-type]
    return log, log.buffer().cpu(0, 1000).enter(3).exit(3, 25)


def ops(log: xray.Log) -> list[str]:
    return [record.op for record in log.records()]


CALL = [xray.ENTER, xray.EXIT]


def test_worked_example() -> None:
    log = FdrLog(5)
    log.buffer(tid=7, pid=8, seconds=1, micros=2).cpu(3, 0x10).enter(1).exit(1, 0x20)
    assert log.bytes()[32:].hex(" ", 1).split(" ")[16::16][:4] == ["01", "09", "13", "05"]
    assert list(xray.read(log.bytes()).records()) == [
        xray.Record(8, 7, 3, 0x10, xray.ENTER, 1),
        xray.Record(8, 7, 3, 0x30, xray.EXIT, 1),
    ]


# Odd logs that are read without error, by name: bytes, ops, repairs.
ACCEPTED: dict[str, tuple[bytes, list[str], dict[str, int]]] = {}


def add(name: str, log: FdrLog | BasicLog, expected: list[str], **repairs: int) -> None:
    counts = {key.replace("_", "-"): count for key, count in repairs.items()}
    ACCEPTED[name] = (log.bytes(), expected, counts)


def add_odd_buffers() -> None:
    add("header only", FdrLog(5), [])
    add("header only, basic", BasicLog(3), [])
    log, buffer = one()
    log.repeat(0)
    add("same buffer twice", log, CALL, duplicate_buffers=1)
    log, buffer = one()
    log.bare()
    add("zero extents", log, CALL)
    log = FdrLog(5)
    log.buffer()
    add("preamble only", log, [])
    log, buffer = one(flags=0xFFFFFFFF)
    add("flag rubbish", log, CALL)
    log, buffer = one(version=2)
    buffer.without_extents()
    log.buffer(tid=2).cpu(0, 5).enter(1).without_extents()
    add("version 2 without extents", log, [*CALL, xray.ENTER])
    log, buffer = one(version=1)
    log.buffer(tid=2).cpu(0, 5).enter(1).custom(b"odd", tsc=5)
    add("version 1 junk fill", log, [*CALL, xray.ENTER, xray.CUSTOM])
    log, buffer = one(version=1)
    buffer.fill_with(bytes(4096))
    log.buffer(tid=2).cpu(0, 5).enter(1).fill_with(bytes(4096))
    add("version 1 zero fill", log, [*CALL, xray.ENTER])
    log, buffer = one(version=1, buffer_size=0)
    buffer.without_end()
    add("version 1 without end", log, CALL)
    log = FdrLog(5)
    log.buffer(missing=["pid"]).cpu(0, 0).enter(1)
    add("no pid", log, [xray.ENTER])


def add_odd_records() -> None:
    log, buffer = one()
    buffer.argument(5)
    add("argument of an exit", log, CALL, arguments_of_exits=1)
    log, buffer = one()
    buffer.enter(4).argument(1).argument(2)
    add("two arguments", log, [*CALL, xray.ENTER_ARGS])
    log, buffer = one()
    buffer.enter_args(4, 0)
    add("enter-args without one", log, [*CALL, xray.ENTER_ARGS])
    log, buffer = one()
    buffer.custom(b"").typed(1, b"")
    add("empty events", log, [*CALL, xray.CUSTOM, xray.TYPED])
    log, buffer = one()
    buffer.custom(b"x", -10)
    add("time backwards", log, [*CALL, xray.CUSTOM], clamped_times=1)
    log, buffer = one(version=4)
    buffer.typed(1, b"x")
    add("typed event in version 4", log, [*CALL, xray.TYPED])
    log, buffer = one()
    buffer.typed(1, b"abc").enter(4).exit(4).forget_typed_heads()
    add("short extents", log, [*CALL, xray.TYPED])
    log, buffer = one()
    buffer.typed(1, b"abc").enter(4).custom(b"event").forget_typed_heads()
    add("short extents within a record", log, [*CALL, xray.TYPED, xray.ENTER], records_cut_by_typed_events=1)
    log, buffer = one(frequency=0)
    add("frequency 0", log, CALL)


add_odd_buffers()
add_odd_records()


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    data, expected, repairs = ACCEPTED[name]
    log = xray.read(data)
    assert ops(log) == expected
    assert log.repairs == {key: count for key, count in repairs.items() if count}


def change(edit: Callable[[FdrLog, FdrBuffer], object], version: int = 5) -> bytes:
    log, buffer = one(version)
    edit(log, buffer)
    return log.bytes()


# The start and the end of the only buffer's body: 16 bytes of extents, four records, two calls.
BODY = 32 + 16
END = BODY + 4 * 16 + 2 * 8

REFUSED: dict[str, tuple[bytes, int]] = {
    "empty": (b"", 0),
    "31 bytes": (FdrLog(5).bytes()[:31], 0),
    "version 0": (FdrLog(0).bytes(), 0),
    "version 6": (FdrLog(6).bytes(), 0),
    "basic version 4": (BasicLog(4).bytes(), 0),
    "cut record": (change(lambda log, b: None)[:-1], 32),
    "cut extents": (change(lambda log, b: log.gap(b"\x0f\x01")), END),
    "extents past the end": (change(lambda log, b: b.claim(81)), 32),
    "extents too small": (change(lambda log, b: b.claim(72)), END - 8),
    "extents split a record": (change(lambda log, b: b.claim(76)), END - 8),
    "garbage between": (change(lambda log, b: log.gap(bytes(8)).repeat(0)), END),
    "zeros at the end": (change(lambda log, b: log.gap(bytes(8))), END),
    "no extents": (change(lambda log, b: b.without_extents()), 32),
    "end of buffer": (change(lambda log, b: b.end_of_buffer()), END),
    "argument first": (change(lambda log, b: b.cpu(0, 1).argument(1)), END + 16),
    "metadata kind 10": (change(lambda log, b: b.metadata(10)), END),
    "function kind 4": (change(lambda log, b: b.function(4, 1)), END),
    "negative event size": (change(lambda log, b: b.custom(b"", size=-1)), END),
    "event past the extents": (change(lambda log, b: b.custom(b"abc", size=4)), END),
    "second wall time": (change(lambda log, b: b.wall(1, 1)), END),
    "basic: partial record": (BasicLog(3).enter(1, 1).raw(b"x").bytes(), 64),
    "basic: record type 2": (BasicLog(3).function(0, 1, 1, record_type=2).bytes(), 32),
    "basic: function type 4": (BasicLog(3).function(4, 1, 1).bytes(), 32),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    data, offset = REFUSED[name]
    with pytest.raises(xray.XRayError) as caught:
        xray.read(data)
    assert caught.value.offset == offset


@pytest.mark.parametrize("missing", ["new", "wall"])
def test_missing_preamble(missing: str) -> None:
    log = FdrLog(5)
    log.buffer(missing=[missing]).cpu(0, 0).enter(1)
    with pytest.raises(xray.XRayError):
        xray.read(log.bytes())


def test_lenient_keeps_what_is_around_the_damage() -> None:
    log, _ = one()
    log.gap(bytes(8)).buffer(tid=2).cpu(0, 1).enter(1).metadata(10).enter(2)
    log.buffer(tid=3).cpu(0, 1).enter(4)
    read = xray.read(log.bytes()[:-4], lenient=True)
    assert [(r.tid, r.function) for r in read.records()] == [(1, 3), (1, 3), (2, 1)]
    assert read.losses == {"gap-bytes": 8, "damaged-buffers": 2, "cut-buffers": 1}


@given(strategies.fdr_cases())
def test_every_cut_is_located(case: strategies.Case) -> None:
    for end in {0, 31, 33, len(case.data) // 2, len(case.data) - 1}:
        try:
            xray.read(case.data[:end])
        except xray.XRayError as error:
            assert 0 <= error.offset <= end
