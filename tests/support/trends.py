"""Profiles of many nights, with functions that get slower."""

from __future__ import annotations

import random
from pathlib import Path

import fastprof

SHARES = {f"f{i}": 1 / (i + 2) for i in range(30)}


def poisson(rng: random.Random, mean: float) -> int:
    """Of a large mean."""
    return max(0, round(rng.gauss(mean, mean**0.5)))


def written(
    folder: Path, points: int, factors: dict[str, tuple[int, float]], *, hosts: int = 1, n: int = 100_000, seed: int = 1
) -> Path:
    """Profiles of `n` samples each: from a point on, the cost of a function is multiplied by a factor."""
    rng = random.Random(seed)
    folder.mkdir(exist_ok=True)
    slower = {f"host{h}": {f: random.Random(f + str(h)).uniform(0.8, 1.25) for f in SHARES} for h in range(hosts)}
    for point in range(points):
        for host, own in slower.items():
            costs = {
                name: share * own[name] * (factors[name][1] if name in factors and point >= factors[name][0] else 1)
                for name, share in SHARES.items()
            }
            total = sum(costs.values())
            rows = [
                f"main;caller{i % 3};{name} {poisson(rng, n * c / total)}" for i, (name, c) in enumerate(costs.items())
            ]
            (folder / f"{point:03d}.{host}.folded").write_text("\n".join(rows) + "\n")
    return folder


def over_points(folder: Path, **options: object) -> fastprof.Trend:
    return fastprof.trend([str(folder)], over="point", label_path="{point}.{host}.folded", **options)  # type: ignore[arg-type]


def graph(path: Path, costs: dict[str, int]) -> str:
    lines = [f"fn={name}\n{i + 1} {cost}\n" for i, (name, cost) in enumerate(costs.items())]
    path.write_text("events: Ir\nfl=a.c\n" + "\n".join(lines))
    return str(path)
