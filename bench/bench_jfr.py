"""Flight recordings: CPU-seconds and memory of fastprof compared with the JDK's `jfr summary`.

pytest bench/bench_jfr.py             FASTPROF_BENCH_CHUNKS sets the number of chunks (default 12: 110 and 140 MB)
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, fastprof
from tests.support.jfrfile import Chunk

CHUNKS = int(os.environ.get("FASTPROF_BENCH_CHUNKS", "12"))
SAMPLES, STACKS, ALLOCATIONS = 400_000, 25_000, 710_000  # of a chunk
pytestmark = pytest.mark.skipif(not shutil.which("jfr"), reason="needs openjdk-17-jdk-headless")


def deep_samples() -> bytes:
    """Samples of 25,000 stacks of 25 to 63 frames that share their outer parts, and 9,000 different frames."""
    noise, chunk = random.Random(1), Chunk(every=20_000)
    frames = [
        (
            f"com/example/Component{i % 300}",
            f"method{i}",
            "(I)V",
            noise.randint(10, 900),
            noise.randint(0, 300),
            "Inlined",
        )
        for i in range(3000)
        for _ in range(3)
    ]
    fields = chunk.types["jdk.types.StackFrame"]
    encoded = [
        b"".join(chunk.value(field, value) for field, value in zip(fields, chunk.frame(*one), strict=True))
        for one in frames
    ]
    pool, stack = chunk.pools.setdefault("jdk.types.StackTrace", {}), list[bytes]()
    for key in range(1, STACKS + 1):
        stack = stack[: noise.randrange(5, len(stack)) if len(stack) > 5 else 5]
        while len(stack) < noise.randrange(25, 64):
            stack.append(encoded[min(int(noise.expovariate(1 / 800)), len(encoded) - 1)])
        pool[key] = b"\0" + chunk.number(len(stack), 4) + b"".join(reversed(stack))
    threads, state, ticks = [chunk.thread(f"w{i}", i, 100 + i) for i in range(1, 65)], chunk.state("STATE_RUNNABLE"), 0
    chunk.setting("jdk.ExecutionSample", "period", "10 ms")
    for i in range(SAMPLES):
        ticks += noise.randrange(20_000)
        key = min(int(noise.expovariate(1 / 6000)), STACKS - 1) + 1
        chunk.event("jdk.ExecutionSample", ticks, threads[i % 64], key, state)
    return chunk.bytes()


def allocations() -> bytes:
    noise, chunk, ticks = random.Random(2), Chunk(), 0
    frames = [(f"com/example/Alloc{i % 30}", f"m{i}", "()V", i, i % 200, "Inlined") for i in range(300)]
    stacks = [chunk.stack(noise.choices(frames, k=noise.randrange(5, 30))) for _ in range(600)]
    classes = [chunk.class_(name) for name in ("[B", "java/lang/String", "[I", "java/lang/Object")]
    threads = [chunk.thread(f"w{i}", i, 100 + i) for i in range(1, 9)]
    for i in range(ALLOCATIONS):
        ticks += noise.randrange(3000)
        key = stacks[min(int(noise.expovariate(1 / 60)), 599)]
        chunk.event("jdk.ObjectAllocationInNewTLAB", ticks, threads[i % 8], key, classes[i % 4], 24, 2048)
    return chunk.bytes()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("jfr")
    found = {}
    for name, data in (("samples", deep_samples()), ("allocations", allocations())):
        found[name] = folder / f"{name}.jfr"
        with found[name].open("wb") as file:
            for _ in range(CHUNKS):
                file.write(data)
    return found


def _record(benchmark: Any, recording: Path, command: list[str]) -> None:
    best = min((Run(command) for _ in range(3)), key=lambda r: r.cpu_seconds)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["MB"] = round(recording.stat().st_size / 1e6)
    benchmark.extra_info["CPU-seconds"] = round(best.cpu_seconds, 2)
    benchmark.extra_info["peak MB"] = round(best.peak_bytes / 1e6)


@pytest.mark.parametrize("name", ["samples", "allocations"])
@pytest.mark.parametrize("target", ["out.folded", "out.pb.gz"])
def test_convert(benchmark: Any, recordings: dict[str, Path], name: str, target: str, tmp_path: Path) -> None:
    _record(benchmark, recordings[name], fastprof("convert", "-q", recordings[name], "-o", tmp_path / target))


@pytest.mark.parametrize("name", ["samples", "allocations"])
def test_info(benchmark: Any, recordings: dict[str, Path], name: str) -> None:
    _record(benchmark, recordings[name], fastprof("info", recordings[name]))


@pytest.mark.parametrize("name", ["samples", "allocations"])
def test_the_summary_of_the_jdk(benchmark: Any, recordings: dict[str, Path], name: str) -> None:
    _record(benchmark, recordings[name], ["jfr", "summary", str(recordings[name])])
