"""Databases of GPU profilers against sums by SQL."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import fastprof
from tests.support.gpu_sqlite import GLOBAL, nsys

TIMES = st.tuples(st.integers(0, 60), st.integers(0, 30))
KERNELS = st.lists(st.tuples(TIMES, st.integers(0, 1), st.integers(1, 2), st.integers(1, 3)), max_size=12)
CALLS = st.lists(st.tuples(TIMES, st.integers(0, 1), st.integers(1, 3)), max_size=12)
NAMES = [(1, "f"), (2, "g<int>"), (3, "h_v3000")]


@settings(max_examples=30)
@given(KERNELS, CALLS)
def test_durations_and_numbers_of_calls(kernels: list[tuple], calls: list[tuple]) -> None:  # type: ignore[type-arg]
    data = nsys(
        {
            "StringIds": NAMES,
            "CUPTI_ACTIVITY_KIND_KERNEL": [(b, b + n, gpu, 1, s, 0, 0, name, name) for (b, n), gpu, s, name in kernels],
            "CUPTI_ACTIVITY_KIND_RUNTIME": [(b, b + n, 0, GLOBAL + tid, 0, name, 0) for (b, n), tid, name in calls],
        }
    )
    expected = set()
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / "x").write_bytes(data)
        with sqlite3.connect(path) as db:
            for table, name, category in (("KERNEL", "demangledName", "kernel"), ("RUNTIME", "nameId", "cuda_runtime")):
                expected |= {
                    (category, found.removesuffix("_v3000") if category != "kernel" else found, n, total)
                    for found, n, total in db.execute(
                        f"SELECT value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_{table} "
                        f"JOIN StringIds ON id = {name} GROUP BY 1"
                    )
                }
    with fastprof.open(data) as profile:
        rows = [*profile.rows("spans")]
    keys = {(row["category"], row["function"]) for row in rows}
    found = {
        (*key, sum((r["category"], r["function"]) == key for r in rows),
         sum(r["dur"] for r in rows if (r["category"], r["function"]) == key))
        for key in keys
    }  # fmt: skip
    assert found == expected
