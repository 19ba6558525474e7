"""The rows of `llvm-xray account -f csv`."""

from __future__ import annotations

import csv
from typing import NamedTuple

HEADER = ["funcid", "count", "min", "median", "90%ile", "99%ile", "max", "sum", "debug", "function"]


class Account(NamedTuple):
    """Statistics of a function's calls, callees included; all but `calls` in seconds."""

    calls: int
    min: float
    median: float
    p90: float
    p99: float
    max: float
    sum: float
    debug: str
    function: str


def parse(text: str) -> dict[int, Account]:
    """Rows by function id."""
    rows = csv.reader(text.splitlines())
    header = next(rows)
    if header != HEADER:
        raise ValueError(f"not an account: {header}")
    accounts = {}
    for function, calls, low, median, p90, p99, high, total, debug, name in rows:
        numbers = (float(low), float(median), float(p90), float(p99), float(high), float(total))
        accounts[int(function)] = Account(int(calls), *numbers, debug, name)
    return accounts


def from_durations(ticks: list[int], frequency: int) -> tuple[int, float, float, float, float, float, float]:
    """The numbers of an account's row; percentiles are picked from the sorted list like llvm's."""
    ordered = sorted(ticks)
    n = len(ordered)
    picked = (
        ordered[0],
        ordered[n // 2],
        ordered[int(n * 0.9)],
        ordered[int(n * 0.99)],
        ordered[-1],
    )
    low, median, p90, p99, high = (t / frequency for t in picked)
    return n, low, median, p90, p99, high, sum(ordered) / frequency
