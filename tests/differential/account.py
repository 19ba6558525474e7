"""The rows of `llvm-xray account -f csv`."""

from __future__ import annotations

import csv
from typing import NamedTuple


class Account(NamedTuple):
    """Statistics of a function's calls, callees included; all but `count` in seconds."""

    count: int
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
    if header != "funcid,count,min,median,90%ile,99%ile,max,sum,debug,function".split(","):
        raise ValueError(f"not an account: {header}")
    return {
        int(row[0]): Account(int(row[1]), *map(float, row[2:8]), debug=row[8], function=row[9])
        for row in rows
    }


def from_durations(
    ticks: list[int], frequency: int
) -> tuple[int, float, float, float, float, float, float]:
    """The numbers of an account's row, percentiles picked from the sorted list as llvm does."""
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
