"""Output for viewers: each writer's MB of input per CPU-second, and peak memory, compared with `llvm-xray convert`.

pytest bench/bench_viewers.py            the trace of bench_xray.py (FASTPROF_BENCH_XRAY names another one, then
                                         FASTPROF_BENCH_XRAY_PROGRAM the program that wrote it), a gperftools profile;
                                         FASTPROF_BENCH_PAGES names more profiles for `report`, with : between them
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bench.bench_xray import trace
from bench.inputs import firefox
from bench.peers import Run, big_profile, fastprof, peer
from tests.differential.peers import viewer

PROGRAM = os.environ.get("FASTPROF_BENCH_XRAY_PROGRAM")
PAGES = [name for name in os.environ.get("FASTPROF_BENCH_PAGES", "").split(os.pathsep) if name]

__all__ = ["trace"]  # a fixture


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return big_profile(tmp_path_factory.mktemp("bench"), "big.prof")


def record(benchmark: Any, input_: Path, command: list[str]) -> float:
    """The CPU seconds."""
    runs = [Run(command) for _ in range(3)]
    best = min(runs, key=lambda r: r.cpu_seconds)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["MB per CPU-second"] = round(input_.stat().st_size / 1e6 / best.cpu_seconds)
    benchmark.extra_info["peak MB"] = round(best.peak_bytes / 1e6)
    return best.cpu_seconds


@pytest.mark.parametrize("target", ["o.pftrace", "o.profile.json", "o.trace.json", "o.speedscope.json"])
def test_timeline(benchmark: Any, trace: Path, target: str, tmp_path: Path) -> None:
    symbols = ["-s", PROGRAM] if PROGRAM else []
    record(benchmark, trace, fastprof("convert", "-q", *symbols, trace, "-o", tmp_path / target))


@pytest.mark.parametrize("target", ["o.profile.json", "o.speedscope.json"])
def test_stacks(benchmark: Any, profile: Path, target: str, tmp_path: Path) -> None:
    record(benchmark, profile, fastprof("convert", "-q", "--no-symbols", profile, "-o", tmp_path / target))


def page(benchmark: Any, input_: Path, output: Path) -> None:
    """`report`, compared with `top`, which adds up the same without contexts and callers."""
    cpu_seconds = record(benchmark, input_, fastprof("report", "-q", input_, "-o", output))
    benchmark.extra_info["CPU, top = 1"] = round(cpu_seconds / Run(fastprof("top", "-q", input_)).cpu_seconds, 1)
    benchmark.extra_info["page MB"] = round(output.stat().st_size / 1e6, 2)
    assert output.stat().st_size < 2_000_000


def test_page_of_timeline(benchmark: Any, trace: Path, tmp_path: Path) -> None:
    page(benchmark, trace, tmp_path / "o.html")


def test_page_of_stacks(benchmark: Any, profile: Path, tmp_path: Path) -> None:
    page(benchmark, profile, tmp_path / "o.html")


@pytest.mark.parametrize("path", [Path(name) for name in PAGES], ids=lambda path: path.name)
def test_page(benchmark: Any, path: Path, tmp_path: Path) -> None:
    page(benchmark, path, tmp_path / "o.html")


@pytest.mark.parametrize("target", ["o.trace.json", "o.speedscope.json"])
def test_reading(benchmark: Any, trace: Path, target: str, tmp_path: Path) -> None:
    """MB of the JSON."""
    Run(fastprof("convert", "-q", trace, "-o", tmp_path / target))
    record(benchmark, tmp_path / target, fastprof("info", tmp_path / target))


def test_reading_firefox(benchmark: Any, tmp_path: Path) -> None:
    firefox(tmp_path / "in.profile.json", 250_000_000)
    record(benchmark, tmp_path / "in.profile.json", fastprof("info", tmp_path / "in.profile.json"))


@pytest.mark.parametrize("what", ["timeline", "stacks"])
def test_speedscope_itself(benchmark: Any, trace: Path, profile: Path, what: str, tmp_path: Path) -> None:
    """Seconds that speedscope takes to import what we write within its budget, and we to read it again."""
    target = tmp_path / "o.speedscope.json"
    Run(fastprof("convert", "-q", trace if what == "timeline" else profile, "-o", target))
    record(benchmark, target, fastprof("info", target))
    benchmark.extra_info["speedscope, s"] = round(viewer("speedscope", "--time", target) / 1000, 1)
    benchmark.extra_info["fastprof, s"] = round(min(Run(fastprof("info", target)).seconds for _ in range(3)), 1)


def test_llvm_xray(benchmark: Any, trace: Path, tmp_path: Path) -> None:
    symbols = ["--symbolize", f"--instr_map={PROGRAM}"] if PROGRAM else []
    command = ["llvm-xray-19", "convert", "-f", "trace_event", *symbols, str(trace), "-o", str(tmp_path / "o.json")]
    record(benchmark, trace, peer(command))
