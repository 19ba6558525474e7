"""Unwinding recordings of `perf record --call-graph dwarf`: stacks, compared with perf script; tables of large files.

pytest bench/bench_unwind.py            FASTPROF_BENCH_SECONDS sets the seconds of recording (default 10)
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, fastprof, peer
from fastprof.symbols.elf import ElfFile
from fastprof.symbols.unwind import UnwindTable

SECONDS = int(os.environ.get("FASTPROF_BENCH_SECONDS", "10"))
LIBRARIES = ["libLLVM-14.so.1", "libstdc++.so.6", "libc.so.6"]
PROGRAM = f"""
import json, re, time
def nest(n, value):
    return json.dumps(value) if n < 3 else nest(n - 1, value)
value = {{str(i): list(range(30)) for i in range(10)}}
i = 0
while time.process_time() < {SECONDS}:
    nest(i % 30, value)
    i += 1
    sorted(map(str, range(200)))
    re.sub(r"a(b|c)+", lambda found: found[0].upper(), "abcabcabc" * 3)
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python program, 8 KB of each stack."""
    path = tmp_path_factory.mktemp("unwind") / "python.data"
    record = [
        "record",
        "-q",
        "-m",
        "2048",
        "-e",
        "cpu-clock:u",
        "-F",
        "4000",
        "--call-graph",
        "dwarf,8192",
        "-o",
        str(path),
    ]
    subprocess.run([*peer(["perf"]), *record, sys.executable, "-c", PROGRAM], check=True, capture_output=True)
    return path


def frames_of(recording: Path) -> int:
    command = ["perf", "script", "--no-inline", "-F", "ip", "-i", str(recording)]
    return sum(1 for line in subprocess.run(command, capture_output=True, check=True).stdout.splitlines() if line)


def best_of(command: list[str]) -> Run:
    return min((Run(command) for _ in range(3)), key=lambda run: run.cpu_seconds)


def test_convert(benchmark: Any, recording: Path, tmp_path: Path) -> None:
    """Everything but the start of the program counts for its frames: reading, ordering, unwinding, names, writing."""
    run = best_of(fastprof("convert", "-q", recording, "-o", tmp_path / "out.pb.gz"))
    start = best_of(fastprof("convert", "-q", small(recording), "-o", tmp_path / "small.pb.gz"))
    frames = frames_of(recording)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["MB"] = round(recording.stat().st_size / 1e6)
    benchmark.extra_info["frames"] = frames
    benchmark.extra_info["CPU seconds"] = round(run.cpu_seconds, 2)
    benchmark.extra_info["start"] = round(start.cpu_seconds, 2)
    benchmark.extra_info["ns a frame"] = round((run.cpu_seconds - start.cpu_seconds) / frames * 1e9)
    benchmark.extra_info["peak MB"] = round(run.peak_bytes / 1e6)


def small(recording: Path) -> Path:
    """The same of a program that ends at once."""
    path = recording.with_name("small.data")
    record = ["record", "-q", "-e", "cpu-clock:u", "-F", "1000", "--call-graph", "dwarf,8192", "-o", str(path)]
    subprocess.run(["perf", *record, sys.executable, "-c", "0"], check=True, capture_output=True)
    return path


def test_perf_script(benchmark: Any, recording: Path) -> None:
    run = best_of(["perf", "script", "--no-inline", "-F", "ip,sym", "-i", str(recording)])
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["CPU seconds"] = round(run.cpu_seconds, 2)
    benchmark.extra_info["ns a frame"] = round(run.cpu_seconds / frames_of(recording) * 1e9)
    benchmark.extra_info["peak MB"] = round(run.peak_bytes / 1e6)


@pytest.mark.parametrize("name", LIBRARIES)
def test_tables(benchmark: Any, name: str) -> None:
    path = next((path for folder in ("/lib", "/usr/lib") for path in Path(folder).glob(f"*/{name}")), None)
    if path is None:
        pytest.skip(f"{name} is not installed")
    elf = ElfFile(path)
    section = elf.section(".eh_frame")
    assert section is not None
    seconds = []
    for _ in range(5):
        begun = time.process_time()
        table = UnwindTable(elf, 1)
        seconds.append(time.process_time() - begun)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["MB of .eh_frame"] = round(section.size / 1e6, 2)
    benchmark.extra_info["ms a MB"] = round(min(seconds) * 1e9 / section.size, 1)
    benchmark.extra_info["rows"] = int(table.stats.rows)
    benchmark.extra_info["table MB"] = round(table.stats.nbytes / 1e6, 2)
