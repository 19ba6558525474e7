"""Truth for `fastprof trend`: series with injected changes, and how many of them are found.

    python -m bench.trend_truth                      the tables of RESULTS.md
    python -m bench.trend_truth nights --seeds 40    one of them: nights, year, moved, quiet, still, speed

Shares of functions are those of real profiles (tests/corpus), continued by Zipf's law; each night each host takes
samples of them
(Poisson).  A truth is a function, a kind and a point; a finding within ten points of it, of its function, finds it.
Functions are also renamed, inlined and deleted, appear, and lose cost to others: that is found if both are one finding.
"""

from __future__ import annotations

import argparse
import sys
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

import fastprof
from fastprof.verbs.trend.findings import Finding, found
from fastprof.verbs.trend.keys import packed
from fastprof.verbs.trend.series import Points, Series
from fastprof.verbs.trend.sums import Profile

REPO = Path(__file__).parents[1]
REAL = ("xray/good/fdr5-pool-clang19.xray", "callgrind/good/cfi.callgrind")
NEAR = 10  # points


class Truth(NamedTuple):
    function: int
    kind: str
    at: int
    end: int  # of what ends
    z: float  # how many standard errors of the noise the change has over all nights after it


class Setting(NamedTuple):
    """How profiles are made.  Spreads are relative standard deviations."""

    functions: int = 3000
    points: int = 365
    hosts: int = 20
    samples: int = 100_000  # of each host and night
    offset: float = 0.0  # of hosts from each other
    night: float = 0.0  # of a host from night to night
    common: float = 0.0  # of a function from night to night, on all hosts
    missing: float = 0.0  # probability that a host lacks a night
    season: float = 0.0  # of weekdays, of a tenth of the functions
    tails: bool = False  # noise of nights as of Student's t with 4 degrees of freedom
    lasting: float = 0.0  # correlation of the common noise of neighbouring nights
    moved: int = 0  # functions of each kind in MOVED


def shares(setting: Setting, rng: np.random.Generator) -> np.ndarray:
    """Shares of functions, the largest first: of a real profile, then by Zipf's law."""
    real = fastprof.top(str(REPO / "tests" / "corpus" / REAL[rng.integers(len(REAL))]), n=50).rows
    first = np.array([row.self_share for row in real if row.self_share > 0])
    tail = 1 / np.arange(2, setting.functions + 2) ** rng.uniform(0.9, 1.2)
    all_ = np.concatenate([np.minimum(first, 0.2), tail / tail.sum()])[: setting.functions]
    all_ = -np.sort(-all_)
    return all_ / all_.sum()


MOVED = ("renamed", "inlined", "moved", "new", "deleted")


