"""perf.data: order, repairs, labels; details that tests of all formats do not cover."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FormatError
from tests.support.paths import CORPUS
from tests.support.perfdata import CALLCHAIN, IP, PERIOD, RAW, TID, TIME, PerfData

ALL = IP | TID | TIME | CALLCHAIN | PERIOD
REAL = (CORPUS / "perf/good/real-cxx.data").read_bytes()
MESSAGE = b"[ perf record: Woken up 1 times to write data ]\n[ perf record: Captured and wrote 0.010 MB - ]\n"


def info(data: bytes, **options: Any) -> Any:
    return fastprof.info(io.BytesIO(data), **options)


def times(data: bytes, **options: Any) -> list[int]:
    with fastprof.open(io.BytesIO(data), symbolize=False, **options) as profile:
        return [time for batch in profile.batches() for time in batch["time"]]


def shuffled(*, marks: bool) -> bytes:
    """Two CPUs, one after the other in each round."""
    data = PerfData().comm(7, 7, b"app")
    for n in range(20):
        for cpu in range(2):
            for i in range(50):
                data.sample(7, [0x1000 + i], 1000 * n + 2 * i + cpu + 1)
        if marks:
            data.round()
    return data.bytes()


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("max_memory", [1, 10_000, 32 << 20])
def test_samples_come_by_time_however_little_memory_there_is(marks: bool, max_memory: int) -> None:
    found = times(shuffled(marks=marks), max_memory=max_memory)
    assert len(found) == 2000 and found == sorted(found)


def test_a_record_that_is_late_is_counted() -> None:
    data = PerfData().sample(7, [1], 100).round().sample(7, [1], 200).round().round().sample(7, [1], 50)
    log = info(data.bytes())
    assert log.repairs["late-records"] == 1
    assert times(data.bytes()) == [100, 200, 50]


def test_both_byte_orders_say_the_same() -> None:
    def data(order: str) -> bytes:
        made = PerfData(order=order).comm(7, 8, b"app").mmap(7, 0x1000, 0x1000, b"/bin/app", 0x2000)
        return made.sample(7, [0x1010, 0x1020, 0x9000], 5, tid=8).bytes()

    texts = []
    for order in "<>":
        out = io.BytesIO()
        fastprof.convert(io.BytesIO(data(order)), out, to="pprof", symbolize=False)
        texts.append(out.getvalue())
    assert texts[0] == texts[1]


def test_long_chains_that_share_their_outer_frames() -> None:
    """Stacks below a new frame are added many at a time."""
    data, expected = PerfData().comm(7, 7, b"app"), []
    for i, shared in enumerate([0, 1, 63, 64, 65, 129, 199, 200, 100, 0]):
        outer_first = [0x1000 + k for k in range(shared)] + [0x10000 * (i + 1) + k for k in range(200 - shared)]
        data.sample(7, outer_first[::-1], 5 + i)
        places = [address - 1 for address in outer_first[:-1]] + outer_first[-1:]  # callers have return addresses
        expected.append(";".join(map(hex, places)).encode() + b" 250")
    out = io.BytesIO()
    fastprof.convert(io.BytesIO(data.bytes()), out, to="folded", symbolize=False)
    assert sorted(out.getvalue().splitlines()) == sorted(expected)


def test_a_fork_has_the_maps_of_its_parent_until_it_gets_its_own() -> None:
    data = PerfData().mmap(7, 0x1000, 0x1000, b"/bin/one", 0x1000).fork(9, 7, time=1).sample(9, [0x1010], 2)
    data.mmap(9, 0x1000, 0x1000, b"/bin/two", 0x1000, time=3).sample(9, [0x1010], 4).sample(7, [0x1010], 5)
    out = io.BytesIO()
    fastprof.convert(io.BytesIO(data.bytes()), out, to="folded", symbolize=False)
    assert sorted(out.getvalue().splitlines()) == [b"[one+0x1010] 500", b"[two+0x1010] 250"]


def test_a_recorder_that_was_killed_has_written_no_length() -> None:
    data = bytearray(REAL)
    struct.pack_into("<Q", data, 48, 0)
    at = struct.unpack_from("<Q", REAL, 40)[0] + struct.unpack_from("<Q", REAL, 48)[0]
    log = info(bytes(data[:at]))
    assert log.repairs["unfinished-files"] == 1
    assert log.facts["totals"]["cpu-clock_samples"] == 45


def test_messages_of_perf_record_in_a_pipe_are_a_repair_at_its_end_only() -> None:
    data = PerfData().sample(7, [1], 100).bytes()
    assert info(data + MESSAGE).repairs["messages"] == 1


def test_cpus_are_labels_if_asked_for() -> None:
    file = CORPUS / "perf/good/made-basic-be.data"
    found = [fastprof.top(file, symbolize=False, perf={"cpus": cpus}) for cpus in (False, True)]
    assert found[0].rows == found[1].rows
    with fastprof.open(file, perf={"cpus": True}, symbolize=False) as profile:
        model = profile._model
        assert list(profile.batches())
        keys = {model.string(model.row("labels", i)[1]) for i in range(1, model.count("labels"))}
    assert keys == {b"comm", b"cpu"}


SWITCH = b"""name: sched_switch
ID: 372
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] file;\toffset:28;\tsize:4;\tsigned:0;
\tfield:u64 state;\toffset:32;\tsize:8;\tsigned:0;
\tfield:int gone;\toffset:4000;\tsize:4;\tsigned:1;
\tfield:unsigned long args[6];\toffset:0;\tsize:8;\tsigned:0;
\tfield:short pair[2];\toffset:24;\tsize:4;\tsigned:1;
\tfield:__rel_loc char[] near;\toffset:28;\tsize:4;\tsigned:0;

