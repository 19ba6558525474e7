"""The archive against zstd: `python -m pytest bench/bench_archive.py -s`.

Size and speed of writing at the default level and at 19, speed of reading, beside `zstd -19 --long=27` of the raw
file in the same run.  Files: FASTPROF_BENCH (paths, separated by blanks), else the real ones of shared/data.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from fastprof import formats
from fastprof.engine import Options, Reader, Report, read, write
from fastprof.formats.archive_member import ArchiveReader, ArchiveWriter
from fastprof.io import Sink, Source
from fastprof.model import Model
from tests.paths import SHARED

PATTERNS = ("xray/*/*.xray", "callgrind/*.callgrind", "gperftools/*/*.prof")


def files() -> list[Path]:
    named = os.environ.get("FASTPROF_BENCH")
    if named:
        return [Path(name) for name in named.split()]
    found = [path for pattern in PATTERNS for path in sorted((SHARED / "data").glob(pattern))] if SHARED else []
    return [path for path in found if path.stat().st_size > 1000 and "edge" not in path.parts]


def open_reader(path: Path, model: Model, report: Report) -> Reader:
    source = Source(str(path))
    reader = formats.detect(source).reader
    assert reader is not None
    return reader(source, model, Options(), report)


def store(path: Path, to: Path, level: int) -> float:
    """CPU seconds of reading the profile and writing its archive."""
    model, report = Model(), Report()
    start = time.process_time()
    reader = open_reader(path, model, report)
    with Sink(str(to)) as sink:
        writer = ArchiveWriter(model, sink, Options(level=level), report)
        writer.view = reader.view
        write(read(reader), writer)
        sink.commit()
    reader.source.close()
    return time.process_time() - start


def fetch(path: Path) -> int:
    with Source(str(path)) as source:
        return sum(len(batch) for batch in read(ArchiveReader(source, Model(), Options(), Report())))


def children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def test_against_zstd(tmp_path: Path) -> None:
    """Prints the table of the goals and checks the sizes; speeds are printed only."""
    zstd = shutil.which("zstd")
    assert zstd, "zstd is not installed"
    smaller: list[float] = []
    smallest: list[float] = []
    faster: list[float] = []
    for path in files():
        size, fpa = path.stat().st_size, tmp_path / "x.fpa"
        begin = children()
        peer = len(subprocess.run([zstd, "-19", "--long=27", "-q", "-c", path], capture_output=True, check=True).stdout)
        peer_seconds = children() - begin
        store(path, fpa, 19)
        at_19 = fpa.stat().st_size
        seconds = store(path, fpa, 0)
        ours = fpa.stat().st_size
        begin = time.process_time()
        fetch(fpa)
        back = time.process_time() - begin
        smaller.append(math.log(peer / ours))
        smallest.append(math.log(peer / at_19))
        print(
            f"{path.parent.name}/{path.name}: {size} bytes; "
            f"zstd -19 {peer} at {size / max(peer_seconds, 0.001) / 1e6:.1f} MB/s; "
            f"archive {ours} at {size / seconds / 1e6:.0f} MB/s, back at {size / back / 1e6:.0f} MB/s; level 19 {at_19}"
        )
        if size > 10_000_000:
            faster.append(math.log(peer_seconds / seconds))
    mean = math.exp(sum(smaller) / len(smaller))
    mean_19 = math.exp(sum(smallest) / len(smallest))
    print(f"geometric means: {mean:.2f} times smaller than zstd -19 --long=27, {mean_19:.2f} times at level 19")
    if faster:
        print(f"files over 10 MB: {math.exp(sum(faster) / len(faster)):.0f} times faster")
    assert mean >= 1


@pytest.fixture(scope="module")
def largest() -> Path:
    return max(files(), key=lambda path: path.stat().st_size)


def test_write(benchmark: Any, largest: Path, tmp_path: Path) -> None:
    benchmark.extra_info["bytes"] = largest.stat().st_size
    benchmark(store, largest, tmp_path / "x.fpa", 0)


def test_read(benchmark: Any, largest: Path, tmp_path: Path) -> None:
    store(largest, tmp_path / "x.fpa", 0)
    benchmark.extra_info["bytes"] = largest.stat().st_size
    benchmark(fetch, tmp_path / "x.fpa")
