"""perf.data with frame-pointer chains: CPU time and memory of fastprof compared with `perf report` and `perf script`.

pytest bench/bench_perf.py            FASTPROF_BENCH_SECONDS sets the seconds recorded at 20,000 Hz (default 30: 115 MB)
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, fastprof

SECONDS = float(os.environ.get("FASTPROF_BENCH_SECONDS", "30"))
DEPTH = 28
pytestmark = pytest.mark.skipif(not shutil.which("perf") or not shutil.which("gcc"), reason="needs linux-perf and gcc")

# Functions that call each other; most of the time is spent in the innermost.
_START = """#include <stdint.h>
#include <time.h>
static volatile uint64_t sink;
__attribute__((noinline)) static uint64_t f0(uint64_t x) {
    for (int i = 0; i < 200; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return sink += x;
}
"""
_FUNCTION = """__attribute__((noinline)) static uint64_t f%d(uint64_t x) {
    uint64_t s = f%d(x * 3 + %d);
    if (x & 8) s ^= f0(s);
    return sink += s;
}
"""
_MAIN = """int main(void) {
    while (clock() < %f * CLOCKS_PER_SEC) for (int i = 0; i < 1000; i++) f%d(i);
}
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("perf")
    functions = "".join(_FUNCTION % (k, k - 1, k) for k in range(1, DEPTH))
    (folder / "deep.c").write_text(_START + functions + _MAIN % (SECONDS, DEPTH - 1))
    build = ["gcc", "-O1", "-fno-omit-frame-pointer", "-o", str(folder / "deep"), str(folder / "deep.c")]
    subprocess.run(build, check=True)
    path = folder / "perf.data"
    record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "20000", "-g", "-o", str(path), str(folder / "deep")]
    subprocess.run(record, check=True)
    return path


def _record(benchmark: Any, recording: Path, command: list[str]) -> None:
    best = min((Run(command) for _ in range(3)), key=lambda r: r.cpu_seconds)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["MB"] = round(recording.stat().st_size / 1e6)
    benchmark.extra_info["CPU-seconds"] = round(best.cpu_seconds, 2)
    benchmark.extra_info["peak MB"] = round(best.peak_bytes / 1e6)


@pytest.mark.parametrize("names", [[], ["--no-symbols"]], ids=["symbols", "addresses"])
@pytest.mark.parametrize("target", ["out.folded", "out.pb", "out.callgrind"])
def test_convert(benchmark: Any, recording: Path, target: str, names: list[str], tmp_path: Path) -> None:
    _record(benchmark, recording, fastprof("convert", "-q", recording, "-o", tmp_path / target, *names))


def test_top(benchmark: Any, recording: Path) -> None:
    _record(benchmark, recording, fastprof("top", recording))


@pytest.mark.parametrize("command", ["report --stdio", "script"])
def test_perf(benchmark: Any, recording: Path, command: str) -> None:
    _record(benchmark, recording, ["perf", *command.split(), "-i", str(recording)])
