"""Runs of call arcs that several threads sum, each in a range of keys: the result of merging them."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import pytest

from fastprof.bridges.fold import ranges
from fastprof.bridges.fold.arc_runs import ArcRuns
from fastprof.bridges.fold.ranges import Ranges
from fastprof.bridges.sums import sorted_runs
from fastprof.bridges.sums.sorted_runs import Pull, Words
from fastprof.core._c import ffi, lib
from fastprof.core.errors import FastprofError, check
from tests.unit.test_bridge_spill import giving
from tests.unit.test_cores import ours_left

N_FUNCTIONS = 100_000
LAST = (1 << 64) - 1


def pulled(pull: Pull, words: int) -> list[int]:
    chunk, found = ffi.new("uint64_t[]", words), []
    while got := pull(chunk, words):
        found += ffi.unpack(chunk, got)
    return found


def words_of(arcs: Iterable[tuple[int, int, int]], chance: random.Random) -> list[int]:
    """Records of arcs (group, caller, callee), in order."""
    return [
        word
        for group, caller, callee in sorted(arcs)
        for word in (group, caller << 32 | callee, 1, chance.randrange(1 << 40), chance.randrange(5))
    ]


def tried(status: int, err: Any) -> int:
    return check(status, err, "ranges", "arcs")


def runs_of(*runs: list[int]) -> ArcRuns:
    model = ffi.new("struct fp_model *")
    model.functions.n = N_FUNCTIONS
    found = ArcRuns(model, tried)
    for words in runs:
        found.add(giving(*words))
    return found


def some_runs(n: int, chance: random.Random, few: bool) -> list[list[int]]:
    """`few`: with few callers; otherwise most callers have one callee."""
    groups, callers = (1, 3) if few else (3, 1 << 32)
    runs = []
    for _ in range(n):
        arcs = {
            (chance.randrange(groups), chance.randrange(callers), chance.randrange(N_FUNCTIONS)) for _ in range(3000)
        }
        runs.append(words_of(list(arcs)[: chance.choice([0, 1, 700, 3000])], chance))
    return runs


def merged(runs: list[list[int]]) -> list[int]:
    words = Words(lib.FP_ARC_WIDTH)
    for run in runs:
        words.add(giving(*run))
    return pulled(words.merge().pull, 4000)


def sums_of(runs: ArcRuns, n_threads: int, memory: int = 1, words: int = 4000) -> list[int]:
    with ExitStack() as threads:
        return pulled(Ranges(runs, n_threads, memory, threads).pull, words)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("n_threads", [0, 1, 2, 5])
@pytest.mark.parametrize("n_runs", [0, 1, 2, 9, 40])
def test_ranges_give_what_one_merge_gives(
    n_runs: int, n_threads: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 12)
    monkeypatch.setattr(ranges, "_PIECE", 900)
    runs = some_runs(n_runs, random.Random(n_runs), few)
    assert sums_of(runs_of(*runs), n_threads, 1000, 42) == merged(runs)
    assert not ours_left()


@pytest.mark.parametrize("bits", range(0, 65, 4))
def test_counters_of_any_size_are_packed(bits: int) -> None:
    chance = random.Random(bits)
    run = [
        word
        for key in range(2000)
        for word in (key // 700, (key % 700) << 32 | chance.randrange(9), *(chance.getrandbits(bits) for _ in range(3)))
    ]
    runs = runs_of(run)
    assert sums_of(runs, 0) == run
    nbytes = next(nbytes for nbytes in (1, 2, 4, 8) if bits <= 8 * nbytes)
    assert runs.runs[0].nbytes <= 2000 * (1 + 8 + 3 * nbytes) + len(runs.runs[0].keys) * 12


def test_runs_that_became_one_have_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_runs, "MOST_RUNS", 5)
    runs = [words_of(((0, key, key) for key in range(i % 7, 4000, 7)), random.Random(i)) for i in range(12)]
    found = runs_of(*runs)
    assert len(found) == 4
    assert len(found.runs[0].keys) > 10
    assert sums_of(found, 2) == merged(runs)


def test_sums_that_are_too_large_are_several_records() -> None:
    runs = [
        [*(0, 1 << 32 | 2, calls, ticks, subcalls), *(0, 1 << 32 | 3, 1, 1, 1)]
        for calls, ticks, subcalls in [(1, LAST, LAST), (1, 1, LAST), (1, LAST, LAST)]
    ]
    found = sums_of(runs_of(*runs), 1)
    assert found == merged(runs)
    assert len(found) == 4 * lib.FP_ARC_WIDTH


def test_a_callee_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FastprofError, match="a record of a temporary file"):
        sums_of(runs_of([0, N_FUNCTIONS, 1, 1, 1]), 1)


def test_a_record_that_reaches_behind_its_run_is_an_error() -> None:
    runs = runs_of([0, 1, 1, 1, 1])
    runs.runs[0] = runs.runs[0]._replace(nbytes=runs.runs[0].nbytes - 1)
    with pytest.raises(FastprofError, match="a record of a temporary file"):
        sums_of(runs, 1)


def test_threads_and_the_reader_share_the_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 12)
    summed: list[threading.Thread] = []
    sums = Ranges._sums
    monkeypatch.setattr(
        Ranges, "_sums", lambda self, *range_: summed.append(threading.current_thread()) or sums(self, *range_)
    )
    sums_of(runs_of(*some_runs(9, random.Random(1), False)), 2)
    mine = summed.count(threading.main_thread())
    assert 0 < mine < len(summed)


@pytest.mark.parametrize("piece", [2000, 1 << 20])
def test_a_thread_is_done_with_a_range_before_it_is_read(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although all arcs differ, so that each has a sum."""
    monkeypatch.setattr(ranges, "_PIECE", piece)
    runs = runs_of(*([word for key in range(i, 6000, 9) for word in (0, key << 32, 1, 1, 1)] for i in range(9)))
    with ExitStack() as threads:
        found = Ranges(runs, 1, 40 * 4000, threads)
        end = time.monotonic() + 60
        while not found._workers.n_ready() and time.monotonic() < end:
            time.sleep(0.01)
        assert found._workers.n_ready()


def test_who_stops_early_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 12)
    monkeypatch.setattr(ranges, "_PIECE", 900)
    with ExitStack() as threads:
        runs = runs_of(*some_runs(9, random.Random(1), False))
        Ranges(runs, 3, 1000, threads).pull(ffi.new("uint64_t[]", 40), 40)
    assert not ours_left()


def test_what_a_thread_cannot_read_is_an_error_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 12)
    runs = runs_of(*some_runs(9, random.Random(1), False))
    os.truncate(runs._file._file.fileno(), runs._file.nbytes - 8)
    with pytest.raises(FastprofError, match="temporary file: ends at byte"):
        sums_of(runs, 2)
    assert not ours_left()
