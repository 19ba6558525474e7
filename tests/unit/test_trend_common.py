"""What all functions have in common at a point, where few of them have most of the cost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import fastprof
from tests.support.trends import poisson


@pytest.mark.parametrize("seed", [5, 13])
def test_few_functions(tmp_path: Path, seed: int) -> None:
    """One of three functions grows by 5 %, 7.5 standard errors over all points.  Sampling noise that counted as growth
    of all three would hide it."""
    rng = random.Random(seed)
    for point in range(30):
        costs = {"parse": 300, "fill": 420 if point >= 19 else 400, "draw": 700, "main": 1}
        parts = [18_000 * cost / sum(costs.values()) for cost in costs.values()]
        rows = [f"main;{name} {poisson(rng, part)}" for name, part in zip(costs, parts, strict=True)]
        (tmp_path / f"{point:02d}.folded").write_text("\n".join(rows) + "\n")
    found = fastprof.trend(str(tmp_path), explain=0)
    (one,) = [one for one in found.findings if one.name == "fill"]
    assert one.p < 0.001
    assert abs(one.since_index - 19) <= 1
