"""Random XRay logs and the expected result of reading them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.reference.xray import CUSTOM, ENTER, ENTER_ARGS, FDR, FUNCTION_OPS, TYPED, Record
from tests.support.xraylog import FdrBuffer, ProfilingLog, basic_log, fdr_log, header

Threads = dict[tuple[int, int], list[Record]]


@dataclass
class Case:
    data: bytes
    threads: Threads
    repairs: dict[str, int] = field(default_factory=dict)


def steps(ops: tuple[str, ...], cpus: int) -> st.SearchStrategy[tuple[int, Record]]:
    """(ticks since the record before, the record without thread and time)."""
    # Mostly short, sometimes beyond the 31 or 32 bits of a delta.
    ticks = st.one_of(st.integers(0, 50), st.integers(0, 1 << 33))
    function = st.one_of(st.integers(1, 6), st.integers(0, (1 << 28) - 1))

    def record(op: str, cpu: int, function: int, args: list[int], data: bytes, kind: int) -> Record:
        if op in (CUSTOM, TYPED):
            return Record(0, 0, cpu, 0, op, 0, (), data, kind if op == TYPED else 0)
        return Record(0, 0, cpu, 0, op, function, tuple(args) if op == ENTER_ARGS else ())

    args = st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=2)
    records = st.builds(
        record,
        st.sampled_from(ops),
        st.integers(0, cpus - 1),
        function,
        args,
        st.binary(max_size=20),
        st.integers(0, (1 << 16) - 1),
    )
    return st.tuples(ticks, records)


@st.composite
def threads(
    draw: st.DrawFn, ops: tuple[str, ...], *, pids: bool = True, cpus: int = 3, max_records: int = 30
) -> Threads:
    """Up to three threads of one or two processes, each in time order and not empty."""
    keys = st.tuples(st.sampled_from([1, 70000] if pids else [0]), st.sampled_from([1, 300000, (1 << 32) - 5]))
    found: Threads = {}
    for pid, tid in draw(st.lists(keys, unique=True, max_size=3)):
        tsc = draw(st.one_of(st.integers(0, 1000), st.just(1_795_248_685_110_004_903)))
        records = []
        for ticks, record in draw(st.lists(steps(ops, cpus), min_size=1, max_size=max_records)):
            tsc += ticks
            records.append(record._replace(pid=pid, tid=tid, tsc=tsc))
        found[pid, tid] = records
    return found


@st.composite
def fdr_cases(draw: st.DrawFn, *, versions: tuple[int, ...] = (1, 2, 3, 4, 5), odd: bool = True) -> Case:
    """FDR logs in any version and byte order; `odd` ones have buffers out of order and repeated, and two headers."""
    version, order = draw(st.sampled_from(versions)), draw(st.sampled_from("<>"))
    ops = (*FUNCTION_OPS, CUSTOM, TYPED) if version >= 5 else (*FUNCTION_OPS, CUSTOM)
    expected = draw(threads(ops, pids=version >= 3))
    if order == ">":
        # The first byte distinguishes records; byte-swapped, its lowest bit is bit 20 of a function id.
        expected = {k: [r._replace(function=r.function & ~(1 << 20)) for r in t] for k, t in expected.items()}
    records = [r for thread in expected.values() for r in thread]
    log = fdr_log(records, version, order=order, per_buffer=draw(st.integers(1, 12)))
    repairs = {}
    if odd and log.pieces:
        doubles = draw(st.sets(st.integers(0, len(log.pieces) - 1), max_size=2))
        for index in doubles:
            log.repeat(index)
        if doubles:
            repairs["duplicate-buffers"] = len(doubles)
        if version > 1 and draw(st.booleans()):
            log.gap(header(version, FDR, order=order, buffer_size=0, rest=b"\xaa" * 8))
            repairs["joined-logs"] = 1
        random.Random(draw(st.integers(0, 99))).shuffle(log.pieces)
    return Case(log.bytes(), expected, repairs)


@st.composite
def cut_typed_cases(draw: st.DrawFn) -> Case:
    """Version 5 logs with typed events as written by the runtime: each truncates the end by 16 bytes."""
    expected = draw(threads((ENTER, TYPED), max_records=8))
    records = [r for thread in expected.values() for r in thread]
    log = fdr_log(records)
    kept: Threads = {}
    cut = 0
    for buffer, (key, thread) in zip(log.pieces, sorted(expected.items()), strict=True):
        assert isinstance(buffer, FdrBuffer)
        buffer.forget_typed_heads()
        end = len(buffer.body) - 16 * buffer.typed_events
        kept[key] = records_within(thread, end)
        cut += end not in (*buffer.starts, len(buffer.body))
    return Case(log.bytes(), kept, {"records-cut-by-typed-events": cut} if cut else {})


def records_within(thread: list[Record], end: int) -> list[Record]:
    """The records that end within the first `end` bytes of their buffer."""
    counts = range(1, len(thread) + 1)
    return thread[: sum(buffer_size(thread[:count]) <= end for count in counts)]


def buffer_size(records: list[Record]) -> int:
    (buffer,) = fdr_log(records).pieces
    assert isinstance(buffer, FdrBuffer)
    return len(buffer.body)


def begins_with_different_records(threads: Threads) -> bool:
    """A second record equal to the first, except for arguments, would be read as a forked child's copy."""
    firsts = ([record._replace(args=()) for record in thread[:2]] for thread in threads.values())
    return all(len(first) < 2 or first[0] != first[1] for first in firsts)


