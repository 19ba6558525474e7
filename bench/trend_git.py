"""A git history whose functions are sampled: does `fastprof trend` find the commit that made one slower?

    python -m bench.trend_git                 the table of RESULTS.md; needs git, gcc and perf
    python -m bench.trend_git --seeds 3 --event cpu-clock

A temporary repository of 30 commits (tests/differential/test_trend_git.py); the twentieth makes `fill` 5 % slower, each
other one changes a comment.  Each commit is built once and recorded by `perf record -e cpu-clock:u` for each seed, in
an order of its own.  Without debug information: functions inlined into `fill` count as `fill`.

`z` is what the counts alone show, if the commit is known: the difference of the share of `fill` in standard errors.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from pathlib import Path

import fastprof
from tests.differential.test_trend_git import COMMITS, EVENT, FREQUENCY, ROUNDS, SLOWER, built, recorded


def of_counts(found: fastprof.Trend) -> float:
    """The difference of two binomial shares over its standard error."""
    fill = next(row for row in found.rows if row.name == "fill")
    period = sum(point.total for point in found.points) / sum(point.samples or 0 for point in found.points)
    n, k = [0.0, 0.0], [0.0, 0.0]
    for i, (point, cost) in enumerate(zip(found.points, fill.values, strict=True)):
        n[i >= SLOWER] += point.samples or 0
        k[i >= SLOWER] += (cost or 0) / period
    share = sum(k) / sum(n)
    return (k[1] / n[1] - k[0] / n[0]) / (share * (1 - share) * (1 / n[0] + 1 / n[1])) ** 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--event", default=EVENT)
    parser.add_argument("--frequency", type=int, default=FREQUENCY, help="samples a second")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the program's loop")
    args = parser.parse_args()
    print(f"| seed | samples a commit | z | p | change | found at commit ({SLOWER + 1} is right) | other findings |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        programs = dict(built(Path(folder) / "clone", args.rounds))
        order = Path(folder) / "order"
        order.write_text("\n".join(reversed(programs)))
        os.chdir(folder)
        for seed in range(args.seeds):
            runs = Path(folder) / f"runs{seed}"
            runs.mkdir()
            for commit in random.Random(seed).sample(list(programs), COMMITS):
                recorded(runs / f"{commit}.data", programs[commit], args.event, args.frequency)
            given = {"over": "commit", "order": str(order), "label_path": "{commit}.data", "explain": 0}
            found, costs = fastprof.trend(str(runs), **given), fastprof.trend(str(runs), per="1", rows=99, **given)
            samples = sorted(point.samples or 0 for point in found.points)[COMMITS // 2]
            mine = [one for one in found.findings if one.name == "fill"]
            cells = [f"{mine[0].p:.1g}", f"{mine[0].change:+.1f} %", str(mine[0].since_index + 1)] if mine else [""] * 3
            others = len(found.findings) - len(mine)
            print(f"| {seed} | {samples:,} | {of_counts(costs):.1f} | {' | '.join(cells)} | {others} |", flush=True)


if __name__ == "__main__":
    main()
