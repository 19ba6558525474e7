"""Perfetto traces: losses of the format, and the identity of threads."""

from __future__ import annotations

from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FormatError, UsageError
from fastprof.core.options import Options
from tests.contract.dump import dump
from tests.reference import perfetto
from tests.support.conversions import convert_bytes
from tests.support.perfettotrace import BEGIN, CLEARED, END, event, lane, message, packet, process, thread
from tests.support.xraylog import BasicLog, FdrLog

DEPTH = 512


def nested(depth: int) -> bytes:
    """f1 calls f2 calls f3 ..., each of which has an event."""
    log = FdrLog(5, frequency=10**9)
    buffer = log.buffer(tid=1, pid=1).cpu(0, 0)
    for i in range(1, depth + 1):
        buffer.enter_args(i, 1, i).custom(b"%d" % i)
    for i in range(depth, 0, -1):
        buffer.exit(i, 1)
    return log.bytes()


def test_calls_that_are_too_deep_are_left_out_on_both_ends() -> None:
    done = convert_bytes(nested(600), "xray", "perfetto")
    (track,) = perfetto.read(done.data)
    calls = [slice_ for slice_ in track.slices if slice_.end is not None]
    assert [slice_.name for slice_ in calls] == [f"#{i}" for i in range(1, DEPTH + 1)]
    assert [slice_.args for slice_ in calls] == [{"arg0": i} for i in range(1, DEPTH + 1)]
    assert [slice_.end - slice_.begin for slice_ in calls] == [2 * 600 - 2 * i + 1 for i in range(1, DEPTH + 1)]
    assert max(slice_.depth for slice_ in track.slices) == DEPTH - 1
    # 88 calls, and the events in them and in the call above them
    assert [*done.log.not_representable.values()] == [88 + 89]


def test_what_was_left_out_of_a_trace_is_said(tmp_path: Path) -> None:
    path = tmp_path / "deep.xray"
    path.write_bytes(nested(DEPTH))
    log = fastprof.convert(path, tmp_path / "deep.pftrace.gz")
    assert log.rows == {"calls_written": DEPTH, "events_written": DEPTH - 1}
    assert (tmp_path / "deep.pftrace.gz").read_bytes().startswith(b"\x1f\x8b")


def test_threads_of_two_inputs_stay_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        log = BasicLog()
        for tid in (7, 8):
            log.enter(1, 10, tid=tid, pid=7).exit(1, 20 + tid, tid=tid, pid=7)
        (tmp_path / f"{name}.xray").write_bytes(log.bytes())
    out = tmp_path / "out.pftrace"
    report = fastprof.convert([tmp_path / "one.xray", tmp_path / "two.xray"], out, time_unit="ticks")
    first, second, third, fourth = perfetto.read(out.read_bytes())
    # no name: the viewer shows their numbers, and would show "thread 7 7"
    assert [(t.pid, t.tid, t.process, t.name) for t in (first, second)] == [
        (7, 7, "one.xray", ""),
        (7, 8, "one.xray", ""),
    ]
    # other numbers, because these are in use; the names still contain the original ones
    assert third.pid == fourth.pid != 7 and {7, 8}.isdisjoint({third.tid, fourth.tid})
    assert [(t.process, t.name) for t in (third, fourth)] == [
        ("two.xray (7)", "thread 7"),
        ("two.xray (7)", "thread 8"),
    ]
    assert [[s.end - s.begin for s in t.slices if s.end] for t in (third, fourth)] == [[17], [18]]
    assert sum(report.not_representable.values()) == 2


def test_a_name_that_is_not_utf8_is_mended_and_counted() -> None:
    log = FdrLog(5, frequency=10**9)
    log.buffer(tid=1, pid=1).cpu(0, 0).enter(1, 1).enter(2, 1).exit(2, 1).exit(1, 1)
    done = convert_bytes(log.bytes(), "xray", "perfetto", Options(mod_funcname=('s/#1/f\udcff<b>"/',)))
    (track,) = perfetto.read(done.data)
    assert [slice_.name for slice_ in track.slices] == ['f\ufffd<b>"', "#2"]
    assert done.log.not_representable == {"invalid-utf8": 1}


def test_what_has_no_times_is_refused_with_what_to_choose() -> None:
    for data, from_ in ((b"main;f 3\n", "folded"), (b"events: Ir\nfn=f\n1 2\n", "callgrind")):
        with pytest.raises(UsageError, match=r"no begin and end of calls, which a timeline needs.*pprof or folded"):
            convert_bytes(data, from_, "perfetto", Options())


