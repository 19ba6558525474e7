"""`top --stats`: the durations of each function's calls equal those of a list of all calls."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastprof import FastprofError, Top, UsageError, top
from tests.support.paths import CORPUS
from tests.support.xraylog import FdrLog

STEPS = st.one_of(st.integers(0, 300), st.integers(0, (1 << 31) - 1), st.sampled_from([0, 127, 128, 1 << 31]))
RECORDS = st.lists(st.tuples(st.booleans(), st.integers(1, 4), STEPS), max_size=60)
THREADS = st.lists(RECORDS, min_size=1, max_size=4)
ON_DISK = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def log_of(threads: list[list[tuple[bool, int, int]]]) -> bytes:
    log = FdrLog(version=5)
    for tid, records in enumerate(threads, 1):
        buffer = log.buffer(tid=tid, pid=1).cpu(0, 1000)
        for enters, function, step in records:
            (buffer.enter if enters else buffer.exit)(function, step)
    return log.bytes()


def ended(threads: list[list[tuple[bool, int, int]]]) -> dict[str, list[int]]:
    """The sorted durations of all calls that end or are unwound."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for records in threads:
        calls: list[tuple[int, int]] = []
        now = 0
        for enters, function, step in records:
            now += step
            if enters:
                calls.append((function, now))
            elif any(function == open_ for open_, _ in calls):
                while True:
                    open_, begin = calls.pop()
                    found[f"#{open_}"].append(now - begin)
                    if open_ == function:
                        break
    return {name: sorted(durations) for name, durations in found.items()}


def check(found: Top, expected: dict[str, list[int]]) -> None:
    assert {row.name for row in found.rows if row.durations} == expected.keys()
    for row in found.rows:
        if not row.durations:
            continue
        n, low, *percentiles, high = row.durations
        all_ = expected[row.name]
        assert (n, low, high) == (len(all_), all_[0], all_[-1])
        for percentile, share in zip(percentiles, (50, 90, 99), strict=True):
            exact = all_[n * share // 100]
            assert abs(percentile - exact) <= exact / 100
            assert exact >= 128 or percentile == exact


@ON_DISK
@given(THREADS)
def test_as_a_list_of_all_calls(tmp_path: Path, threads: list[list[tuple[bool, int, int]]]) -> None:
    path = tmp_path / "log.xray"
    path.write_bytes(log_of(threads))
    one = top(path, stats=True, n=0, cores=1)
    check(one, ended(threads))
    assert top(path, stats=True, n=0, cores=2).rows == one.rows
    plain = top(path, n=0)
    assert [row._replace(durations=None) for row in one.rows] == plain.rows


@ON_DISK
@given(THREADS, THREADS)
def test_several_inputs_are_one(
    tmp_path: Path, first: list[list[tuple[bool, int, int]]], second: list[list[tuple[bool, int, int]]]
) -> None:
    paths = [tmp_path / "1.xray", tmp_path / "2.xray"]
    for path, threads in zip(paths, (first, second), strict=True):
        path.write_bytes(log_of(threads))
    check(top(paths, stats=True, n=0), ended(first + second))


@ON_DISK
@given(st.lists(STEPS, min_size=1, max_size=3000))
def test_many_calls_of_one_function(tmp_path: Path, steps: list[int]) -> None:
    records = [record for step in steps for record in ((True, 1, 0), (False, 1, step))]
    path = tmp_path / "log.xray"
    path.write_bytes(log_of([records]))
    check(top(path, stats=True), ended([records]))


def test_a_damaged_log_keeps_the_calls_before_the_damage(tmp_path: Path) -> None:
    records = [record for step in range(200) for record in ((True, 1, 0), (False, 1, step))]
    path = tmp_path / "log.xray"
    path.write_bytes(log_of([records])[:-8])
    with pytest.raises(FastprofError):
        top(path, stats=True)
    check(top(path, stats=True, lenient=True), ended([records[:-1]]))


def test_a_recursive_call_counts_itself(tmp_path: Path) -> None:
    path = tmp_path / "log.xray"
    path.write_bytes(log_of([[(True, 1, 0), (True, 1, 10), (False, 1, 20), (False, 1, 5), (True, 1, 7)]]))
    (row,) = top(path, stats=True).rows
    assert row.durations == (2, 20, 35, 35, 35, 35) and row.calls == 3


@pytest.mark.parametrize(
    ("name", "rows"),
    [("callgrind/good/cfi.callgrind", "sums of costs and calls"), ("folded/good/annot.folded", "samples")],
)
def test_other_views_are_refused(name: str, rows: str) -> None:
    with pytest.raises(UsageError, match=f"stats=True needs calls with begin and end, but the profile has only {rows}"):
        top(CORPUS / name, stats=True)


def test_only_functions_have_durations() -> None:
    with pytest.raises(UsageError, match="stats=True shows functions, not by=thread"):
        top(CORPUS / "xray/good/fdr5-pool-clang19.xray", stats=True, by="thread")
    with pytest.raises(UsageError, match="tree= has no effect"):
        top(CORPUS / "xray/good/fdr5-pool-clang19.xray", stats=True, tree="both")
