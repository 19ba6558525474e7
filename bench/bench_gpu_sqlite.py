"""Databases of ROCm's profilers (rocpd), made by their schema: CPU time and peak memory.

python -m pytest bench/bench_gpu_sqlite.py       100 MB: calls of 16 threads, kernels on 8 GPUs, copies
FASTPROF_BENCH_SIZE=1G python -m pytest ...      any other size
"""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.bench_gperf import _record
from bench.peers import fastprof
from tests.support.gpu_sqlite import ROCPD, UUID

_NBYTES = 56  # of a call, half a kernel and an eighth of a copy
_BEGIN = 10**15


def _calls(n: int, threads: int) -> Iterator[tuple[int, int, int]]:
    """Thread, begin and end, in turn."""
    noise, at = random.Random(threads), [_BEGIN] * threads
    for i in range(n):
        k = i % threads
        begin = at[k] + noise.randrange(200, 3000)
        at[k] = begin + noise.randrange(100, 20_000)
        yield k, begin, at[k]


def rocpd(path: Path, nbytes: int) -> None:
    n = nbytes // _NBYTES
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=OFF")
    db.executescript(ROCPD.format(id=UUID))
    db.execute("BEGIN")
    for table, rows in {
        "string": ((i, None, f"hipCall{i}") for i in range(1, 501)),
        "info_process": ((1, 4711, "./train"),),
        "info_thread": ((i, 4711 + i, f"worker {i}") for i in range(16)),
        "info_agent": ((i, "GPU", i, "gfx942", "MI300X") for i in range(8)),
        "info_stream": ((i, f"Stream {i}") for i in range(4)),
        "info_kernel_symbol": ((i, None, f"void elementwise_kernel<{i}>(int)") for i in range(1, 301)),
        "region": ((i, 1, k, a, b, 1 + i % 500) for i, (k, a, b) in enumerate(_calls(n, 16))),
        "kernel_dispatch": (
            (i, 1, i % 16, k % 8, 1 + i % 300, 1, k // 8, a, b) for i, (k, a, b) in enumerate(_calls(n // 2, 32))
        ),
        "memory_copy": ((i, 1, 1, a, b, 7, k, 1 << 20, 1, 5) for i, (k, a, b) in enumerate(_calls(n // 8, 8))),
    }.items():
        width = len(db.execute(f'PRAGMA table_info("rocpd_{table}{UUID}")').fetchall())
        db.executemany(f'INSERT INTO "rocpd_{table}{UUID}" VALUES ({", ".join("?" * width)})', rows)
    db.execute("COMMIT")
    db.close()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    size = os.environ.get("FASTPROF_BENCH_SIZE", "100M")
    path = tmp_path_factory.mktemp("bench") / "app.sqlite"
    rocpd(path, int(size[:-1]) * {"M": 10**6, "G": 10**9}[size[-1]])
    return path


def test_top(benchmark: Any, database: Path) -> None:
    _record(benchmark, database, fastprof("top", "-q", database))
