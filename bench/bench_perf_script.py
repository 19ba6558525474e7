"""Text of perf script: reading, as MB of input per CPU-second, compared with `wc -l` on the same file.

pytest bench/bench_perf_script.py            FASTPROF_BENCH_MB sets the size (default 100)
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, fastprof

MB = int(os.environ.get("FASTPROF_BENCH_MB", "100"))
OBJECTS = ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/app/bin/server", "[kernel.kallsyms]", "/usr/lib/libfoo.so.1"]


def make(path: Path, megabytes: int) -> None:
    """Samples of 16 threads: half of them of 300 stacks, the others of 10,000, each of 15 to 45 of 3,000 functions."""
    dice = random.Random(7)
    names = [f"ns{i % 37}::Class{i % 211}::method{i}(int)" if i % 3 else f"do_function_{i}" for i in range(3000)]

    def frame() -> str:
        i, offset = dice.randrange(3000), dice.randrange(64)
        return f"\t{0x400000 + i * 256 + offset:16x} {names[i]}+0x{offset:x} ({OBJECTS[i % 4]})\n"

    stacks = ["".join(frame() for _ in range(dice.randint(15, 45))) for _ in range(10_000)]
    us = nbytes = 0
    with path.open("w") as file:
        while nbytes < megabytes * 1_000_000:
            us += dice.randrange(100, 300)
            thread, cpu, seconds = 4242 + dice.randrange(16), dice.randrange(8), f"{us // 10**6:5d}.{us % 10**6:06d}"
            start = f"server  4242/{thread:<5d} [{cpu:03d}] {seconds}:     250000 cpu-clock: \n"
            stack = stacks[dice.randrange(10_000 if dice.random() < 0.5 else 300)]
            nbytes += file.write(start) + file.write(stack) + file.write("\n")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("perf") / "app.perf"
    make(path, MB)
    return path


def _record(benchmark: Any, text: Path, command: list[str]) -> None:
    best = min((Run(command) for _ in range(3)), key=lambda r: r.cpu_seconds)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["MB per CPU-second"] = round(text.stat().st_size / 1e6 / best.cpu_seconds)
    benchmark.extra_info["peak MB"] = round(best.peak_bytes / 1e6)


@pytest.mark.parametrize("target", ["out.folded", "out.pb", "out.callgrind"])
def test_convert(benchmark: Any, text: Path, target: str, tmp_path: Path) -> None:
    _record(benchmark, text, fastprof("convert", "-q", text, "-o", tmp_path / target))


def test_top(benchmark: Any, text: Path) -> None:
    _record(benchmark, text, fastprof("top", text))


def test_counting_lines(benchmark: Any, text: Path) -> None:
    _record(benchmark, text, ["wc", "-l", str(text)])
