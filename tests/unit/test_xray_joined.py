"""Several XRay logs in one file, as concatenated by `cat`."""

from __future__ import annotations

import struct

import pytest

from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.support import product
from tests.support.xraylog import BasicLog, FdrLog, ProfilingLog

JOINED = {"joined-logs": 1}


@pytest.mark.parametrize("window", [None, 1])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_basic_log_behind_another(version: int, order: str, window: int | None) -> None:
    logs = [BasicLog(version, order=order, frequency=2_400_000_000).enter(5, t).exit(5, t + 3) for t in (70, 40)]
    logs[1].payload(5, 9)  # an argument after a header belongs to no record of the log before
    threads, log = product.timeline(logs[0].bytes() + logs[1].bytes(), window=window)
    ((thread, records),) = threads.items()
    assert thread == (version // 3, 1) and [r.tsc for r in records] == [70, 73, 40, 43]
    assert log.repairs == JOINED
    # they are threads of two processes, or runs, even if their numbers are equal
    got = product.graph(logs[0].bytes() + logs[1].bytes(), Options(time_unit="ticks"))
    assert got.self_ == {b"#5": (6, 2)} and got.log.repairs == JOINED
    _, log = product.timeline(logs[0].bytes() + BasicLog(version, order=order, frequency=2_400_000_000).bytes())
    assert log.repairs == JOINED


def test_an_argument_that_looks_like_a_header_is_one_where_it_belongs_to_a_record() -> None:
    log = BasicLog(1, frequency=(7 << 32) + 123_456_789)
    header = log.bytes()
    for tid in (123_456_789, 1):
        log = BasicLog(1, frequency=(7 << 32) + 123_456_789).enter(3, 1, tid=tid).raw(header[:4])
        log.raw(struct.pack("<IIIQ", 3, 123_456_789, 7, 55) + bytes(8)).exit(3, 4, tid=tid)
        threads, report = product.timeline(log.bytes())
        assert [r.args for r in threads[0, tid]] == [(55,) if tid != 1 else (), ()]
        assert report.repairs == ({} if tid != 1 else JOINED)
    # nor is an argument whose thread id is possible
    log = BasicLog(1, frequency=4000).raw(BasicLog(1, frequency=4000).bytes())
    assert product.timeline(log.bytes())[1].repairs == {"orphan-arguments": 1}


@pytest.mark.parametrize("log", [BasicLog(1), BasicLog(3), FdrLog(5)])
def test_a_log_of_another_clock_cannot_be_read_on(log: BasicLog | FdrLog) -> None:
    other = bytearray(log.bytes())
    struct.pack_into("<Q", other, 8, 3_000_000_000)
    expected = "at byte 32: ticks per second of a further log is 3000000000, expected 1000000000, those of the first"
    with pytest.raises(FormatError, match=expected):
        product.timeline(log.bytes() + other)


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_an_fdr_log_behind_another(version: int) -> None:
    logs = []
    for tid in (1, 2):
        log = FdrLog(version)
        log.buffer(tid=tid, pid=7, seconds=5 - tid).cpu(0, 100).enter(tid, 1).exit(tid, 1)
        logs.append(log.bytes())
    for lenient in (False, True):
        threads, report = product.timeline(b"".join(logs), Options(lenient=lenient))
        assert {key[1]: [r.function for r in records] for key, records in threads.items()} == {1: [1, 1], 2: [2, 2]}
        assert report.repairs == JOINED and not report.losses


@pytest.mark.parametrize("window", [None, 1])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_profile_behind_another(order: str, window: int | None) -> None:
    logs = [ProfilingLog(pid, order=order, time_ns=1).block(4).row([1, 2], pid, 10 * pid) for pid in (3, 5)]
    opened = product.open_input(b"".join(log.bytes() for log in logs), window=window)
    rows = []
    for batch in product.batches(opened):
        threads = [opened.model.row("threads", t)[1:] for t in batch["thread"]]
        rows += list(zip(threads, batch.values(0), batch.values(1), strict=True))
    assert rows == [((3, 4), 30, 3), ((5, 4), 50, 5)]
    assert opened.log.repairs == JOINED
    assert opened.model.parts[0].pid is None
