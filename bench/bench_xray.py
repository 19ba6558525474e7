"""XRay: decoding, folding, and the whole conversion, as MB of trace per CPU-second.

    pytest bench/bench_xray.py --benchmark-columns=min,median

The trace is a real one (tests/corpus/xray), its buffers repeated with their clocks moved on;
FASTPROF_BENCH_MB sets its size (default 64), FASTPROF_BENCH_XRAY names another trace instead.
Whole commands against llvm-xray: bench/compare.py, figures in bench/RESULTS.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.inputs import XRAY_SAMPLE, repeated_xray
from fastprof import convert
from fastprof.core.engine import read
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.source import Source
from fastprof.formats import get
from tests.support.product import open_input

MB = int(os.environ.get("FASTPROF_BENCH_MB", "64"))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if "FASTPROF_BENCH_XRAY" in os.environ:
        return Path(os.environ["FASTPROF_BENCH_XRAY"])
    path = tmp_path_factory.mktemp("xray") / "trace.xray"
    path.write_bytes(repeated_xray(XRAY_SAMPLE.read_bytes(), MB * 1_000_000))
    return path


def measured(benchmark: Any, trace: Path, work: Callable[[], object]) -> None:
    before = time.process_time()
    benchmark.pedantic(work, rounds=5, warmup_rounds=1)
    rounds = 6
    cpu = (time.process_time() - before) / rounds
    benchmark.extra_info["MB per CPU-second"] = round(trace.stat().st_size / 1e6 / cpu)


def test_read_the_bytes(benchmark: Any, trace: Path) -> None:
    """The floor: what it costs to get the file into the window."""

    def work() -> None:
        with open(trace, "rb", buffering=0) as file:
            window = bytearray(256 * 1024)
            while file.readinto(window):
                pass

    measured(benchmark, trace, work)


def test_decode(benchmark: Any, trace: Path) -> None:
    def work() -> None:
        for _ in read(open_input(trace).reader):
            pass

    measured(benchmark, trace, work)


@pytest.mark.parametrize("per_thread", [False, True], ids=["merged", "per-thread"])
def test_convert_to_callgrind(benchmark: Any, trace: Path, per_thread: bool) -> None:
    measured(benchmark, trace, lambda: convert([str(trace)], "/dev/null", to="callgrind", per_thread=per_thread))


def test_convert_to_pprof(benchmark: Any, trace: Path) -> None:
    measured(benchmark, trace, lambda: convert([str(trace)], "/dev/null", to="pprof"))


def test_index(benchmark: Any, trace: Path) -> None:
    """The first pass alone: a few words of each buffer."""

    def work() -> None:
        source = Source(str(trace))
        reader = get("xray").reader_class()
        assert reader is not None
        list(reader(source, Model(), Options(), Log()).ranges())
        source.close()

    measured(benchmark, trace, work)
