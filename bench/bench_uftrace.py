"""Data directories of uftrace, compared with `uftrace report` on the same one: CPU time and peak memory.

python -m pytest bench/bench_uftrace.py          100 MB of calls, recorded by `uftrace record`
FASTPROF_BENCH_SIZE=10M python -m pytest ...     any other size
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.bench_gperf import _record
from bench.peers import fastprof, peer

_PROGRAM = r"""
#include <stdlib.h>
volatile long sink;
__attribute__((noinline)) void leaf(int n) { sink += n; }
__attribute__((noinline)) void mid(int n) { for (int i = 0; i < 7; i++) leaf(i + n); }
int main(int argc, char **argv) { for (int n = atoi(argv[argc - 1]); n > 0; n--) mid(n); return 0; }
"""
_NBYTES = 8 * 2 * 16  # of a call of mid


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    size = os.environ.get("FASTPROF_BENCH_SIZE", "100M")
    n = int(size[:-1]) * {"M": 10**6, "G": 10**9}[size[-1]] // _NBYTES
    root = tmp_path_factory.mktemp("bench")
    (root / "w.c").write_text(_PROGRAM)
    subprocess.run(["cc", "-g", "-O1", "-pg", "-o", "w", "w.c"], cwd=root, check=True)
    subprocess.run(peer(["uftrace", "record", "-d", "w.uftrace", "./w", str(n)]), cwd=root, check=True)
    return root / "w.uftrace"


def _calls(folder: Path) -> Path:
    return max(folder.glob("*.dat"), key=lambda path: path.stat().st_size)


def test_top(benchmark: Any, folder: Path) -> None:
    _record(benchmark, _calls(folder), fastprof("top", "-q", folder))


def test_report(benchmark: Any, folder: Path) -> None:
    _record(benchmark, _calls(folder), peer(["uftrace", "report", "-d", str(folder)]))
