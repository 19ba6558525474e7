"""Perfetto's own trace processor (tests/viewers/trace_processor.mjs) on our output: every slice, every total."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest

import fastprof
from fastprof.core.options import Options
from tests.differential.peers import viewer
from tests.reference import perfetto
from tests.support import product
from tests.support.conversions import convert_bytes
from tests.support.paths import CORPUS, needs_shared, shared_data
from tests.support.xraylog import FdrLog
from tests.unit.test_perfetto import NAMED_LATE

SLICES = (
    "select coalesce(p.pid, 0), coalesce(p.name, ''), t.tid, coalesce(t.name, ''), s.name, s.ts, s.dur, s.depth "
    "from slice s join thread_track k on s.track_id = k.id join thread t using (utid) left join process p using (upid) "
    "order by s.id"
)
# self and total time of each name; the total counts a recursive name once
TOTALS = """
  with child as (select parent_id as id, sum(dur) as d from slice where parent_id is not null group by 1)
  select name, sum(dur - coalesce(child.d, 0)) from slice left join child using (id) group by 1 having sum(dur) > 0
"""
# calls as in the table `spans`; events are slices in Perfetto, too
CALLS = """
  with child as (select parent_id as id, sum(dur) as d from slice where parent_id is not null group by 1)
  select t.tid, s.name, s.ts, s.dur, s.dur - coalesce(child.d, 0), s.depth, coalesce(p.name, '')
  from slice s join thread_track k on s.track_id = k.id join thread t using (utid) left join child on child.id = s.id
  left join slice p on s.parent_id = p.id where s.name not in ('custom event', 'typed event')
"""
ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
ARGS = (
    "select s.name, a.key, coalesce(a.string_value, a.int_value) from slice s join args a using (arg_set_id) "
    "where a.key like 'debug.%' order by s.id, a.key"
)
TICKS = Options(time_unit="ticks")

LOGS = sorted(p for p in (CORPUS / "xray" / "good").iterdir() if not p.name.startswith("profil"))


def check(data: bytes, path: Path) -> None:
    done = convert_bytes(data, "xray", "perfetto", TICKS)
    path.write_bytes(done.data)
    slices, totals, errors = viewer("trace_processor", path, SLICES, TOTALS, ERRORS)
    assert errors == []
    tracks = perfetto.read(done.data)
    expected = [
        (t.pid, t.process, t.tid, t.name, s.name, s.begin, (s.end or s.begin) - s.begin, s.depth)
        for t in tracks
        for s in t.slices
    ]
    assert sorted(map(tuple, slices)) == sorted(expected)
    # and the graph of the same log, made without Perfetto
    own = {name.decode(): ticks for name, (ticks, _) in product.graph(data, TICKS).self_.items() if ticks}
    assert {name: ticks for name, ticks in totals if ticks} == own


@pytest.mark.parametrize("path", LOGS[::2], ids=lambda p: p.name)
def test_corpus(path: Path, tmp_path: Path) -> None:
    check(path.read_bytes(), tmp_path / "out.pftrace")


@pytest.mark.parametrize("path", LOGS[1::2], ids=lambda p: p.name)
def test_the_table_of_spans_is_that_of_slices(path: Path, tmp_path: Path) -> None:
    drawn = tmp_path / "out.pftrace"
    drawn.write_bytes(convert_bytes(path.read_bytes(), "xray", "perfetto", TICKS).data)
    (slices,) = viewer("trace_processor", drawn, CALLS)
    with fastprof.open(path, time_unit="ticks") as profile:
        spans = pyarrow.table(profile.table("spans")).to_pylist()
    names = {span["id"]: span["function"] for span in spans}
    columns = ("thread", "function", "ts", "dur", "self", "depth")
    own = [(*(span[name] for name in columns), names.get(span["parent"], "")) for span in spans]
    assert sorted(own) == sorted(map(tuple, slices))


@needs_shared
def test_a_real_trace(tmp_path: Path) -> None:
    check(shared_data("xray/fdr5-lua-clang19/trace.xray").read_bytes(), tmp_path / "lua.pftrace")


def test_deep_calls_and_compressed_files(tmp_path: Path) -> None:
    import gzip

    log = FdrLog(5, frequency=10**9)
    buffer = log.buffer(tid=1, pid=1).cpu(0, 5)
    for i in range(1, 601):
        buffer.enter(i, 1)
    for i in range(600, 0, -1):
        buffer.exit(i, 1)
    path = tmp_path / "deep.pftrace.gz"
    path.write_bytes(gzip.compress(convert_bytes(log.bytes(), "xray", "perfetto").data))
    slices, errors = viewer("trace_processor", path, "select name, dur, depth from slice order by depth", ERRORS)
    assert errors == []
    assert slices == [[f"#{i}", 1200 - 2 * i + 1, i - 1] for i in range(1, 513)]


def test_arguments_and_events(tmp_path: Path) -> None:
    log = FdrLog(5, frequency=10**9)
    buffer = log.buffer(tid=1, pid=1).cpu(0, 5).enter_args(1, 1, 42, 2**64 - 1).custom(b'say "\xc3\xa9"\n')
    buffer.typed(7, b"\x00\xff").exit(1, 1)
    path = tmp_path / "args.pftrace"
    path.write_bytes(convert_bytes(log.bytes(), "xray", "perfetto").data)
    args, errors = viewer("trace_processor", path, ARGS, ERRORS)
    assert errors == []
    assert args == [
        ["#1", "debug.arg0", 42],
        ["#1", "debug.arg1", -1],  # shown as a signed number
        ["custom event", "debug.data", 'say "é"\n'],
        ["typed event", "debug.data", "00ff"],
        ["typed event", "debug.type", 7],
    ]


def test_names_that_come_last_hold(tmp_path: Path) -> None:
    path = tmp_path / "named.pftrace"
    path.write_bytes(convert_bytes(NAMED_LATE, "trace-event", "perfetto").data)
    slices, errors = viewer("trace_processor", path, SLICES, ERRORS)
    assert errors == []
    assert slices == [[4, "server", 7, "worker", "main", 1000, 1000, 0]]
