"""Callgrind: reading, rewriting and summing up, as MB per CPU-second compared with `wc -l` on the same file.

    pytest bench/bench_callgrind.py --benchmark-columns=min,median     (needs shared/tools next to the repository)

Each benchmark prints `MB/s` into its extra_info; FASTPROF_BENCH_MB sets the size of the inputs (default 50),
FASTPROF_BENCH_FILE names a real file to be measured as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fastprof import annotate, convert, info, top
from tests.support.paths import SHARED

MB = int(os.environ.get("FASTPROF_BENCH_MB", "50"))
pytestmark = pytest.mark.skipif(SHARED is None, reason="no shared/tools next to the repository")


@pytest.fixture(scope="module", params=["instr", "line", "real"])
def profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`instr`: addresses, jumps, long names.  `line`: 14 events."""
    if request.param == "real":
        if "FASTPROF_BENCH_FILE" not in os.environ:
            pytest.skip("FASTPROF_BENCH_FILE is not set")
        return Path(os.environ["FASTPROF_BENCH_FILE"])
    assert SHARED is not None
    path: Path = tmp_path_factory.mktemp("callgrind") / f"{request.param}.callgrind"
    tool = SHARED / "tools" / "make_big_callgrind.py"
    contexts = ["--contexts", "3"] if request.param == "instr" else []
    command = [sys.executable, str(tool), str(path), "--size", f"{MB}M", "--style", request.param, *contexts]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def measure(benchmark: Any, path: Path, run: Callable[[], object]) -> None:
    cpu = []

    def timed() -> None:
        start = time.process_time()
        run()
        cpu.append(time.process_time() - start)

    benchmark.pedantic(timed, rounds=5, warmup_rounds=1)
    benchmark.extra_info["MB/s of CPU"] = round(path.stat().st_size / 1e6 / min(cpu))


def test_wc(benchmark: Any, profile: Path) -> None:
    command = ["wc", "-l", str(profile)]
    benchmark.pedantic(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL), rounds=5)
    benchmark.extra_info["MB/s"] = round(profile.stat().st_size / 1e6 / benchmark.stats.stats.min)


def test_info(benchmark: Any, profile: Path) -> None:
    measure(benchmark, profile, lambda: info(str(profile)))


def test_top(benchmark: Any, profile: Path) -> None:
    measure(benchmark, profile, lambda: top(profile))


def test_rewrite(benchmark: Any, profile: Path) -> None:
    measure(benchmark, profile, lambda: convert([str(profile)], os.devnull, to="callgrind"))


def test_annotate(benchmark: Any, profile: Path) -> None:
    measure(benchmark, profile, lambda: annotate(profile))


def test_aggregate(benchmark: Any, profile: Path) -> None:
    measure(benchmark, profile, lambda: convert([str(profile)], os.devnull, to="callgrind", aggregate=True))


def test_cachegrind(benchmark: Any, profile: Path) -> None:
    measure(benchmark, profile, lambda: convert([str(profile)], os.devnull, to="cachegrind"))
