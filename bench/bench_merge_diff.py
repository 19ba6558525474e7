"""merge and diff of two Cachegrind profiles, compared with cg_merge and cg_diff: CPU seconds and peak memory.

    pytest bench/bench_merge_diff.py --benchmark-columns=min,median     (needs shared/tools next to the repository)

FASTPROF_BENCH_MB sets the size of each profile (default 50).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, fastprof, peer
from fastprof import convert
from tests.support.paths import SHARED

MB = os.environ.get("FASTPROF_BENCH_MB", "50")


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of two programs that share most of their names."""
    if SHARED is None:
        pytest.skip("no shared/tools next to the repository")
    folder = tmp_path_factory.mktemp("cachegrind")
    made = []
    for seed in ("1", "2"):
        callgrind, path = folder / f"{seed}.callgrind", folder / f"{seed}.cachegrind"
        tool = SHARED / "tools" / "make_big_callgrind.py"
        command = [sys.executable, str(tool), str(callgrind), "--size", f"{MB}M", "--style", "line", "--seed", seed]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        convert(callgrind, path)
        callgrind.unlink()
        made.append(path)
    return made


def measure(benchmark: Any, profiles: list[Path], command: list[str], rounds: int = 5) -> None:
    runs = []
    benchmark.pedantic(lambda: runs.append(Run(command)), rounds=rounds)
    megabytes = sum(path.stat().st_size for path in profiles) / 1e6
    benchmark.extra_info["MB/s of CPU"] = round(megabytes / min(run.cpu_seconds for run in runs))
    benchmark.extra_info["peak MiB"] = round(max(run.peak_bytes for run in runs) / 2**20)


def test_merge(benchmark: Any, profiles: list[Path], tmp_path: Path) -> None:
    measure(benchmark, profiles, fastprof("merge", "-q", *profiles, "-o", tmp_path / "sum.cachegrind"))


def test_cg_merge(benchmark: Any, profiles: list[Path], tmp_path: Path) -> None:
    command = ["cg_merge", "-o", str(tmp_path / "sum"), *map(str, profiles)]
    measure(benchmark, profiles, peer(command), rounds=1)


def test_diff(benchmark: Any, profiles: list[Path]) -> None:
    measure(benchmark, profiles, fastprof("diff", *profiles))


def test_diff_as_a_profile(benchmark: Any, profiles: list[Path], tmp_path: Path) -> None:
    measure(benchmark, profiles, fastprof("diff", "-q", *profiles, "-o", tmp_path / "difference.cachegrind"))


def test_cg_diff(benchmark: Any, profiles: list[Path]) -> None:
    measure(benchmark, profiles, peer(["cg_diff", *map(str, profiles)]), rounds=1)
