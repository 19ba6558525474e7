"""`fastprof trend` on profiles of a fleet, read from files: is each kind of event found, and nothing else?

    python -m bench.trend_fleet                 the table of RESULTS.md
    python -m bench.trend_fleet inlined --seeds 3

Unlike trend_truth, which makes sums in memory, this writes pprof files of random call trees (200 functions with files,
lines and one or two callers), of hosts that differ by 10 %, some of which are missing.  So callers, call paths, pairing
of names and labels take part.  An event begins at the 20th of 36 nights.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fastprof

WORDS = [
    "alloc",
    "merge",
    "parse",
    "hash",
    "tree",
    "list",
    "sort",
    "fill",
    "copy",
    "read",
    "write",
    "node",
    "page",
    "scan",
]
NIGHTS, AT = 36, 20
Costs = dict[str, float]
Names = dict[str, str | None]  # as profiles name functions; None: inlined into the caller


class Tree:
    """Functions, their callers and their costs."""

    def __init__(self, seed: int, n: int = 200) -> None:
        rng = random.Random(seed)
        names: dict[str, None] = {"main": None}
        while len(names) < n:
            words = "_".join(rng.sample(WORDS, rng.choice([1, 2, 3])))
            names[rng.choice(["db::", "net::", "json::", ""]) + words + rng.choice(["()", "(int)", "<int>()"])] = None
        self.names = [*names]
        self.files = {name: f"/src/{rng.choice(WORDS)}.cc" for name in names}
        few = (rng.sample(range(max(0, i - 60), i), min(rng.choice([1, 1, 2]), i)) for i in range(1, n))
        self.callers = [[], *few]
        raw = [0.0, *((1 + rng.random() * n) ** -1.1 for _ in range(1, n))]
        self.shares = np.array(raw) / sum(raw)
        self.largest = sorted(self.names, key=lambda name: -self.shares[self.names.index(name)])

    def paths(self, i: int) -> list[list[str]]:
        """Up to three call paths of a function, outermost first."""
        if i == 0:
            return [["main"]]
        return [[*path, self.names[i]] for caller in self.callers[i] for path in self.paths(caller)][:3]


def step(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night >= AT:
        costs[tree.largest[3]] *= 1.25


def drift(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    costs[tree.largest[3]] *= 1 + 0.04 * min(10, max(0, night - AT + 10))


def spike(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night == AT:
        costs[tree.largest[3]] *= 1.8


def away(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if AT <= night < AT + 7:
        costs[tree.largest[3]] *= 1.5


def inlined(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night >= AT:
        name = tree.largest[3]
        caller = tree.names[tree.callers[tree.names.index(name)][0]]
        costs[caller] += costs[name]
        costs[name], names[name] = 0, None


def renamed(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night >= AT:
        names[tree.largest[3]] = "detail::" + tree.largest[3].rpartition("::")[2]


def divided(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night >= AT:
        name = tree.largest[3]
        costs[name + ".part.0"], costs[name + ".part.1"], costs[name] = 0.6 * costs[name], 0.4 * costs[name], 0


def moved(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night >= AT:
        some = 0.35 * costs[tree.largest[3]]
        costs[tree.largest[3]] -= some
        costs[tree.largest[8]] += some


def new(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night >= AT:
        costs["brand_new()"] = 0.02


def deleted(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night >= AT:
        costs[tree.largest[3]] = 0


def one_host(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    if night >= AT and host == 1:
        costs[tree.largest[3]] *= 2.5


def ten(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    for name in tree.largest[0:30:3] if night >= AT else ():
        costs[name] *= 1.2


def nothing(tree: Tree, night: int, host: int, costs: Costs, names: Names) -> None:
    pass


EVENTS: dict[Callable[[Tree, int, int, Costs, Names], None], tuple[str, int]] = {
    step: ("step", 1),
    drift: ("drift", 1),
    spike: ("spike", 1),
    away: ("went away", 1),
    inlined: ("cost shift", 1),
    renamed: ("cost shift", 1),
    divided: ("cost shift", 1),
    moved: ("cost shift", 1),
    new: ("step", 1),
    deleted: ("step", 1),
    one_host: ("step", 1),
    ten: ("step", 10),
    nothing: ("", 0),
}


def written(folder: Path, tree: Tree, event: Callable[..., None], hosts: int, seed: int, samples: int) -> None:
    rng = np.random.default_rng(seed)
    offsets = rng.lognormal(0, 0.1, (hosts, len(tree.names)))
    paths = {name: tree.paths(i) for i, name in enumerate(tree.names)}
    for night in range(NIGHTS):
        for host in range(hosts):
            if hosts > 1 and rng.random() < 0.05:
                continue
            noise = 1 + (0.02 if hosts > 1 else 0) * rng.standard_normal(len(tree.names))
            costs = dict(zip(tree.names, map(float, tree.shares * offsets[host] * noise), strict=True))
            names: Names = {}
            event(tree, night, host, costs, names)
            total = sum(costs.values())
            rows = []
            for name, cost in costs.items():
                mine = paths.get(name) or [["main", name]]
                for path in mine:
                    n = int(rng.poisson(samples * cost / total / len(mine)))
                    frames = [(names.get(one, one), tree.files.get(one, "/src/new.cc"), 7) for one in path]
                    rows.append(([frame for frame in frames if frame[0] is not None], n))
            made = fastprof.from_stacks([row for row in rows if row[1]], values=[("samples", "count")])
            made.convert(folder / f"2025-03-{night + 1:02d}.host{host}.pb.gz")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("events", nargs="*", choices=[[], *(event.__name__ for event in EVENTS)])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--hosts", type=int, nargs="*", default=[1, 3])
    parser.add_argument("--samples", type=int, default=30_000, help="of a profile")
    args = parser.parse_args()
    print("| event | runs | found | other findings |\n| --- | ---: | ---: | ---: |", flush=True)
    for event, (kind, n) in EVENTS.items():
        if args.events and event.__name__ not in args.events:
            continue
        runs = right = others = 0
        for hosts in args.hosts:
            for seed in range(args.seeds):
                n_hosts = max(2, hosts) if event is one_host else hosts
                with tempfile.TemporaryDirectory() as name:
                    written(Path(name), Tree(9000 + seed), event, n_hosts, seed, args.samples)
                    found = fastprof.trend(name, over="date", label_path="{date}.{host}.pb.gz").findings
                at = AT - 10 * (kind == "drift")
                mine = [one for one in found if one.kind == kind and abs(one.since_index - at) <= 3][:n]
                runs, right, others = runs + n, right + len(mine), others + len(found) - len(mine)
        print(f"| {event.__name__} | {runs} | {right} | {others} |", flush=True)


if __name__ == "__main__":
    main()
