"""Runs in a temporary file: whole, or an error."""

from __future__ import annotations

import os
from typing import Any

import pytest

from fastprof.bridges.spill import Merge, Pull, Runs
from fastprof.core._c import ffi
from fastprof.core.errors import FastprofError


def words(*given: int) -> Pull:
    left = list(given)

    def pull(into: Any, n: int) -> int:
        some, left[:] = left[:n], left[n:]
        into[0 : len(some)] = some
        return len(some)

    return pull


def drained(merge: Merge) -> list[list[int]]:
    """What each run feeds, one after the other."""
    found = []
    for i in range(3):
        found.append([])
        run = merge.c.runs[i]
        run.eof = 0
        while not run.eof:
            merge.c.hungry = i
            assert merge.feed()
            found[-1] += ffi.unpack(run.p, run.n) if run.n else []
    return found


def two_runs() -> Runs:
    runs = Runs(4)
    runs.add(words(*range(100_000)))
    runs.add(words(1, 2, 3, 4))
    return runs


def test_runs_are_read_as_they_were_written() -> None:
    assert drained(two_runs().merge(words(7))) == [[*range(100_000)], [1, 2, 3, 4], [7]]


def test_a_short_read_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, into, offset: whole(fd, [into[0][:13]], offset))
    assert drained(two_runs().merge(words(7))) == [[*range(100_000)], [1, 2, 3, 4], [7]]


def test_a_temporary_file_that_lost_its_end_is_an_error() -> None:
    runs = two_runs()
    os.truncate(runs._file.fileno(), 100_002 * 8)
    with pytest.raises(FastprofError, match="temporary file: ends at byte 800016"):
        drained(runs.merge(words(7)))
