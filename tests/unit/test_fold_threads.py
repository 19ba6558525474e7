"""The stack machine with interleaved threads: their stacks may be deep, and switches many."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from fastprof import plan
from fastprof.bridges.fold.fold import to_graph
from fastprof.core._c import ffi, lib
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part
from fastprof.core.options import Options
from tests.reference import fold as reference_fold
from tests.reference import xray as reference
from tests.support import product
from tests.support.profiles import samples
from tests.support.xraylog import FdrLog

DEPTH, TURNS, THREADS = 100, 6000, 2
A_BATCH = 50  # too few rows for thread switches to add up within a batch


@cache
def log() -> bytes:
    """Threads with deep recursion that run in turn: mostly up and down, sometimes a frame lower."""
    made = FdrLog(5)
    for tid in range(THREADS):
        buffer = made.buffer(tid=tid + 1, pid=9, seconds=tid).cpu(tid, 10 * tid)
        for i in range(DEPTH):
            buffer.enter(1 + i % 7, 1)
    for turn in range(TURNS):
        tid = turn % THREADS
        buffer = made.buffer(tid=tid + 1, pid=9, seconds=10 + turn).cpu(turn % 3, 10_000 + 100 * turn)
        buffer.enter(1 + turn % 5, 1).exit(1 + turn % 5, 2)
        if turn % 40 < THREADS:
            buffer.exit(1 + (DEPTH - 1 - turn // 40) % 7, 3)
    return made.bytes()


@pytest.mark.parametrize("per_thread", [False, True])
def test_turns_are_folded_as_by_the_reference(per_thread: bool) -> None:
    expected = reference_fold.fold(reference.read(log()))
    for capacity in (None, A_BATCH):
        got = product.graph(log(), Options(time_unit="ticks", per_thread=per_thread), capacity=capacity)
        assert (got.self_, got.arcs) == product.folded(expected)


@pytest.mark.parametrize("labels", [(), ("thread",), ("cpu",)])
def test_call_paths_are_the_same_however_many_turns_a_batch_holds(labels: tuple[str, ...]) -> None:
    found: list[Any] = []
    for capacity in (None, A_BATCH):
        opened = product.open_input(log())
        options = Options(time_unit="ticks", labels=labels)
        made = plan.make([[opened.reader]], plan.End("test", "stacks"), options)
        batches = made.rows(opened.model, opened.log, capacity)
        sums: Counter[Any] = Counter()
        for sample in samples(opened.model, batches):
            path = tuple(f.lines[-1][0].name for f in sample.frames)
            for k, value in enumerate(sample.values):
                sums[path, sample.thread, sample.label, k] += value
        found.append((sums, opened.log.repairs))
    assert found[0] == found[1]
    assert len(found[0][0]) > DEPTH


def test_the_work_of_changes_does_not_grow_with_depth_times_turns() -> None:
    opened = product.open_input(log())
    fold = ffi.gc(lib.fp_fold_new(opened.model.c, lib.FP_FOLD_ARCS, 0), lib.fp_fold_free)
    n_batches = 0
    for batch in product.batches(opened):
        assert not lib.fp_fold_register(fold, ffi.NULL)
        assert lib.fp_fold_put(fold, batch.c, ffi.new("struct fp_err *")) == lib.FP_DONE
        n_batches += 1
    assert fold.switched < n_batches * 50_000 < DEPTH * TURNS


def test_rows_of_no_thread_are_folded_beside_those_of_one() -> None:
    """An archive may hold such rows: their thread is 0."""
    found = []
    for cores in (1, 2):
        model, batch = Model(), Batch("timeline", 8)
        model.add_part(Part(extra={"ticks_per_second": 1_000_000_000}))
        function, thread = model.function("f"), model.thread(7, 7)
        for i, (time, of, op) in enumerate(
            [(1, thread, lib.FP_OP_ENTER), (3, thread, lib.FP_OP_EXIT), (4, 0, lib.FP_OP_ENTER), (9, 0, lib.FP_OP_EXIT)]
        ):
            batch.c.time[i], batch.c.thread[i], batch.c.op[i], batch.c.function[i] = time, of, op, function
            batch.c.n = i + 1
        totals = Counter[str]()
        for rows in to_graph([batch], model, Options(cores=cores, time_unit="ticks"), Log()):
            for k, value_type in enumerate(model.parts[rows.c.part].value_types):
                own = (rows.c.kind[i] == lib.FP_COST for i in range(len(rows)))
                totals[value_type.name] += sum(v for v, is_own in zip(rows.values(k), own, strict=True) if is_own)
        found.append(totals)
    assert found[0] == found[1] and 7 in found[0].values()


def test_a_thread_without_a_share_costs_no_second_look_at_the_rows_before_it() -> None:
    batch = Batch("timeline", 100)
    for i in range(100):
        batch.c.thread[i] = 1 + i // 2
    batch.c.n = 100
    shares, wanted = ffi.new("struct fp_shares *", {"n": 2}), ffi.new("uint8_t[]", 2)
    following, given = ffi.new("uint32_t *"), []
    while (thread := lib.fp_fold_shares(batch.c, shares, wanted, following)) != lib.FP_NO_ID:
        assert following[0] == 2 * (thread - 1), "the next call goes on at the thread's first row"
        lib.fp_shares_assign(shares, thread, 1)
        given.append(thread)
    assert given == list(range(1, 51))
    assert bytes(ffi.buffer(wanted)) == b"\1\1"
    assert shares.work[0] == shares.work[1] == 25