print fmt: "field:int no; offset:8; size:4; signed:1;"
"""


def tracepoint(order: str, formats: list[bytes], far: tuple[int, int] = (4, 40)) -> bytes:
    """`far`: length and offset of a text."""
    made = PerfData(IP | TID | TIME | CALLCHAIN | PERIOD | RAW, order, event=(2, 372)).tracing(b"sched", formats)
    raw = bytes(8) + b"app\0garbage".ljust(16, b"!") + made.pack("iIQ", -7, far[0] << 16 | far[1], 9) + b"a/b\0"
    return made.sample(7, [1], 100, raw=raw).bytes()


def labels(data: bytes) -> list[tuple[bytes, bytes, int]]:
    found = []
    with fastprof.open(io.BytesIO(data), symbolize=False) as profile:
        (label,) = (label for batch in profile.batches() for label in batch["label"])
        model = profile._model
        while label:
            label, key, text, low, high, _ = model.row("labels", label)
            found.append((model.string(key), model.string(text), struct.unpack("<q", struct.pack("<II", low, high))[0]))
    return found[::-1]


@pytest.mark.parametrize("order", "<>")
def test_fields_of_tracepoints_are_labels(order: str) -> None:
    data = tracepoint(order, [b"", b"name: other\nID: 1\n", SWITCH])
    expected = [(b"prev_comm", b"app", 0), (b"prev_pid", b"", -7), (b"file", b"a/b", 0), (b"state", b"", 9)]
    expected.append((b"pair", b"-7,-1" if order == "<" else b"-1,-7", 0))
    assert labels(data) == expected
    log = info(data)
    assert log.facts["events"] == {"sched:sched_switch": 1}
    assert "raw-data" not in log.not_representable and "trace-bytes" not in log.not_representable


@pytest.mark.parametrize("far", [(5, 44), (65535, 0), (0, 65535)])
def test_texts_of_tracepoints_outside_of_their_sample_are_left_out(far: tuple[int, int]) -> None:
    found = [key for key, _, _ in labels(tracepoint("<", [SWITCH], far))]
    assert found == [b"prev_comm", b"prev_pid", b"state", b"pair"]


def test_damaged_formats_of_tracepoints_are_counted() -> None:
    data = tracepoint("<", [SWITCH]).replace(struct.pack("<Q", len(SWITCH)), b"\xff" * 8)
    log = info(data)
    assert log.losses["damaged-features"] == 1 and log.not_representable["raw-data"] == 1
    assert log.facts["events"] == {"tracepoint:372": 1}


@pytest.mark.parametrize(("period", "expected"), [(1, b"0x1 1\n0x2 2"), (250_000, b"0x1 250\n0x2 500")])
def test_periods_below_those_of_the_timer_are_no_times(period: int, expected: bytes) -> None:
    data = PerfData(period=period).sample(7, [1], 100, period).sample(7, [2], 200, period).sample(7, [2], 300, period)
    out = io.BytesIO()
    fastprof.convert(io.BytesIO(data.bytes()), out, to="folded", symbolize=False)
    assert out.getvalue().strip() == expected


def test_a_sample_that_is_cut_is_an_error_with_its_place_or_a_loss() -> None:
    good = PerfData().sample(7, [1, 2, 3], 100).bytes()
    bad = good + struct.pack("<IHHQ", 9, 2, 16, 1)
    with pytest.raises(FormatError, match="the fields of a sample extend past its record") as caught:
        info(bad)
    assert caught.value.offset == len(good)
    log = info(bad, lenient=True)
    assert log.losses["damaged-records"] == 1


def test_a_build_id_in_a_pipe_is_that_of_samples_after_it() -> None:
    data = PerfData().mmap(7, 0x1000, 0x1000, b"/bin/one").mmap(7, 0x2000, 0x1000, b"/bin/two").sample(7, [0x2010], 1)
    data.build_id(b"/bin/one", b"\1" * 20).build_id(b"/bin/two", b"\2" * 20).sample(7, [0x1010], 2).round()
    assert objects(data) == {(b"/bin/one", b"01" * 20), (b"/bin/two", b"02" * 20)}
    data = PerfData(ALL & ~TIME).mmap(7, 0x1000, 0x1000, b"/bin/one").sample(7, [0x1010], 1)
    data.build_id(b"/bin/one", b"\1" * 20).build_id(b"/bin/two", b"\2" * 20)
    assert objects(data) == {(b"/bin/one", b"")}
    assert info(data.bytes()).not_representable["late-build-ids"] == 1


def objects(data: PerfData) -> set[tuple[bytes, bytes]]:
    with fastprof.open(io.BytesIO(data.bytes()), symbolize=False) as profile:
        assert list(profile.batches())
        model = profile._model
        rows = [model.row("objects", i) for i in range(1, model.count("objects"))]
        return {(model.string(name), model.string(build_id)) for name, build_id in rows}


@pytest.mark.parametrize("declared", ["struct in6_addr addr", "struct pair pairs[2]", "mystery_t cells[CELLS]"])
def test_fields_that_are_neither_numbers_nor_texts_are_counted(declared: str) -> None:
    text = f"name: x\nID: 372\nformat:\n\tfield:{declared};\toffset:8;\tsize:16;\tsigned:0;\n".encode()
    log = info(tracepoint("<", [text]))
    assert log.not_representable == {"tracepoint-fields": 1}