class Made:
    """Profiles in memory, as what reads them gives them (verbs/trend/sums.py)."""

    def __init__(self, setting: Setting, seed: int, inject: bool | Sequence[tuple[int, str, int, int, float]] = True):
        self.setting, self.rng = setting, np.random.default_rng(seed)
        self.base = shares(setting, self.rng)
        self.other: dict[int, int] = {}  # of a function whose cost went to another one
        self.names = [f"f{i}" for i in range(len(self.base))]
        self.truths: list[Truth] = []
        self.factors: list[tuple[int, str, int, int, float]] = []
        if inject is True:
            self._inject()
        elif inject:
            self.factors = [*inject]
        if setting.moved:
            self._move()
        self.rows = SimpleNamespace(keys=[(name.encode(), b"a.c", b"app", 0, "") for name in self.names])
        self.totals = array("d", self.base)
        self._costs = bytearray()
        self.points = self._profiles()
        for f, kind, at, end, size in self.factors:
            self.truths.append(Truth(f, kind, at, end, self._z(f, at, end, size, kind)))

    def _inject(self) -> None:
        """Steps, drifts, spikes and what went away, in functions of 0.1 % to 20 % of the cost."""
        rng, t = self.rng, self.setting.points
        candidates = [i for i in range(len(self.base)) if 0.001 <= self.base[i] <= 0.2]
        rng.shuffle(candidates)
        kinds = ["step"] * 10 + ["drift"] * 3 + ["spike"] * 4 + ["went away"] * 3
        for f, kind in zip(candidates, kinds, strict=False):
            at = int(rng.integers(t // 8, t - t // 8))
            size = float(rng.choice([0.005, 0.01, 0.02, 0.05, 0.1, 0.2])) * float(rng.choice([1, 1, -1]))
            length = {"step": t, "drift": t // 4, "spike": 1, "went away": int(rng.integers(8, 30))}[kind]
            if kind == "spike":
                size = abs(size) + 0.1
            self.factors.append((f, kind, at, min(t, at + length), size))

    def _move(self) -> None:
        """Renamed, inlined, new and deleted functions, and such that lose a part of their cost to another one."""
        rng, t, base = self.rng, self.setting.points, list(self.base)
        candidates = [i for i in range(len(base)) if 0.002 <= base[i] <= 0.05]
        rng.shuffle(candidates)
        for kind in MOVED * self.setting.moved:
            f, at, size = candidates.pop(), int(rng.integers(t // 8, t - t // 8)), float(rng.uniform(0.3, 0.7))
            if kind in ("renamed", "new"):
                self.other[f] = len(base)
                self.names.append(f"{self.names[f]}_impl" if kind == "renamed" else f"added{len(base)}")
                base.append(0.0)
            elif kind != "deleted":  # to a function of about the same cost or more
                self.other[f] = next(i for i in candidates[::-1] if base[i] > base[f] / 2)
                candidates.remove(self.other[f])
            self.factors.append((f, kind, at, t, size))
        self.base = np.array(base)

    def _z(self, f: int, at: int, end: int, size: float, kind: str) -> float:
        s, setting = self.base[f], self.setting
        relative = 1 / (s * setting.samples * setting.hosts) + setting.night**2 / setting.hosts + setting.common**2
        after = max(1, (end if kind in ("spike", "went away") else setting.points) - at)
        return abs(size) / np.sqrt(relative * (1 / after + 1 / max(1, at)))

    def level(self, t: int) -> np.ndarray:
        """The shares at a point, without noise."""
        s = self.base.copy()
        for f, kind, at, end, size in self.factors:
            if kind in MOVED:
                if t >= at:
                    part = s[f] * (size if kind == "moved" else 1.0)
                    s[f] -= 0 if kind == "new" else part
                    if kind != "deleted":
                        s[self.other[f]] += part
            elif kind == "drift":
                s[f] *= 1 + size * min(1.0, max(0.0, (t - at) / max(1, end - at)))
            elif at <= t < end:
                s[f] *= 1 + size
        return s

    def _profiles(self) -> Points:
        setting, rng, n = self.setting, self.rng, len(self.base)
        offset = np.exp(setting.offset * rng.standard_normal((setting.hosts, n))) if setting.offset else None
        seasonal = rng.random(n) < 0.1
        weekdays = 1 + setting.season * rng.standard_normal((7, n)) * seasonal
        lasting = np.zeros(n)
        names, profiles, hosts = [], [], []
        for t in range(setting.points):
            lasting = setting.lasting * lasting + np.sqrt(1 - setting.lasting**2) * rng.standard_normal(n)
            level = self.level(t) * np.maximum(0.0, weekdays[t % 7] * (1 + setting.common * lasting))
            mine, of = [], []
            for host in range(setting.hosts):
                if setting.missing and rng.random() < setting.missing and (mine or host + 1 < setting.hosts):
                    continue
                here = level if offset is None else level * offset[host]
                if setting.night:
                    noise = rng.standard_t(4, n) / np.sqrt(2) if setting.tails else rng.standard_normal(n)
                    here = here * np.maximum(0.0, 1 + setting.night * noise)
                counts = rng.poisson(here / here.sum() * setting.samples)
                total = int(counts.sum())
                rows = np.nonzero(counts)[0].astype(np.uint32)
                its = array("q", counts[rows].astype(np.int64).tobytes())
                data = packed((array("I", rows.tobytes()), its, its, array("q", bytes(8 * len(its)))))
                at, n_samples = len(self._costs), float(total)
                mine.append(Profile(str(t), {}, None, total, n_samples, n_samples, at, size=len(data)))
                self._costs += data
                of.append(host)
            day = np.datetime64("2025-01-01") + t
            names.append(str(day))
            profiles.append(mine)
            hosts.append(of)
        season = [t % 7 for t in range(setting.points)] if setting.points >= 28 else []
        return Points(names, profiles, hosts, setting.hosts, season)

    def kept(self) -> bytearray:
        return self._costs

    def first(self, n: int) -> Points:
        """The points until then."""
        p = self.points
        return Points(p.names[:n], p.profiles[:n], p.hosts[:n], p.n_hosts, p.season[:n] if n >= 28 else [])


def findings(made: Made, points: Points | None = None) -> list[Finding]:
    series = Series(made, points or made.points, range(len(made.base)), 0, per=None)  # type: ignore[arg-type]
    return found(series.changes(0.1), [], made.rows.keys, lambda: None, 0)


def matched(made: Made, all_: Sequence[Finding]) -> tuple[dict[Truth, Finding], list[Finding]]:
    """What was found of the truth, and the rest.  Within a drift and what went away, findings are right."""
    hits: dict[Truth, Finding] = {}
    wrong = []
    for one in all_:
        mine = [t for t in made.truths if t.function in _rows(one) and _first(t) <= one.change.at <= _end(t) + NEAR]
        for truth in mine:
            hits.setdefault(truth, one)
        if not mine:
            wrong.append(one)
    return hits, wrong


def _first(truth: Truth) -> int:
    return truth.at - NEAR - (truth.end - truth.at) // 4 * (truth.kind == "drift")


def _end(truth: Truth) -> int:
    return truth.end if truth.kind != "step" else truth.at


# ---- the tables


def nights(seeds: int) -> Iterator[str]:
    """Nights until a step is found, at 20 hosts of 100,000 samples; at most one false finding a month."""
    yield "| noise | step | found within 10 nights | median night | at night 10 alone | false findings |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for name, setting, size in (
        ("sampling", Setting(functions=1000, points=130), 0.005),
        ("hosts 10 %, nights 3 %", Setting(functions=1000, points=60, offset=0.1, night=0.03), 0.03),
        ("the same, a tenth missing", Setting(functions=1000, points=60, offset=0.1, night=0.03, missing=0.1), 0.03),
        ("the same, a third missing", Setting(functions=1000, points=60, offset=0.1, night=0.03, missing=0.33), 0.03),
    ):
        delays, at_ten, n_false = [], 0, 0
        for seed in range(seeds):
            base = shares(setting, np.random.default_rng(seed))
            f = int(np.argmin(abs(base - 0.05)))
            at = setting.points - 10
            made = Made(setting, seed, [(f, "step", at, setting.points, size * np.sqrt(0.05 / base[f]))])
            delay = None
            for night in range(1, 11):
                hits, wrong = matched(made, findings(made, made.first(at + night)))
                if hits and delay is None:
                    delay = night
                if night == 10:
                    at_ten += bool(hits)
                    n_false += len(wrong)
            delays.append(delay or 99)
        within = sum(delay <= 10 for delay in delays)
        middle = sorted(delays)[len(delays) // 2]
        yield f"| {name} | {100 * size:g} % | {within} of {seeds} | {middle} | {at_ten} of {seeds} | {n_false} |"


YEARS = {
    "sampling": Setting(),
    "1 host": Setting(hosts=1),
    "1,000 samples": Setting(hosts=1, samples=1000, functions=300),
    "50 hosts, 10 %, 3 %": Setting(functions=300, hosts=50, offset=0.1, night=0.03),
    "hosts 15 %, some missing": Setting(functions=1000, hosts=5, offset=0.15, night=0.05, missing=0.1),
    "all hosts vary, 2 %": Setting(functions=1000, hosts=3, common=0.02),
    "the same, for days": Setting(functions=1000, hosts=3, common=0.02, lasting=0.5),
    "heavy tails, 5 %": Setting(functions=1000, hosts=3, night=0.05, tails=True),
    "weekdays 5 %": Setting(functions=1000, hosts=3, season=0.05),
    "30 points": Setting(functions=1000, points=30),
}


def year(seeds: int) -> Iterator[str]:
    """Precision and recall with twenty changes a series of points."""
    yield "| noise | findings | precision | recall, z > 6 | recall, all | distance in points | false a month |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, setting in YEARS.items():
        n = right = n_clear = clear = n_all = n_hits = n_wrong = 0
        distances = []
        for seed in range(seeds):
            made = Made(setting, 1000 + seed)
            all_ = findings(made)
            hits, wrong = matched(made, all_)
            n, right = n + len(all_), right + len(all_) - len(wrong)
            n_wrong += len(wrong)
            n_all, n_hits = n_all + len(made.truths), n_hits + len(hits)
            n_clear += sum(truth.z > 6 for truth in made.truths)
            clear += sum(truth.z > 6 for truth in hits)
            distances += [abs(one.change.at - truth.at) for truth, one in hits.items() if truth.kind != "drift"]
        months = seeds * setting.points / 30.4
        distance = f"{np.mean(distances):.1f}" if distances else ""
        precision = f"{right / n:.3f}" if n else ""
        yield (
            f"| {name} | {n} | {precision} | {clear} of {n_clear} | {n_hits} of {n_all} | {distance} "
            f"| {n_wrong / months:.2f} |"
        )


def moved(seeds: int) -> Iterator[str]:
    """Cost that moves, half a year of 3 hosts: found as one cost shift (new and deleted functions: as such)."""
    yield "| noise | kind | injected | found | as two findings | missed | distance in points | false findings |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    small = Setting(functions=1000, points=180, hosts=3, moved=3)
    for name, setting in (
        ("sampling", small),
        ("hosts 10 %, nights 3 %", small._replace(offset=0.1, night=0.03)),
        ("weekdays 5 %", small._replace(season=0.05)),
    ):
        counts = {kind: [0, 0, 0] for kind in MOVED}
        distances: dict[str, list[int]] = {kind: [] for kind in MOVED}
        n_false = 0
        for seed in range(seeds):
            made = Made(setting, 3000 + seed, False)
            all_ = findings(made)
            explained = set()
            for truth in made.truths:
                f, other = truth.function, made.other.get(truth.function, truth.function)
                own = {other} if truth.kind == "new" else {f, other}
                near = [one for one in all_ if abs(one.change.at - truth.at) <= NEAR and _rows(one) & own]
                explained.update(map(id, near))
                found_ = [one for one in near if _rows(one) == own and one.is_shift == (len(own) > 1)]
                counts[truth.kind][0 if found_ else 1 if near else 2] += 1
                distances[truth.kind] += [abs(one.change.at - truth.at) for one in found_[:1]]
            n_false += sum(id(one) not in explained for one in all_)
        for kind, (right, apart, none) in counts.items():
            distance = f"{np.mean(distances[kind]):.1f}" if distances[kind] else ""
            n = right + apart + none
            yield f"| {name} | {kind} | {n} | {right} | {apart} | {none} | {distance} | {n_false} |"


def _rows(one: Finding) -> set[int]:
    return {one.change.row, *(row for row, _ in one.others)}


def quiet(seeds: int) -> Iterator[str]:
    """Nothing changes: false findings over 30,000 functions, in all points, and new ones in a month of daily runs."""
    yield "| noise | points | findings in them | in a month | new ones in a month of daily runs |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    big = Setting(functions=30_000, hosts=1, samples=2_000_000, points=180)
    fleet = Setting(functions=30_000, points=90, offset=0.1, night=0.03)
    for name, setting in (
        ("sampling", big),
        ("hosts 10 %, nights 3 %", fleet),
        ("the same, a tenth of nights missing", fleet._replace(missing=0.1)),
        ("all hosts vary, 3 %", big._replace(common=0.03)),
        ("heavy tails, 5 %", big._replace(night=0.05, tails=True)),
        ("lasting for days", big._replace(common=0.02, lasting=0.5)),
    ):
        n, new, last = 0, 0, setting.points
        for seed in range(seeds):
            made = Made(setting, 2000 + seed, False)
            n += len(findings(made))
            seen = {(one.change.row, one.change.at // 5) for one in findings(made, made.first(last - 30))}
            for day in range(last - 29, last + 1, 3):
                for one in findings(made, made.first(day)):
                    near = {(one.change.row, one.change.at // 5 + k) for k in (-1, 0, 1)}
                    if not near & seen:
                        new += 1
                    seen.add((one.change.row, one.change.at // 5))
        yield f"| {name} | {last} | {n / seeds:.2f} | {n * 30 / last / seeds:.2f} | {new / seeds:.2f} |"


def still(seeds: int) -> Iterator[str]:
    """A year in which nothing changes, 3,000 functions: findings of all nights together."""
    yield "| noise | years | findings |"
    yield "| --- | ---: | ---: |"
    for name, setting in (
        ("sampling, 1 host", Setting(hosts=1)),
        ("heavy tails 5 %, 3 hosts", Setting(hosts=3, night=0.05, tails=True)),
    ):
        n = sum(len(findings(Made(setting, 5000 + seed, False))) for seed in range(seeds))
        yield f"| {name} | {seeds} | {n} |"


def speed(seeds: int) -> Iterator[str]:
    """CPU seconds of the statistics."""
    yield "| functions x points | CPU |"
    yield "| --- | ---: |"
    for functions, points in ((10_000, 365), (10_000, 1000)):
        made = Made(Setting(functions=functions, points=points, hosts=1), 1)
        start = time.process_time()
        findings(made)
        yield f"| {functions:,} x {points:,} | {time.process_time() - start:.1f} s |"


TABLES = {"nights": nights, "year": year, "moved": moved, "quiet": quiet, "still": still, "speed": speed}


def main(tables: Mapping[str, Callable[[int], Iterator[str]]], about: str) -> None:
    """Print those of the tables that the command line names, or all."""
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    parser.add_argument("tables", nargs="*", choices=[[], *tables])
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    for name in args.tables or tables:
        print(f"\n{tables[name].__doc__}\n", flush=True)
        for line in tables[name](args.seeds):
            print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(TABLES, __doc__))
