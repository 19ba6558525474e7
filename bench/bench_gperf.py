"""gperftools profiles: MB of input per CPU-second, and peak memory, compared with go tool pprof on the same file.

python -m pytest bench/bench_gperf.py            a 100 MB profile
FASTPROF_BENCH_SIZE=1G python -m pytest ...      any other size

The profile is made by shared/tools/make_big_gperf.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, big_profile, fastprof, peer


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return big_profile(tmp_path_factory.mktemp("bench"), "big.prof")


def _record(benchmark: Any, profile: Path, command: list[str]) -> None:
    runs = [Run(command) for _ in range(3)]
    best = min(runs, key=lambda r: r.cpu_seconds)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["MB per CPU-second"] = round(profile.stat().st_size / 1e6 / best.cpu_seconds)
    benchmark.extra_info["peak MB"] = round(best.peak_bytes / 1e6)


@pytest.mark.parametrize("target", ["out.pb.gz", "out.pb", "out.prof"])
def test_convert(benchmark: Any, profile: Path, target: str, tmp_path: Path) -> None:
    plain = [] if target.endswith(".prof") else ["--no-symbols"]  # that format has no names
    _record(benchmark, profile, fastprof("convert", "-q", *plain, profile, "-o", tmp_path / target))


def test_info(benchmark: Any, profile: Path) -> None:
    _record(benchmark, profile, fastprof("info", profile))


def test_go_tool_pprof(benchmark: Any, profile: Path, tmp_path: Path) -> None:
    command = ["go", "tool", "pprof", "-proto", "-symbolize=none", f"-output={tmp_path / 'out.pb.gz'}", str(profile)]
    _record(benchmark, profile, peer(command))
