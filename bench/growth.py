"""Growth: N and 2N of one dimension at a time, through every verb, as ratios of CPU time and of peak memory.

    python -m bench.growth [--write] [--dimension TEXT] [--verb TEXT] [--jobs N] [--all]

A ratio above LIMIT is a finding, and the exit code is then 1.  What the same command costs on a tiny input is
subtracted first, and a ratio only counts where the larger input costs enough to be measured (SHOWS).  A suspect is
measured again at 2N and 4N, and at 4N and 8N: superlinear work stays, noise and the steps in which tables grow do not.
`--write` updates the table in RESULTS.md, `--all` prints every measurement.

Each command runs in a process forked from one that has imported fastprof, so start-up costs next to nothing.  Peaks are
those of the forked process and of its children (wait4).
"""

from __future__ import annotations

import argparse
import gc
import importlib
import math
import multiprocessing
import os
import pkgutil
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import fastprof
from bench.grown import DIMENSIONS, Dimension
from fastprof.cli import main as run_fastprof

LIMIT = 2.5
TINY = 4  # of any dimension
MOST_SECONDS = 8  # of CPU for a command
ROUNDS = 2  # suspects are measured again


class Cost(NamedTuple):
    cpu: float  # seconds
    peak: float  # MiB


SHOWS = Cost(0.08, 12.0)  # less than this at 2N is noise


def _to(suffix: str, *options: str) -> Callable[[Path, Path], list[str]]:
    return lambda source, folder: ["convert", "-q", str(source), "-o", str(folder / f"out{suffix}"), *options]


def _verb(verb: str, *options: str, inputs: int = 1, out: str = "") -> Callable[[Path, Path], list[str]]:
    def command(source: Path, folder: Path) -> list[str]:
        target = ["-o", str(folder / out)] if out else []
        return [*verb.split(), "-q", *[str(source)] * inputs, *options, *target]

    return command


def _store(source: Path, folder: Path) -> str:
    return str(folder / "store.fpa")


_ANY = {
    "info": _verb("info"),
    "top": _verb("top"),
    "top -n 0": _verb("top", "-n", "0"),
    "annotate": _verb("annotate"),
    "report": _verb("report", out="out.html"),
    "diff": _verb("diff", inputs=2),
    "diff to pprof": _verb("diff", inputs=2, out="out.pb.gz"),
    "diff to callgrind": _verb("diff", inputs=2, out="out.callgrind"),
    "merge to pprof": _verb("merge", inputs=2, out="out.pb.gz"),
    "merge to callgrind": _verb("merge", inputs=2, out="out.callgrind"),
    "callgrind": _to(".callgrind"),
    "cachegrind": _to(".cachegrind"),
    "pprof": _to(".pb.gz"),
    "folded": _to(".folded"),
    "speedscope": _to(".speedscope.json"),
    "firefox": _to(".firefox.json"),
    "archive": _to(".fpa"),
    "parquet": _to(".parquet"),
    "archive add": lambda source, folder: ["archive", "add", "-q", _store(source, folder), str(source)],
    "batch": lambda source, folder: ["batch", "convert", "-q", "-j", "1", str(source), "-t", "pprof", "-o", str(folder)],
}
_SQL = {"timeline": "spans", "stacks": "samples", "graph": "graph"}
_MORE: dict[str, dict[str, Callable[[Path, Path], list[str]]]] = {
    "timeline": {
        "xray": _to(".xray"),
        "trace-event": _to(".trace.json"),
        "perfetto": _to(".pftrace"),
        "callgrind, --per-thread": _to(".callgrind", "--per-thread"),
        "pprof, --threads 1": _to(".pb.gz", "--threads", "1"),
        "pprof, by thread": _to(".pb.gz", "--labels", "thread,process"),
    },
    "stacks": {"gperftools": _to(".prof")},
    "graph": {"top by file": _verb("top", "--by", "file")},
}
_FILES: dict[str, Callable[[Path, Path], list[str]]] = {
    "merge": _verb("merge", out="out.pb.gz"),
    "top": _verb("top"),
    "archive add": lambda source, folder: ["archive", "add", "-q", str(folder / "new.fpa"), str(source)],
    "archive list": lambda source, folder: ["archive", "list", _store(source, folder)],
    "archive list --json": lambda source, folder: ["archive", "list", "--json", _store(source, folder)],
    "archive verify": lambda source, folder: ["archive", "verify", "-q", _store(source, folder)],
    "archive compact": lambda source, folder: ["archive", "compact", "-q", _store(source, folder)],
    "archive rm": lambda source, folder: ["archive", "rm", "-q", _store(source, folder), "*1*"],
    "archive extract": lambda source, folder: [
        "archive", "extract", "-q", _store(source, folder), "*", "-t", "folded", "-o", str(folder / "all"),
    ],  # fmt: skip
    "merge of members": lambda source, folder: ["merge", "-q", f"{_store(source, folder)}:*", "-o", str(folder / "o.pb")],
    "batch convert": lambda source, folder: [
        "batch", "convert", "-q", "-j", "1", str(source), "-t", "pprof", "-o", str(folder / "all"),
    ],  # fmt: skip
    "batch merge": lambda source, folder: ["batch", "merge", "-q", "-j", "1", str(source), "-o", str(folder / "o.pb")],
    "batch archive": lambda source, folder: ["batch", "archive", "-q", "-j", "1", str(source), "-o", str(folder / "n.fpa")],
}


