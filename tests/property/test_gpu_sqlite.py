"""Databases of GPU profilers against sums by SQL."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import fastprof
from tests.support.gpu_sqlite import GLOBAL, PID, ROCPD, RPD, TID, UUID, made, nsys

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
    with fastprof.open(data, from_="gpu-sqlite") as profile:
        rows = [*profile.rows("spans")]
    keys = {(row["category"], row["function"]) for row in rows}
    found = {
        (*key, sum((r["category"], r["function"]) == key for r in rows),
         sum(r["dur"] for r in rows if (r["category"], r["function"]) == key))
        for key in keys
    }  # fmt: skip
    assert found == expected


SPAN = st.tuples(TIMES, st.integers(1, 3), st.integers(0, 1))


@settings(max_examples=30)
@given(st.lists(SPAN, max_size=8), st.lists(SPAN, max_size=8), st.booleans())
def test_rows_of_rocm_are_spans(kernels: list[tuple], calls: list[tuple], is_rpd: bool) -> None:  # type: ignore[type-arg]
    """A thread has no two rows at one time, as those would be on lanes."""
    names = [(1, "f"), (2, "g"), (3, "h")]
    rows: dict[str, list[tuple[object, ...]]] = {"kernel": [], "call": []}
    expected, busy = [], set()
    for what, spans in (("kernel", kernels), ("call", calls)):
        for (begin, n), name, thread in spans:
            slots = {(what, thread, at) for at in range(begin, begin + n + 1)}
            if busy & slots:
                continue
            busy |= slots
            i = len(rows[what]) + 1
            times = begin, begin + n
            if is_rpd:
                row = (
                    (i, thread, 1, 0, *times, name, 1) if what == "kernel" else (i, PID, TID + thread, *times, name, 1)
                )
            else:
                row = (i, 1, 1, thread, name, 1, 1, *times) if what == "kernel" else (i, 1, thread, *times, name)
            rows[what].append(row)
            category = {"kernel": "kernel", "call": "hip_api" if is_rpd else "region"}[what]
            expected.append((category, names[name - 1][1], begin, n))
    if is_rpd:
        data = made(RPD, {"rocpd_string": names, "rocpd_op": rows["kernel"], "rocpd_api": rows["call"]})
    else:
        data = made(
            ROCPD.format(id=UUID),
            {
                f"rocpd_string{UUID}": [(i, None, name) for i, name in names],
                f"rocpd_info_kernel_symbol{UUID}": [(i, None, name) for i, name in names],
                f"rocpd_info_process{UUID}": [(1, PID, "app")],
                f"rocpd_info_thread{UUID}": [(0, TID, "main"), (1, TID + 1, "other")],
                f"rocpd_kernel_dispatch{UUID}": rows["kernel"],
                f"rocpd_region{UUID}": rows["call"],
            },
        )
    with fastprof.open(data, from_="gpu-sqlite") as profile:
        found = [(row["category"], row["function"], row["ts"], row["dur"]) for row in profile.rows("spans")]
    assert sorted(found) == sorted(expected)
