"""`fastprof trend` and Apache Otava on series of one number: recall, false findings, CPU time.

    python -m bench.trend_otava                      the tables of RESULTS.md
    python -m bench.trend_otava gauss --seeds 100    one of them: gauss, limit, patterns

Peers: pip `apache-otava` (its defaults: window 50, p 0.001) and, for the patterns and their truth, `otava-test-data`.
The series are totals of exact costs: `trend --per 1` of one function.  A truth is found if a change begins or ends
within five points of it (ten, of Gaussian series), or if a drift goes over it; other changes are false.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from otava.analysis import compute_change_points
from otava_test_data.generators import combiner

from bench.trend_truth import main
from fastprof.verbs.trend.keys import packed
from fastprof.verbs.trend.series import Points, Series
from fastprof.verbs.trend.sums import Profile

ALPHA = 0.1 / 2  # --significance, half of it for self costs
UNIT = 10_000  # costs are whole numbers


class Score(NamedTuple):
    truths: int = 0
    found: int = 0
    false: int = 0
    seconds: float = 0.0

    def plus(self, other: Score) -> Score:
        return Score(*(a + b for a, b in zip(self, other, strict=True)))


Span = tuple[int, int]


def of_trend(values: Sequence[float]) -> list[Span]:
    """Where the changes that fastprof finds begin and end."""
    n = len(values)
    costs = [round(value * UNIT) for value in values]
    data = [packed((array("I", [0]), *[array("q", [cost])] * 3)) for cost in costs]
    ends = [*accumulate(map(len, data))]
    made = SimpleNamespace(rows=SimpleNamespace(keys=[(b"f", b"", b"", 0, "")]), kept=lambda: b"".join(data))
    profiles = [
        [Profile(str(i), {}, None, cost, 0.0, 1.0, end - len(its), size=len(its))]
        for i, (cost, its, end) in enumerate(zip(costs, data, ends, strict=True))
    ]
    points = Points([str(i) for i in range(n)], profiles, [[0]] * n, 1, [])
    changes = Series(made, points, [0], 0, per="1").changes(ALPHA)  # type: ignore[arg-type]
    found = {(one.at, one.end if one.kind == "drift" else one.at) for one in changes}
    back = {(one.end, one.end) for one in changes if one.kind in ("spike", "went away") and one.end < n}
    return sorted(found | back)


def of_otava(values: Sequence[float]) -> list[Span]:
    return [(one.index, one.index) for one in compute_change_points(values)[0]]


PROGRAMS = {"fastprof": of_trend, "Otava": of_otava}


Find = Callable[[Sequence[float]], list[Span]]


def scored(find: Find, values: Sequence[float], truths: Iterable[int], near: int) -> Score:
    truths = [*truths]
    start = time.process_time()
    found = find([float(value) for value in values])
    seconds = time.process_time() - start
    hits = sum(any(low - near <= at <= high + near for low, high in found) for at in truths)
    false = sum(not any(low - near <= at <= high + near for at in truths) for low, high in found)
    return Score(len(truths), hits, false, seconds)


Cases = Iterable[tuple[Sequence[float], Iterable[int]]]


def rows(name: str, cases: Cases, near: int) -> str:
    cases = [*cases]
    cells = []
    for find in PROGRAMS.values():
        sum_ = Score()
        for values, truths in cases:
            sum_ = sum_.plus(scored(find, values, truths, near))
        cells += [f"{sum_.found} of {sum_.truths}", str(sum_.false), f"{1000 * sum_.seconds / len(cases):.2f}"]
    return f"| {name} | {len(cases)} | {cells[0]} | {cells[3]} | {cells[1]} | {cells[4]} | {cells[2]} | {cells[5]} |"


HEAD = (
    "| series | number | found | Otava | false | Otava | ms each | Otava |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
)


def gauss(seeds: int) -> Iterator[str]:
    """Gaussian noise of 3 %, with and without one step in the middle half."""
    yield from HEAD
    for size in (0.05, 0.02, 0.0):
        for n in (60, 365, 1000):
            cases = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                at = int(rng.integers(n // 4, n - n // 4))
                values = 100 * (1 + 0.03 * rng.standard_normal(n))
                values[at:] *= 1 + size
                cases.append((values, [at] if size else []))
            yield rows(f"{100 * size:g} %, {n:,} points" if size else f"no step, {n:,} points", cases, 10)


def limit(seeds: int) -> Iterator[str]:
    """Of 1,000 series a seed with a step of 2 % at 60 points: what the best split finds if the noise is known, and what
    the test of the greatest power (Neyman and Pearson) notices, which also knows the size and the middle half."""
    yield "| wrong in series without a step | found | more than ten points off | noticed by any test, at most |"
    yield "| ---: | ---: | ---: | ---: |"
    rng, n, each, size = np.random.default_rng(1), 60, 1000 * seeds, 0.02 / 0.03
    at, k = rng.integers(n // 4, n - n // 4, each), np.arange(1, n)
    middle, width = slice(n // 4 - 1, n - n // 4 - 1), np.sqrt(k * (n - k) / n)
    splits, powers = [], []
    for step in (0.0, size):
        values = rng.standard_normal((each, n)) + step * (np.arange(n) >= at[:, None])
        sums = values.cumsum(axis=1)
        splits.append(abs(sums[:, :-1] - sums[:, -1:] * k / n) / width)
        ratios = size * width * splits[-1] - (size * width) ** 2 / 2  # of a step up or down at each point
        either = np.logaddexp(ratios, ratios - 2 * size * width * splits[-1])
        powers.append(np.logaddexp.reduce(either[:, middle], axis=1))
    off = abs(splits[1].argmax(axis=1) + 1 - at) > 10
    for wrong in (0.005, 0.01, 0.015, 0.025, 0.05):
        found = splits[1].max(axis=1) > np.quantile(splits[0].max(axis=1), 1 - wrong)
        most = (powers[1] > np.quantile(powers[0], 1 - wrong)).mean()
        shares = (found & ~off).mean(), (found & off).mean(), most
        yield f"| {100 * wrong:g} % | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |"


def patterns(seeds: int) -> Iterator[str]:
    """The patterns of otava-test-data with noise of 0 to 10, 50 and 500 points, and their sums in pairs."""
    yield from HEAD
    blocks = combiner.CombinationGenerator().generate_basic_blocks()
    for name, make in blocks:
        for length in (50, 500):
            cases = []
            for seed in range(seeds):
                for sigma in (0.0, 2.0, 5.0, 10.0):
                    made = make(length=length, seed=seed)
                    made = combiner.add_noise(made, sigma=sigma, seed=1000 + seed) if sigma else made
                    cases.append((made.data, made.get_change_point_indices()))
            yield rows(f"{name}, {length} points", cases, 5)
    for length in (50, 500):
        cases = []
        for seed in range(seeds):
            made = combiner.CombinationGenerator([length], seed=seed + 1).generate_pairwise_combinations()
            cases += [(one.data, one.get_change_point_indices()) for one in made]
        yield rows(f"pairs, {length} points", cases, 5)


TABLES = {"gauss": gauss, "limit": limit, "patterns": patterns}


if __name__ == "__main__":
    sys.exit(main(TABLES, __doc__))
