"""Data directories of uftrace, compared with `uftrace report` on the same one: CPU time and peak memory.

python -m pytest bench/bench_uftrace.py          100 MB of calls
FASTPROF_BENCH_SIZE=10M python -m pytest ...     any other size
"""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bench.bench_gperf import _record
from bench.peers import fastprof, peer
from tests.reference import uftrace
from tests.reference.uftrace import ENTRY, EXIT, Record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loop of calls three deep, for ever later times."""
    size = os.environ.get("FASTPROF_BENCH_SIZE", "100M")
    nbytes = int(size[:-1]) * {"M": 10**6, "G": 10**9}[size[-1]]
    root = tmp_path_factory.mktemp("bench")
    with tarfile.open(fileobj=io.BytesIO(uftrace.write({7: b""}))) as tar:
        tar.extractall(root, filter="data")
    info = root / "d" / "info"
    info.write_bytes(info.read_bytes() + b"taskinfo:lines=2\ntaskinfo:nr_tid=1\ntaskinfo:tids=7\n")
    with (root / "d" / "7.dat").open("wb") as file:
        time = 1000
        while file.tell() < nbytes:
            records = []
            for k in range(20_000):
                kind, depth = ((ENTRY, 0), (ENTRY, 1), (EXIT, 1), (ENTRY, 1), (EXIT, 1), (EXIT, 0))[k % 6]
                records.append(Record(time, kind, depth, depth * (1 + k // 3 % 2)))
                time += 50
            file.write(uftrace.data(records[: len(records) // 6 * 6]))
    return root / "d"


def test_top(benchmark: Any, folder: Path) -> None:
    _record(benchmark, folder / "7.dat", fastprof("top", "-q", folder))


def test_report(benchmark: Any, folder: Path) -> None:
    _record(benchmark, folder / "7.dat", peer(["uftrace", "report", "-d", str(folder)]))