def verbs_of(view: str) -> dict[str, Callable[[Path, Path], list[str]]]:
    if view == "files":
        return _FILES
    sql = {"sql": lambda source, folder: ["sql", "-q", str(source), f"select count(*) from {_SQL[view]}"]}
    return _ANY | sql | _MORE[view]


class Failed(Exception):
    pass


def measure(command: list[str]) -> Cost:
    """What a command costs in a process forked from this one.  Errors: Failed, with the exit code."""
    child = os.fork()
    if not child:
        code = 70
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
            code = run_fastprof(command)
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise Failed(code)
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


class Bench:
    """The costs of one dimension, inputs made as they are needed."""

    def __init__(self, dimension: Dimension, folder: Path) -> None:
        self._dimension, self._folder = dimension, folder
        self._costs: dict[tuple[str, int], Cost] = {}

    def _source(self, n: int) -> Path:
        path = self._folder / f"in{n}{self._dimension.suffix}"
        if not path.exists():
            self._dimension.make(path, n)
        return path

    def cost(self, verb: str, n: int) -> Cost:
        """Errors: Failed."""
        if (verb, n) not in self._costs:
            source, folder = self._source(n), Path(tempfile.mkdtemp(dir=self._folder))
            if self._dimension.view == "files":
                measure(["archive", "add", "-q", _store(source, folder), str(source)])
            try:
                self._costs[verb, n] = measure(verbs_of(self._dimension.view)[verb](source, folder))
            finally:
                shutil.rmtree(folder)
        return self._costs[verb, n]

    def growth(self, verb: str, n: int) -> Cost:
        """2N against N, by CPU and by memory; 1 where nothing shows.  Errors: Failed."""
        tiny, once, twice = (self.cost(verb, size) for size in (TINY, n, 2 * n))
        ratios = []
        for least, first, second, shows in zip(tiny, once, twice, SHOWS, strict=True):
            shown = second - least >= shows
            ratios.append((second - least) / max(first - least, shows / 8) if shown else 1.0)
        return Cost(*ratios)


class Result(NamedTuple):
    dimension: str
    verb: str
    n: int
    growth: Cost
    cost: Cost  # at 2N
    failed: str = ""

    @property
    def finding(self) -> bool:
        return bool(self.failed) or max(self.growth) > LIMIT


def look_at(name: str, verb: str, bench: Bench, n: int) -> Result | None:
    """None: the format of the dimension cannot do it."""
    try:
        bench.cost(verb, TINY)
    except Failed:
        return None
    try:
        growth = bench.growth(verb, n)
        for _ in range(ROUNDS):
            if max(growth) <= LIMIT or bench.cost(verb, 2 * n).cpu > MOST_SECONDS / 4:
                break
            n *= 2
            again = bench.growth(verb, n)
            growth = Cost(*map(min, growth, again))
        return Result(name, verb, n, growth, bench.cost(verb, 2 * n))
    except Failed as failed:
        return Result(name, verb, n, Cost(math.inf, math.inf), Cost(0, 0), f"exit code {failed}")


def dimension(arguments: tuple[str, str, float]) -> list[Result]:
    name, wanted, scale = arguments
    n = int(DIMENSIONS[name].n * scale)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(DIMENSIONS[name], Path(folder))
        looked = (look_at(name, verb, bench, n) for verb in verbs_of(DIMENSIONS[name].view) if wanted in verb)
        return [result for result in looked if result]


def preload() -> None:
    """What fastprof imports when it needs it, so that no measurement has to."""
    for module in pkgutil.walk_packages(fastprof.__path__, "fastprof."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def line(result: Result) -> str:
    if result.failed:
        return f"{result.dimension:32} {result.verb:24} {result.failed} at {result.n:,} or {2 * result.n:,}"
    return (
        f"{result.dimension:32} {result.verb:24} {2 * result.n:9,} {result.growth.cpu:6.2f} {result.growth.peak:6.2f}"
        f" {result.cost.cpu:8.2f} s {result.cost.peak:6.0f} MiB"
    )


def table(results: list[Result]) -> Iterator[str]:
    """By dimension, its worst verbs."""
    yield "| dimension | 2N | verbs | CPU, 2N : N | worst | peak, 2N : N | worst |"
    yield "|---|---:|---:|---:|---|---:|---|"
    for name, dimension in DIMENSIONS.items():
        mine = [result for result in results if result.dimension == name]
        if mine:
            cpu, peak = max(mine, key=lambda r: r.growth.cpu), max(mine, key=lambda r: r.growth.peak)
            yield (
                f"| {name} | {2 * dimension.n:,} | {len(mine)} | {cpu.growth.cpu:.1f} | {cpu.verb} "
                f"| {peak.growth.peak:.1f} | {peak.verb} |"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimension", default="")
    parser.add_argument("--verb", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--scale", type=float, default=1, help="multiplies every N")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    preload()
    gc.freeze()
    names = [(name, arguments.verb, arguments.scale) for name in DIMENSIONS if arguments.dimension in name]
    results: list[Result] = []
    with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
        for some in pool.imap_unordered(dimension, names):
            results += some
            for result in some:
                if arguments.all or result.finding:
                    print(line(result), flush=True)
    findings = [result for result in results if result.finding]
    print(f"{len(results)} commands over {len(names)} dimensions, {len(findings)} findings")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
