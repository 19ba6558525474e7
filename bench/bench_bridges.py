"""Bridges: rows per second, and the memory that distinct stacks need.

python -m pytest bench/bench_bridges.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fastprof.bridges.estimate.estimate import to_stacks
from fastprof.bridges.project.project import to_graph
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from tests.support import profiles
from tests.support.profiles import At, Fn, Frame, Row, Sample

FUNCTIONS = [Fn(f"function_{n}", f"file_{n % 50}.c", "/bin/app", 10 * n) for n in range(2000)]


def stacks(n: int, depth: int = 30) -> list[Sample]:
    """`n` distinct stacks over 2000 functions, two values, recursion included."""
    out, state = [], 12345
    for _ in range(n):
        frames = []
        for level in range(depth):
            state = (state * 1103515245 + 12345) % (1 << 31)
            # few choices near the root, many at the leaf, as in real programs
            f = FUNCTIONS[(level * 61 + (state >> 16) % (1 + level)) % len(FUNCTIONS)]
            line = f.line + state % 3
            frames.append(Frame(((f, line),), 0x400000 + line * 16, ("/bin/app", 0x400000, 0x800000, 0)))
        out.append(Sample(tuple(frames), (1, 10_000_000)))
    return out


def repeated(batches: list[Batch], times: int) -> Iterator[Batch]:
    for _ in range(times):
        yield from batches


@pytest.mark.parametrize(("distinct", "times"), [(4000, 500), (40_000, 10)])
def test_stacks_to_graph(benchmark: Any, distinct: int, times: int) -> None:
    model = Model()
    (batch,) = profiles.stacks(model, stacks(distinct), distinct + 1)

    def run() -> int:
        return sum(len(b) for b in to_graph(repeated([batch], times), model, Options(), Log()))

    rows = benchmark.pedantic(run, rounds=3)
    benchmark.extra_info["graph rows"] = rows
    benchmark.extra_info["M samples/s"] = round(distinct * times / benchmark.stats.stats.min / 1e6, 1)


def test_graph_to_stacks(benchmark: Any) -> None:
    rows = []
    for n, f in enumerate(FUNCTIONS):
        at = At(f, f.file, f.line + 1)
        rows.append(Row(at, None, 0, (1000 + n % 97, 10)))
        rows.extend(Row(at, FUNCTIONS[(n * k + k) % len(FUNCTIONS)], 5, (100 + n % 89, 1)) for k in range(2, 12))
    model = Model()
    (batch,) = profiles.graph(model, rows, len(rows) + 1)

    def run() -> int:
        return sum(len(b) for b in to_stacks([batch], model, Options(), Log()))

    out = benchmark.pedantic(run, rounds=3)
    benchmark.extra_info["stacks"] = out
    benchmark.extra_info["M stacks/s"] = round(out / benchmark.stats.stats.min / 1e6, 2)
