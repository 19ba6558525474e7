"""Profiles of one's own data: millions of rows per CPU second, until the profile can be read.

    pytest bench/bench_makers.py --benchmark-columns=min,median

Stacks have 20 frames of 500 functions, spans one of 500 functions.  `fresh` stacks are other tuples each time, of
`texts` also each name is another object, as after parsing.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import polars
import pytest

import fastprof

_STACKS, _SPANS = 2_000_000, 4_000_000
_NAMES = [f"function_{i}" for i in range(500)]


def measured(benchmark: Any, what: str, n: int, make: Callable[[], Any]) -> None:
    rates = []

    def run() -> None:
        began = time.process_time()
        make()
        rates.append(n / (time.process_time() - began) / 1e6)

    benchmark.pedantic(run, rounds=3)
    benchmark.extra_info[f"M {what} per CPU-s"] = round(max(rates), 2)


@pytest.mark.parametrize("kind", ["same", "fresh", "lists", "texts"])
def test_stacks(benchmark: Any, kind: str) -> None:
    source = random.Random(1)
    base = [tuple(source.choices(_NAMES, k=20)) for _ in range(2000)]
    n = _STACKS // 4 if kind == "texts" else _STACKS
    of: dict[str, Callable[[tuple[str, ...]], Any]] = {
        "same": lambda stack: stack,
        "fresh": lambda stack: (*list(stack),),
        "lists": list,
        "texts": lambda stack: (*(f"{name} "[:-1] for name in stack),),
    }
    rows = [(of[kind](base[i % len(base)]), i) for i in range(n)]
    measured(benchmark, "stacks", n, lambda: fastprof.from_stacks(rows))


@pytest.mark.parametrize("kind", ["numpy", "text", "categorical"])
def test_spans(benchmark: Any, kind: str) -> None:
    source = random.Random(1)
    names = source.choices(_NAMES, k=_SPANS)
    starts = polars.Series(range(0, 10 * _SPANS, 10))
    frame = polars.DataFrame({"name": names, "start": starts, "end": starts + 5})
    if kind == "categorical":
        frame = frame.with_columns(polars.col("name").cast(polars.Categorical))
    columns = {"name": names, "start": frame["start"].to_numpy(), "end": frame["end"].to_numpy()}
    measured(benchmark, "spans", _SPANS, lambda: fastprof.from_spans(columns if kind == "numpy" else frame))