@st.composite
def basic_cases(draw: st.DrawFn, *, odd: bool = True) -> Case:
    """Basic logs; `odd` ones have arguments whose call is missing, runs that a forked child wrote again, and another
    log appended to them."""
    version, order = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from("<>"))
    expected = draw(threads(FUNCTION_OPS, pids=version >= 3).filter(begins_with_different_records))
    log = basic_log([], version, order=order)
    repairs: dict[str, int] = {}
    for thread in expected.values():
        if odd and draw(st.booleans()):
            log.payload(0x7FFFFFF, 1, tid=9, pid=9)
            repairs["orphan-arguments"] = repairs.get("orphan-arguments", 0) + 1
        log.add(thread)
        inherited = thread[draw(st.integers(0, len(thread))) :] if odd else []
        # A run that does not step back in time looks like real records, except for a thread's only record.
        steps_back = inherited and (inherited[0].tsc < thread[-1].tsc or len(thread) == 1)
        if steps_back and thread.count(inherited[0]) == 1:
            children = draw(st.integers(1, 2))
            log.add(inherited * children)
            repairs["replayed-records"] = repairs.get("replayed-records", 0) + len(inherited) * children
    if odd and draw(st.booleans()):
        behind = draw(threads(FUNCTION_OPS, pids=version >= 3).filter(begins_with_different_records))
        behind = {(pid, tid - 1): [r._replace(tid=tid - 1) for r in t] for (pid, tid), t in behind.items()}
        log.raw(basic_log([r for t in behind.values() for r in t], version, order=order).bytes())
        expected |= behind
        repairs["joined-logs"] = 1
    return Case(log.bytes(), expected, repairs)


@st.composite
def profile_logs(draw: st.DrawFn) -> tuple[ProfilingLog, list[tuple[int, int, tuple[int, ...], int, int]]]:
    """A profile's builder and its (block, tid, path, calls, ticks) rows."""
    log = ProfilingLog(draw(st.integers(0, 1 << 22)), order=draw(st.sampled_from("<>")), bare=draw(st.booleans()))
    rows = []
    for block in range(draw(st.integers(0, 3))):
        tid = draw(st.integers(1, (1 << 32) - 1))
        log.block(tid)
        for _ in range(draw(st.integers(0, 3))):
            path = tuple(draw(st.lists(st.integers(1, 1 << 28), min_size=1, max_size=5)))
            calls = draw(st.integers(0, 1 << 50))
            ticks = draw(st.integers(-(1 << 50), 1 << 58))
            log.row(path, calls, ticks)
            rows.append((block, tid, path, calls, ticks))
    return log, rows
