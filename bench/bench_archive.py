"""The archive against zstd: `python -m pytest bench/bench_archive.py -s`.

Sizes, and speeds of reading and of writing at the default level and at 19, compared with `zstd -19 --long=27` of the
raw file in the same run. Files: the real ones of shared/data, and those that FASTPROF_BENCH names (paths, separated by
blanks). Speeds are MB of the raw file per CPU-second. Reading back: to batches, what every conversion begins with.
"""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from fastprof import formats
from fastprof.core.engine import Reader, read, write
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.write import ArchiveWriter
from fastprof.store.adding import add, adding
from fastprof.store.compact import compact, remove, verify
from fastprof.store.listing import members
from fastprof.verbs.batch.archive import batch_archive
from tests.support.paths import SHARED

PATTERNS = ("xray/*/*.xray", "callgrind/*.callgrind", "gperftools/*/*.prof")


LARGE = 10_000_000  # bytes from which speeds mean something


def files() -> list[Path]:
    found = [path for pattern in PATTERNS for path in sorted((SHARED / "data").glob(pattern))] if SHARED else []
    found = [path for path in found if path.stat().st_size > 1000 and "edge" not in path.parts]
    return found + [Path(name) for name in os.environ.get("FASTPROF_BENCH", "").split()]


def open_reader(path: Path, model: Model, log: Log) -> Reader:
    source = Source(str(path))
    reader = formats.detect(source).reader_class()
    assert reader is not None
    return reader(source, model, Options(), log)


def store(path: Path, to: Path, level: int) -> float:
    """CPU seconds of reading the profile and writing its archive."""
    model, log = Model(), Log()
    start = time.process_time()
    reader = open_reader(path, model, log)
    with Sink(str(to)) as sink:
        writer = ArchiveWriter(model, sink, Options(level=level), log)
        writer.view = reader.view
        write(read(reader), writer)
        sink.commit()
    reader.source.close()
    return time.process_time() - start


def fetch(path: Path) -> int:
    with Source(str(path)) as source:
        return sum(len(batch) for batch in read(ArchiveReader(source, Model(), Options(), Log())))


