"""Runs in a temporary file: complete, or an error."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from fastprof.bridges.sums import sorted_runs
from fastprof.bridges.sums.sorted_runs import Merge, Pull, Words
from fastprof.core._c import ffi, lib
from fastprof.core.errors import FastprofError


def giving(*given: int) -> Pull:
    left = list(given)

    def pull(into: Any, n: int) -> int:
        some, left[:] = left[:n], left[n:]
        into[0 : len(some)] = some
        return len(some)

    return pull


def drained(merge: Merge) -> list[list[int]]:
    """The records that each run feeds, one run after the other."""
    found = []
    for i in range(3):
        found.append([])
        run = merge.c.runs[i]
        run.eof = 0
        while not run.eof:
            merge.c.to_refill, run.pos = i, run.n
            assert merge.feed()
            found[-1] += ffi.unpack(run.p, run.n) if run.n else []
    return found


def two_runs() -> Words:
    runs = Words(4)
    runs.add(giving(*range(100_000)))
    runs.add(giving(1, 2, 3, 4))
    return runs


def test_runs_are_read_as_they_were_written() -> None:
    assert drained(two_runs().merge(giving(7))) == [[*range(100_000)], [1, 2, 3, 4], [7]]


def test_a_short_read_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, into, offset: whole(fd, [into[0][:13]], offset))
    assert drained(two_runs().merge(giving(7))) == [[*range(100_000)], [1, 2, 3, 4], [7]]


def test_a_temporary_file_that_lost_its_end_is_an_error() -> None:
    runs = two_runs()
    os.truncate(runs.file._file.fileno(), 100_002 * 8)
    with pytest.raises(FastprofError, match="temporary file: ends at byte 800016"):
        drained(runs.merge(giving(7)))


def test_the_beginning_of_a_record_is_kept() -> None:
    merge = two_runs().merge(giving(7))
    merge.c.to_refill = 0
    assert merge.feed()
    run = merge.c.runs[0]
    first = ffi.unpack(run.p, run.n)
    run.pos = run.n - 3
    assert merge.feed()
    assert ffi.unpack(run.p, run.n)[:3] == first[-3:]
    assert run.p[3] == first[-1] + 1


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
def test_many_runs_become_one(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys 0 to 9 in each run, counters that exceed 64 bits on the way."""
    monkeypatch.setattr("fastprof.bridges.sums.sorted_runs.MOST_RUNS", 3)
    runs, value = Words(3), 1 << 63
    for _ in range(n):
        runs.add(giving(*(word for key in range(10) for word in (key, key, value))))
        assert len(runs) <= 3
    merge, sums = runs.merge(giving()), dict.fromkeys(range(10), 0)
    merge.c.split = True
    err, last = ffi.new("struct fp_err *"), 0
    while status := lib.fp_merge_next(merge.c, err):
        if status == lib.FP_MORE:
            merge.feed()
            continue
        key, same, sum_ = merge.c.head[0:3]
        assert key == same >= last
        last = key
        sums[key] += sum_
    assert set(sums.values()) == {n * value}


def test_a_sum_beyond_64_bits_is_an_error() -> None:
    runs = Words(4)
    for value in (1 << 63, 1 << 63):
        runs.add(giving(1, 1, 5, value))
    merge, err = runs.merge(giving()), ffi.new("struct fp_err *")
    while (status := lib.fp_merge_next(merge.c, err)) == lib.FP_MORE:
        merge.feed()
    assert (status, err.got) == (lib.FP_E_OVERFLOW, 1)


@pytest.mark.parametrize("n_runs", [0, 1, 2, 3, 7, 8, 33])
@pytest.mark.parametrize("window", [1, 200, 1 << 18])
def test_sums_come_in_order(n_runs: int, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a dictionary, for any number of records read at a time; also with the least and the largest key,
    repeated keys in a run, and empty runs."""
    monkeypatch.setattr(sorted_runs, "_LEAST_WINDOW", 0)
    chance = random.Random(n_runs)
    ends = [(0, 0), (0, 1), ((1 << 64) - 1, (1 << 64) - 1)]
    keys = [*ends, *((chance.randrange(3), chance.randrange(1 << 64)) for _ in range(40))]
    runs, expected = Words(4), {}
    for i in range(n_runs):
        records = sorted(
            (*chance.choice(keys), i, chance.randrange(100)) for _ in range(chance.choice([0, 1, 30, 300]))
        )
        runs.add(giving(*(word for record in records for word in record)))
        for *key, number, count in records:
            numbers, counts = expected.get((*key,), (0, 0))
            expected[(*key,)] = numbers + number, counts + count
    merge, found, chunk = runs.merge(windows=window), [], ffi.new("uint64_t[]", 40)
    while got := merge.pull(chunk, 40):
        found += ffi.unpack(chunk, got)
    assert found == [word for key in sorted(expected) for word in (*key, *expected[key])]