def test_one_clock_that_is_unknown_among_others_is_an_error(tmp_path: Path) -> None:
    for name, frequency in (("one", 0), ("two", 10**9)):
        log = FdrLog(5, frequency=frequency)
        log.buffer(tid=1).cpu(0, 0).enter(1, 1).exit(1, 1)
        (tmp_path / name).write_bytes(log.bytes())
    with pytest.raises(UsageError, match="time_unit=ticks"):
        fastprof.convert([tmp_path / "one", tmp_path / "two"], tmp_path / "o", from_="xray", to="perfetto")
    fastprof.convert(
        [tmp_path / "one", tmp_path / "two"], tmp_path / "o", from_="xray", to="perfetto", time_unit="ticks"
    )


def test_very_many_exits_without_entries() -> None:
    """Among each 300 calls are far more orphan exits than calls: all are left out, and the other calls end
    correctly."""
    log = FdrLog(5, frequency=10**9)
    buffer = log.buffer(tid=1, pid=1).cpu(0, 0)
    for _ in range(3):
        for i in range(1, 301):
            buffer.enter(i, 1)
            buffer.exit(1000, 0)
        buffer.exit(151, 1).exit(151, 0)  # callees of 151 were left by an exception
        for i in range(150, 0, -1):
            buffer.exit(i, 1)
    done = convert_bytes(log.bytes(), "xray", "perfetto")
    (track,) = perfetto.read(done.data)
    assert [(s.name, (s.end or 0) - s.begin) for s in track.slices] == [
        (f"#{i}", 301 - i if i > 150 else 452 - 2 * i) for i in range(1, 301)
    ] * 3
    assert done.log.repairs == {"orphan-exits": 3 * 301, "unwound-frames": 3 * 149}


NAMED_LATE = b"""[
{"name":"main","ph":"B","ts":1,"pid":4,"tid":7}, {"name":"main","ph":"E","ts":2,"pid":4,"tid":7},
{"name":"process_name","ph":"M","pid":4,"args":{"name":"server"}},
{"name":"thread_name","ph":"M","pid":4,"tid":7,"args":{"name":"worker"}}]"""


def test_names_of_threads_may_come_last() -> None:
    (track,) = perfetto.read(convert_bytes(NAMED_LATE, "trace-event", "perfetto").data)
    assert (track.process, track.pid, track.name, track.tid) == ("server", 4, "worker", 7)
    assert [(s.name, s.begin, s.end) for s in track.slices] == [("main", 1000, 2000)]


def test_threads_whose_numbers_are_those_of_lanes_or_beyond_32_bits() -> None:
    """The model's numbers differ: calls of two threads with one number would be nested in each other."""
    most, lane_number = (1 << 32) - 1, (1 << 31) - 1
    tracks = [thread(1, 10, most), thread(2, 10, most - 1), thread(3, 10, 1 << 40), thread(4, 10, lane_number)]
    tracks += [process(5, 10), lane(6, "lane", 5)]
    data = [packet(flags=CLEARED), *(packet(track=track) for track in tracks)]
    for uuid, begin in ((1, 10), (2, 20), (3, 30), (6, 35), (4, 40)):  # calls of 100 ns that overlap
        data += [packet(time=begin, event=event(BEGIN, name=f"f{uuid}", track=uuid))]
        data += [packet(time=begin + 100, event=event(END, track=uuid))]
    top = fastprof.top(b"".join(data), from_="perfetto", by="thread")
    assert (top.total, len(top.rows)) == (500, 5)
    assert [row.self for row in top.rows] == [100] * 5


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (packet((8, b"1")), "a field of a packet has the wrong wire type"),
        (packet(event=event(BEGIN, (16, b"1"), name="g"), time=2), "a packet is malformed"),
        (packet(track=lane(7) + message((5, b"1"))), "a packet is malformed"),
        (packet(interned=message((2, message((1, b"1"), (2, "g"))))), "a packet is malformed"),
    ],
)
def test_a_field_with_the_wrong_wire_type_is_located(bad: bytes, text: str) -> None:
    before = packet(time=1, flags=CLEARED, event=event(BEGIN, name="f"))
    after = packet(time=3, event=event(END))
    with pytest.raises(FormatError, match=text) as error:
        dump(before + bad + after, from_="perfetto")
    assert error.value.offset == len(before)
    lines = dump(before + bad + after, from_="perfetto", options=Options(lenient=True))
    assert lines[:2] == dump(before + after, from_="perfetto")[:2]
    assert lines.count("losses 1 damaged packets") == 1
