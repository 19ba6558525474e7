"""Folded stacks: reading and writing, as MB of input per CPU-second, compared with `wc -l`, flamegraph.pl and a Python
loop on the same file.

pytest bench/bench_folded.py            FASTPROF_BENCH_MB sets the size (default 100)
python -m bench.bench_folded FILE MB [--shuffled | --repeated=N]       makes such a file
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, fastprof, peer

MB = int(os.environ.get("FASTPROF_BENCH_MB", "100"))
FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"


def make(path: Path, megabytes: int, shuffled: bool) -> None:
    """Distinct stacks of about 25 frames, of 3,000 functions with names of about 30 bytes; sorted, as collapse scripts
    write them, or in any order."""
    dice = random.Random(1)
    names = [f"{dice.choice(('std', 'app', 'net'))}::Class{i % 311}::method_{i:x}(int)" for i in range(3000)]
    seen, nbytes, stack = set(), 0, ["main"]
    while nbytes < megabytes * 1_000_000:
        # some frames up, and down another way
        del stack[max(1, len(stack) - dice.randrange(1, 8)) :]
        while len(stack) < 25:
            stack.append(names[(hash(len(stack)) * 131 + dice.randrange(6) * 37 + len(stack[-1]) * 7) % 3000])
            if dice.random() < 0.02:
                break
        line = ";".join(stack)
        if line not in seen:
            seen.add(line)
            nbytes += len(line) + 4
    lines = [
        f"{line} {dice.randrange(1, 1000)}\n"
        for line in (seen if not shuffled else dice.sample(sorted(seen), len(seen)))
    ]
    if not shuffled:
        lines.sort()
    path.write_text("".join(lines))


def make_repeated(path: Path, megabytes: int, n_stacks: int) -> None:
    """Samples not added up by their writer: lines of about 40 bytes, in any order, of `n_stacks` stacks."""
    dice = random.Random(2)
    names = ["".join(dice.choices("abcdefghijklmnop_", k=dice.randrange(2, 9))) for _ in range(500)]
    stacks: set[str] = set()
    while len(stacks) < n_stacks:
        stacks.add(";".join(["main", *dice.choices(names, k=dice.randrange(2, 10))]))
    several, nbytes = sorted(stacks), 0
    with path.open("w") as file:
        while nbytes < megabytes * 1_000_000:
            samples = (f"{stack} {dice.randrange(1, 9)}\n" for stack in dice.choices(several, k=10000))
            nbytes += file.write("".join(samples))


# The obvious loop.
LOOP = """
import sys
sums = {}
for line in open(sys.argv[1], "rb"):
    stack, _, count = line.rpartition(b" ")
    sums[stack] = sums.get(stack, 0) + int(count)
"""


@pytest.fixture(scope="module", params=["sorted", "shuffled", "repeated200", "repeated5000", "repeated100000"])
def profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("folded") / f"{request.param}.folded"
    if request.param.startswith("repeated"):
        make_repeated(path, MB, int(request.param.removeprefix("repeated")))
    else:
        make(path, MB, request.param == "shuffled")
    return path


def _record(benchmark: Any, profile: Path, command: list[str]) -> None:
    runs = [Run(command) for _ in range(3)]
    best = min(runs, key=lambda r: r.cpu_seconds)
    benchmark.pedantic(lambda: None, rounds=1)
    benchmark.extra_info["MB per CPU-second"] = round(profile.stat().st_size / 1e6 / best.cpu_seconds)
    benchmark.extra_info["peak MB"] = round(best.peak_bytes / 1e6)


@pytest.mark.parametrize("target", ["out.pb.gz", "out.pb", "out.folded", "out.callgrind"])
def test_convert(benchmark: Any, profile: Path, target: str, tmp_path: Path) -> None:
    _record(benchmark, profile, fastprof("convert", "-q", profile, "-o", tmp_path / target))


def test_info(benchmark: Any, profile: Path) -> None:
    _record(benchmark, profile, fastprof("info", profile))


def test_wc(benchmark: Any, profile: Path) -> None:
    _record(benchmark, profile, ["wc", "-l", str(profile)])


def test_loop(benchmark: Any, profile: Path) -> None:
    _record(benchmark, profile, [sys.executable, "-c", LOOP, str(profile)])


def test_flamegraph(benchmark: Any, profile: Path) -> None:
    _record(benchmark, profile, peer([FLAMEGRAPH, str(profile)]))


if __name__ == "__main__":
    repeated = [option for option in sys.argv if option.startswith("--repeated=")]
    if repeated:
        make_repeated(Path(sys.argv[1]), int(sys.argv[2]), int(repeated[0].partition("=")[2]))
    else:
        make(Path(sys.argv[1]), int(sys.argv[2]), "--shuffled" in sys.argv)
