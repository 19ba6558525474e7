"""Basic logs in which forked children wrote again the records that their parent had not flushed."""

from __future__ import annotations

import pytest

from fastprof.core.options import Options
from tests.reference import xray as reference
from tests.support import product
from tests.support.xraylog import BasicLog

DUPLICATES = "duplicate-records"


def seen(log: BasicLog) -> tuple[list[int], int]:
    """The times of the only thread's records, and the number dropped: equal to the reference's."""
    threads, report = product.timeline(log.bytes())
    ((_, records),) = threads.items()
    (expected,) = reference.read(log.bytes()).threads.values()
    assert [r.tsc for r in records] == [r.tsc for r in expected]
    return [r.tsc for r in records], report.repairs[DUPLICATES]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_only_record_of_a_thread(version: int) -> None:
    """main had just begun: the parent writes its record, then the child writes that record and its own."""
    log = BasicLog(version).enter(1, 70).enter(1, 70).enter(2, 75).exit(2, 80).exit(1, 90)
    assert seen(log) == ([70, 75, 80, 90], 1)
    graph = product.graph(log.bytes(), Options(time_unit="ticks"))
    assert (b"#1", b"#1") not in graph.arcs and graph.self_ == {b"#1": (15, 1), b"#2": (5, 1)}


def test_the_argument_of_a_copy_goes_with_it() -> None:
    log = BasicLog(3)
    for _ in range(2):
        log.function(3, 1, 70).payload(1, 9)
    threads, report = product.timeline(log.exit(1, 71).bytes())
    assert [r.args for r in threads[1, 1]] == [(9,), ()]
    assert report.repairs == {DUPLICATES: 1}


@pytest.mark.parametrize("records", [1, 2, 3])
def test_several_children_that_did_nothing(records: int) -> None:
    log = BasicLog(3)
    for _ in range(4):
        for i in range(records):
            log.enter(1 + i, 70 + i)
    log.exit(records, 80)
    assert seen(log) == ([*range(70, 70 + records), 80], 3 * records)


def test_equal_records_that_are_no_copies() -> None:
    """With long clock ticks: on another CPU, in another thread, or after other records (a recursive call)."""
    assert seen(BasicLog(3).enter(1, 70).enter(1, 70, cpu=1)) == ([70, 70], 0)
    assert seen(BasicLog(3).enter(1, 70).enter(2, 70).enter(2, 70)) == ([70, 70, 70], 0)
    assert seen(BasicLog(3).enter(1, 70).exit(1, 70)) == ([70, 70], 0)
    threads, log = product.timeline(BasicLog(3).enter(1, 70).enter(1, 70, tid=2).enter(1, 70, pid=2).bytes())
    assert len(threads) == 3 and not log.repairs
