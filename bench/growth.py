"""Growth: N and 2N of one dimension at a time, through every verb, as ratios of CPU time and of peak memory.

    python -m bench.growth [--write] [--dimension TEXT] [--verb TEXT] [--jobs N] [--all]

A ratio above LIMIT is a finding, and the exit code is then 1.  What the same command costs on a tiny input is
subtracted first, and a ratio only counts where the larger input costs enough to be measured (SHOWS).  A suspect is
measured again, three times at most, with twice the N as long as that takes little: superlinear work stays, noise and
the steps in which tables grow do not.  `--write` updates the table in RESULTS.md, `--all` prints every measurement.

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
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import fastprof
from bench import grown
from bench.grown import Dimension
from bench.grown_formats import FORMATS
from fastprof.cli import main as run_fastprof

DIMENSIONS = grown.DIMENSIONS | FORMATS
LIMIT = 2.7  # twice the input: 2 if linear, 2.1 for n log n, 2.8 for n to the power of 1.5, 4 if quadratic
TINY = 4  # of any dimension
MOST_SECONDS = 8  # of CPU for a command
ROUNDS = 3  # suspects are measured again


class Cost(NamedTuple):
    cpu: float  # seconds
    peak: float  # MiB


SHOWS = Cost(0.08, 12.0)  # less than this at 2N is noise


# By name; {in}, {out} (a folder), {store} (an archive of what is in {in}) and {query} are filled in.
_ANY = {
    "info": "info -q {in}",
    "top": "top -q {in}",
    "top -n 0": "top -q -n 0 {in}",
    "annotate": "annotate -q {in}",
    "report": "report -q {in} -o {out}/o.html",
    "sql": "sql -q {in} {query}",
    "diff": "diff -q {in} {in}",
    "diff to pprof": "diff -q {in} {in} -o {out}/o.pb.gz",
    "diff to callgrind": "diff -q {in} {in} -o {out}/o.callgrind",
    "merge to pprof": "merge -q {in} {in} -o {out}/o.pb.gz",
    "merge to callgrind": "merge -q {in} {in} -o {out}/o.callgrind",
    "callgrind": "convert -q {in} -o {out}/o.callgrind",
    "cachegrind": "convert -q {in} -o {out}/o.cachegrind",
    "pprof": "convert -q {in} -o {out}/o.pb.gz",
    "folded": "convert -q {in} -o {out}/o.folded",
    "speedscope": "convert -q {in} -o {out}/o.speedscope.json",
    "firefox": "convert -q {in} -o {out}/o.firefox.json",
    "archive": "convert -q {in} -o {out}/o.fpa",
    "parquet": "convert -q {in} -o {out}/o.parquet",
    "archive add": "archive add -q {out}/new.fpa {in}",
    "batch convert": "batch convert -q -j 1 {in} -t pprof -o {out}/all",
}
_MORE = {
    "timeline": {
        "xray": "convert -q {in} -o {out}/o.xray",
        "trace-event": "convert -q {in} -o {out}/o.trace.json",
        "perfetto": "convert -q {in} -o {out}/o.pftrace",
        "callgrind, --per-thread": "convert -q {in} -o {out}/o.callgrind --per-thread",
        "pprof, --cores 1": "convert -q {in} -o {out}/o.pb.gz --cores 1",
        "pprof, by thread": "convert -q {in} -o {out}/o.pb.gz --labels thread,process",
    },
    "stacks": {"gperftools": "convert -q {in} -o {out}/o.prof"},
    "graph": {"top --by file": "top -q --by file {in}"},
}
_FILES = {
    "top": "top -q {in}",
    "merge": "merge -q {in} -o {out}/o.pb.gz",
    "archive add": "archive add -q {out}/new.fpa {in}",
    "archive list": "archive list {store}",
    "archive list --json": "archive list --json {store}",
    "archive verify": "archive verify -q {store}",
    "archive compact": "archive compact -q {store}",
    "archive rm": "archive rm -q {store} *1*",
    "archive extract": "archive extract -q {store} * -t folded -o {out}/all",
    "merge of members": "merge -q {store}:* -o {out}/o.pb",
    "batch convert": "batch convert -q -j 1 {in} -t pprof -o {out}/all",
    "batch merge": "batch merge -q -j 1 {in} -o {out}/o.pb",
    "batch archive": "batch archive -q -j 1 {in} -o {out}/new.fpa",
}
_TABLES = {"timeline": "spans", "stacks": "samples", "graph": "graph"}


def verbs_of(view: str) -> dict[str, str]:
    return _FILES if view == "files" else _ANY | _MORE[view]


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
            folder, view = tempfile.mkdtemp(dir=self._folder), self._dimension.view
            words = {"in": str(self._source(n)), "out": folder, "store": f"{folder}/store.fpa"}
            words["query"] = f"select count(*) from {_TABLES.get(view, '')}"
            command = verbs_of(view)[verb]
            try:
                if "{store}" in command:
                    measure(["archive", "add", "-q", words["store"], words["in"]])
                limit = ["--max-memory", self._dimension.limit] if self._dimension.limit else []
                self._costs[verb, n] = measure([word.format_map(words) for word in command.split()] + limit)
            finally:
                shutil.rmtree(folder)
        return self._costs[verb, n]

    def forget(self, verb: str) -> None:
        """Measure this verb anew."""
        self._costs = {key: cost for key, cost in self._costs.items() if key[0] != verb}

    def growth(self, verb: str, n: int) -> Cost:
        """2N against N, by CPU and by memory; 1 where nothing shows.  Errors: Failed."""
        tiny, once, twice = (self.cost(verb, size) for size in (TINY, n, 2 * n))
        ratios = []
        for least, first, second, shows in zip(tiny, once, twice, SHOWS, strict=True):
            shown = second - least >= shows
            ratio = (second - least) / max(first - least, shows / 8) if shown else 1.0
            ratios.append(ratio * 2 / self._dimension.linear)
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
            if max(growth) <= LIMIT:
                break
            if bench.cost(verb, 2 * n).cpu <= MOST_SECONDS / 4:
                n *= 2
            bench.forget(verb)
            growth = Cost(*map(min, growth, bench.growth(verb, n)))
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


def write(text: str) -> None:
    """Put the table into RESULTS.md."""
    path = Path(__file__).parent / "RESULTS.md"
    begin, end = "<!-- made by python -m bench.growth: begin -->\n", "<!-- growth: end -->"
    head, _, rest = path.read_text().partition(begin)
    path.write_text(head + begin + text.rstrip("\n") + "\n" + end + rest.partition(end)[2])


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
    if arguments.write and not findings:
        write("\n".join(table(results)))
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
