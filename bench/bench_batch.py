"""2,000 small files of four formats, symbols included: `fastprof batch convert`, compared with a process for each file.

    pytest -s bench/bench_batch.py

A process for each is measured on 40 files.  CPU seconds count all processes; elapsed ones are the minimum of three, and
of use only on a machine that has two processors to give away, or with real-time priority (chrt -r 1 pytest ...).
FASTPROF_BENCH_FILES sets the number of files (2000).
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, fastprof
from tests.support.paths import CORPUS

N = int(os.environ.get("FASTPROF_BENCH_FILES", "2000"))
N_ALONE = 40
# a timeline and stacks whose names are in a program, stacks with names of libc, stacks with names, a graph
KINDS = [
    "xray/good/fdr5-pool-clang19.xray",
    "gperftools/good/plain.prof",
    "pprof/good/go-cpulabels.pb",
    "callgrind/good/everything.callgrind",
]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dumps")
    for number in range(N):
        source = CORPUS / KINDS[number % len(KINDS)]
        target = folder / f"host{number // 100}" / f"{number:04}{source.suffix}"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(source, target)
    return folder


def batch(dumps: Path, out: Path, workers: int) -> tuple[float, float]:
    """CPU and elapsed seconds."""
    shutil.rmtree(out, ignore_errors=True)
    program = CORPUS / "xray/pool-clang19"
    begins = time.monotonic()
    run = Run(fastprof("batch", "convert", dumps, "-s", program, "-t", "pprof", "-o", out, "-q", "-j", str(workers)))
    return run.cpu_seconds, time.monotonic() - begins


def test_a_process_for_each(benchmark: Any, dumps: Path, tmp_path: Path) -> None:
    files = sorted(path for path in dumps.rglob("*.*"))[:N_ALONE]
    program = ["-s", CORPUS / "xray/pool-clang19"]

    def alone() -> float:
        # only the trace has names of this program; batch passes the option over for graphs, convert refuses it
        commands = [
            fastprof(
                "convert", "-q", path, *(program if path.suffix != ".callgrind" else []), "-o", tmp_path / "x.pb.gz"
            )
            for path in files
        ]
        return sum(Run(command).cpu_seconds for command in commands) / len(files)

    each = benchmark.pedantic(alone, rounds=1)
    together = min(batch(dumps, tmp_path / "out", 1)[0] for _ in range(3)) / N
    benchmark.extra_info["ms of CPU alone"] = round(1000 * each, 1)
    benchmark.extra_info["in a batch"] = round(1000 * together, 2)
    benchmark.extra_info["times"] = round(each / together, 1)
    assert each >= 20 * together


def test_two_workers(benchmark: Any, dumps: Path, tmp_path: Path) -> None:
    runs: dict[int, list[tuple[float, float]]] = {1: [], 2: []}

    def rounds() -> None:
        for _ in range(3):  # in turn, so that a machine that slows down slows both
            for workers, found in runs.items():
                found.append(batch(dumps, tmp_path / "out", workers))

    benchmark.pedantic(rounds, rounds=1)
    for workers, found in runs.items():
        benchmark.extra_info[f"CPU s of {workers}"] = round(min(cpu for cpu, _ in found), 2)
        benchmark.extra_info[f"elapsed s of {workers}"] = round(min(elapsed for _, elapsed in found), 2)
    benchmark.extra_info["times"] = round(
        benchmark.extra_info["elapsed s of 1"] / benchmark.extra_info["elapsed s of 2"], 2
    )