def children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def mean(ratios: list[float]) -> float:
    """Geometric."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def test_against_zstd(tmp_path: Path) -> None:
    """Prints the table of the goals and checks the sizes; speeds are printed only."""
    zstd = shutil.which("zstd")
    assert zstd, "zstd is not installed"
    smaller: list[float] = []
    smallest: list[float] = []
    faster: list[float] = []
    rows = []
    for path in files():
        size, fpa = path.stat().st_size, tmp_path / "x.fpa"
        begin = children()
        peer = len(subprocess.run([zstd, "-19", "--long=27", "-q", "-c", path], capture_output=True, check=True).stdout)
        peer_seconds = children() - begin
        at_19_seconds = store(path, fpa, 19)
        at_19 = fpa.stat().st_size
        seconds = store(path, fpa, 0)
        ours = fpa.stat().st_size
        smaller.append(peer / ours)
        smallest.append(peer / at_19)
        name = f"{path.parent.name}/{path.name}" if SHARED and SHARED in path.parents else path.name
        if size < LARGE:
            print(f"{name}: {size:,} bytes; zstd -19 {peer:,}, archive {ours:,}, --level 19 {at_19:,}")
            continue
        faster.append(peer_seconds / seconds)
        backs = []
        for _ in range(5):
            begin = time.process_time()
            fetch(fpa)
            backs.append(time.process_time() - begin)
        speeds = (f"{size / s / 1e6:,.0f}" for s in (seconds, at_19_seconds, min(backs)))
        rows.append(
            f"| {name} | {size / 1e6:.1f} M | {peer:,} | {ours:,} | {peer / ours:.2f}x | {at_19:,} "
            f"| {peer / at_19:.2f}x | {peer_seconds / seconds:.0f}x | {' | '.join(speeds)} |"
        )
        print(rows[-1])
    small = len(smaller) - len(rows)
    print(
        "\n| file | raw | zstd -19 --long=27 | archive | smaller | --level 19 | smaller | faster than zstd "
        "| write MB/s | at 19 | read MB/s |\n|---|---|---|---|---|---|---|---|---|---|---|\n" + "\n".join(rows)
    )
    for what, some in (("all", slice(None)), ("small", slice(small)), ("large", slice(small, None))):
        if smaller[some]:
            print(
                f"geometric means, {len(smaller[some])} {what} files: {mean(smaller[some]):.2f} times smaller than "
                f"zstd -19 --long=27, {mean(smallest[some]):.2f} at level 19"
            )
    if faster:
        print(f"large files: {mean(faster):.0f} times faster, at least {min(faster):.0f}")
    assert mean(smaller) >= 1


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


def alike(folder: Path, n: int, functions: int) -> None:
    """Callgrind dumps, of which each has other costs in a tenth of its functions."""
    choose = random.Random(1)
    costs = [(f"fn_{i}", [(line, choose.randrange(1, 10**6)) for line in range(1, 6)]) for i in range(functions)]
    folder.mkdir()
    for i in range(n):
        lines = ["events: Ir", "fl=a.c"]
        for name, rows in costs:
            more = choose.randrange(100) if choose.random() < 0.1 else 0
            lines += [f"fn={name}", *(f"{line} {cost + more}" for line, cost in rows)]
        (folder / f"callgrind.out.{i}").write_text("\n".join(lines) + "\n")


def test_adding_many_costs_the_same_each(tmp_path: Path) -> None:
    """2,000 dumps of 16 KB in one call, and a quarter of them.  Prints CPU milliseconds per dump."""
    alike(tmp_path / "dumps", 2000, 300)

    def each(n: int) -> float:
        begin = time.process_time()
        with adding(str(tmp_path / f"{n}.fpa")) as session:
            for i in range(n):
                session.add(str(tmp_path / "dumps" / f"callgrind.out.{i}"), str(i))
        return (time.process_time() - begin) / n

    few, many = each(500), each(2000)
    print(f"\n500 dumps: {1000 * few:.2f} ms each; 2,000 dumps: {1000 * many:.2f} ms each; {many / few:.2f} times")
    assert many < 1.3 * few


def test_a_store_of_2000(tmp_path: Path) -> None:
    """2,000 dumps of 100 KB: CPU seconds of each command, and what adding by two workers saves."""
    dumps, store, batched = tmp_path / "dumps", str(tmp_path / "s.fpa"), str(tmp_path / "b.fpa")
    alike(dumps, 2000, 1900)
    size = sum(path.stat().st_size for path in dumps.iterdir())
    print(f"\n{size / 2000:,.0f} bytes each")

    def seconds(what: str, work: Any) -> float:
        mine, other, wall = time.process_time(), children(), time.monotonic()
        work()
        mine, other, wall = time.process_time() - mine, children() - other, time.monotonic() - wall
        print(f"{what}: {mine + other:.2f} s of CPU, {mine:.2f} of them in the first process, {wall:.2f} s")
        return mine + other

    one_by_one = seconds("add", lambda: add(store, [str(dumps)]))
    sizes = os.path.getsize(store)
    by_one = seconds("batch archive -j 1", lambda: batch_archive(dumps, str(tmp_path / "b1.fpa"), jobs=1))
    seconds("batch archive -j 2", lambda: batch_archive(dumps, batched, jobs=2))
    print(f"{sizes:,} bytes by add, {os.path.getsize(batched):,} by batch archive -j 2")
    seconds("list", lambda: members(store))
    seconds("verify", lambda: verify(store))
    seconds("rm of half", lambda: remove(store, ["*[02468]"]))
    packing = seconds("compact", lambda: compact(store))
    assert os.path.getsize(batched) < 1.1 * sizes
    assert by_one < 1.5 * one_by_one and packing < one_by_one / 4
