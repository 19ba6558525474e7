"""Runs that several threads merge, each in ranges of keys of its own: the same records as one thread gives."""

from __future__ import annotations

import os
import random
import threading
from contextlib import ExitStack

import pytest

from fastprof.bridges import ranges
from fastprof.bridges.ranges import Ranges
from fastprof.bridges.spill import MOST_RUNS, Pull, Words
from fastprof.core._c import ffi
from fastprof.core.errors import FastprofError
from tests.unit.test_bridge_spill import giving

LAST = (1 << 64) - 1
FEW = [(0, 0), (0, 1), (1, 0), (LAST, LAST - 1), (LAST, LAST)]


def ours_left() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "fastprof"]


def pulled(pull: Pull, words: int) -> list[int]:
    chunk, found = ffi.new("uint64_t[]", words), []
    while got := pull(chunk, words):
        found += ffi.unpack(chunk, got)
    return found


def runs_of(n: int, chance: random.Random, few: bool) -> Words:
    """Records of different widths.  `few`: of few keys, which a run has many times."""
    runs = Words(3)
    for _ in range(n):
        if chance.random() < 0.2:
            runs.widen(4)
        keys = (
            chance.choices(FEW, k=3000) if few else [(chance.randrange(3), chance.getrandbits(64)) for _ in range(3000)]
        )
        records = sorted(
            (*key, *(1 for _ in range(runs.width - 2))) for key in keys[: chance.choice([0, 1, 700, 3000])]
        )
        runs.add(giving(*(word for record in records for word in record)))
    return runs


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
        found = pulled(Ranges(runs, n_threads, 1000, threads).pull, 40)
    assert found == pulled(runs.merge().pull, 4000)
    assert not ours_left()


def test_runs_that_became_one_have_an_index() -> None:
    runs = Words(3)
    for i in range(MOST_RUNS + 2):
        runs.add(giving(*(word for key in range(i % 7, 4000, 7) for word in (key, 0, 1))))
    assert len(runs) == 3
    with ExitStack() as threads:
        assert pulled(Ranges(runs, 2, 1, threads).pull, 4000) == pulled(runs.merge().pull, 4000)


def test_threads_and_the_reader_share_the_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 500)
    merged: list[threading.Thread] = []
    merge = Ranges._merge
    monkeypatch.setattr(
        Ranges, "_merge", lambda self, *range_: merged.append(threading.current_thread()) or merge(self, *range_)
    )
    with ExitStack() as threads:
        pulled(Ranges(runs_of(9, random.Random(1), False), 2, 1, threads).pull, 4000)
    mine = merged.count(threading.main_thread())
    assert 0 < mine < len(merged)


def test_who_stops_early_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 500)
    monkeypatch.setattr(ranges, "_PIECE", 900)
    with ExitStack() as threads:
        Ranges(runs_of(9, random.Random(1), False), 3, 1000, threads).pull(ffi.new("uint64_t[]", 40), 40)
    assert not ours_left()


def test_what_a_thread_cannot_read_is_an_error_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_LEAST", 500)
    runs = runs_of(9, random.Random(1), False)
    os.truncate(runs.file._file.fileno(), runs.file.nbytes - 8)
    with ExitStack() as threads, pytest.raises(FastprofError, match="temporary file: ends at byte"):
        pulled(Ranges(runs, 2, 1, threads).pull, 4000)
    assert not ours_left()
