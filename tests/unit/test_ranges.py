"""Runs of call arcs that several threads add up, each in ranges of keys of its own: what merging them gives."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterable
from contextlib import ExitStack

import pytest

from fastprof.bridges import ranges
from fastprof.bridges.ranges import Ranges
from fastprof.bridges.spill import MOST_RUNS, Pull, Words
from fastprof.core._c import ffi, lib
from fastprof.core.errors import FastprofError, check
from tests.unit.test_bridge_spill import giving

N_FUNCTIONS = 10_000
LAST = (1 << 64) - 1


def ours_left() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "fastprof"]


def pulled(pull: Pull, words: int) -> list[int]:
    chunk, found = ffi.new("uint64_t[]", words), []
    while got := pull(chunk, words):
        found += ffi.unpack(chunk, got)
    return found


def words_of(arcs: Iterable[tuple[int, int, int]], chance: random.Random) -> list[int]:
    """Records of arcs (group, caller, callee), which are put in order."""
    return [
        word
        for group, caller, callee in sorted(arcs)
        for word in (group, caller << 32 | callee, 1, chance.randrange(1 << 40), chance.randrange(5))
    ]


def runs_of(n: int, chance: random.Random, few: bool) -> Words:
    """`few`: of few callers; else most callers have one callee."""
    runs = Words(lib.FP_ARC_WIDTH)
    groups, callers = (1, 3) if few else (3, 1 << 32)
    for _ in range(n):
        arcs = {
            (chance.randrange(groups), chance.randrange(callers), chance.randrange(N_FUNCTIONS)) for _ in range(3000)
        }
        runs.add(giving(*words_of(list(arcs)[: chance.choice([0, 1, 700, 3000])], chance)))
    return runs


def ranges_of(runs: Words, n_threads: int, memory: int, threads: ExitStack) -> Ranges:
    return Ranges(
        runs, N_FUNCTIONS, lambda status, err: check(status, err, "ranges", "arcs"), n_threads, memory, threads
    )


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_runs", [0, 1, 2, 9, 40])
def test_ranges_give_what_one_merge_gives(
    n_runs: int, n_threads: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 500)
    monkeypatch.setattr(ranges, "_PIECE", 900)
    runs = runs_of(n_runs, random.Random(n_runs), few)
    with ExitStack() as threads:
        found = pulled(ranges_of(runs, n_threads, 1000, threads).pull, 42)
    assert found == pulled(runs.merge().pull, 4000)
    assert not ours_left()


def test_runs_that_became_one_have_an_index() -> None:
    runs = Words(lib.FP_ARC_WIDTH)
    for i in range(MOST_RUNS + 2):
        runs.add(giving(*words_of(((0, key, key) for key in range(i % 7, 4000, 7)), random.Random(i))))
    assert len(runs) == 3
    with ExitStack() as threads:
        assert pulled(ranges_of(runs, 2, 1, threads).pull, 4000) == pulled(runs.merge().pull, 4000)


def test_sums_that_are_too_large_are_several_records() -> None:
    runs = Words(lib.FP_ARC_WIDTH)
    for calls, ticks, subcalls in [(1, LAST, LAST), (1, 1, LAST), (1, LAST, LAST)]:
        runs.add(giving(*(0, 1 << 32 | 2, calls, ticks, subcalls), *(0, 1 << 32 | 3, 1, 1, 1)))
    with ExitStack() as threads:
        found = pulled(ranges_of(runs, 1, 1, threads).pull, 4000)
    assert found == pulled(runs.merge().pull, 4000)
    assert len(found) == 4 * lib.FP_ARC_WIDTH


def test_a_callee_that_does_not_exist_is_an_error() -> None:
    runs = Words(lib.FP_ARC_WIDTH)
    runs.add(giving(0, N_FUNCTIONS, 1, 1, 1))
    with ExitStack() as threads, pytest.raises(FastprofError, match="a record of a temporary file"):
        pulled(ranges_of(runs, 1, 1, threads).pull, 4000)


def test_threads_and_the_reader_share_the_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 500)
    summed: list[threading.Thread] = []
    sums = Ranges._sums
    monkeypatch.setattr(
        Ranges, "_sums", lambda self, *range_: summed.append(threading.current_thread()) or sums(self, *range_)
    )
    with ExitStack() as threads:
        pulled(ranges_of(runs_of(9, random.Random(1), False), 2, 1, threads).pull, 4000)
    mine = summed.count(threading.main_thread())
    assert 0 < mine < len(summed)


def test_who_stops_early_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 500)
    monkeypatch.setattr(ranges, "_PIECE", 900)
    with ExitStack() as threads:
        ranges_of(runs_of(9, random.Random(1), False), 3, 1000, threads).pull(ffi.new("uint64_t[]", 40), 40)
    assert not ours_left()


def test_what_a_thread_cannot_read_is_an_error_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 500)
    runs = runs_of(9, random.Random(1), False)
    os.truncate(runs.file._file.fileno(), runs.file.nbytes - 8)
    with ExitStack() as threads, pytest.raises(FastprofError, match="temporary file: ends at byte"):
        pulled(ranges_of(runs, 2, 1, threads).pull, 4000)
    assert not ours_left()
