"""The values of each row at each point, and their changes (csrc/ends/trend.h).

           1       2       3       4
f        0.10    0.10    0.12    0.12     shares of each point's total, the mean of its profiles
g        0.90    0.90    0.88    0.88
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import sqrt

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.core.owner import owned
from fastprof.verbs.trend.sums import Profile, Sums

if TYPE_CHECKING:
    from fastprof.core._c import fp_trend_change

KINDS = ("step", "drift", "spike", "went away")
_MOST_CHANGES = 64
_MOST_HOSTS = 256  # that are compared with themselves


class Change(NamedTuple):
    """A change of one row."""

    row: int
    kind: str
    at: int  # the first changed point
    end: int  # of a spike, what went away and a drift: the point after the last
    before: float
    after: float
    z: float
    p: float  # the probability that noise shows as much anywhere in the series
    noise: float  # standard deviation of a point


class Points(NamedTuple):
    """The points in order, and the profiles of each."""

    names: list[str]
    profiles: list[list[Profile]]
    hosts: list[list[int]]  # by point: the host of each of its profiles
    n_hosts: int
    season: list[int]  # the weekday of each point; []: no season


class Series:
    """The values of rows in one column: 0 is self cost, 1 inclusive cost.

    `rows`: those that are tested.  `per`: as --per.  `like`: series of the same points, whose growth of the typical row
    is taken.
    """

    def __init__(
        self,
        sums: Sums,
        points: Points,
        rows: Sequence[int],
        column: int,
        *,
        per: str | None,
        like: Series | None = None,
    ) -> None:
        self.rows, self._n = rows, len(points.names)
        self._place = array("I", [lib.FP_TREND_NO_ROW]) * max(1, len(sums.rows.keys))
        for place, row in enumerate(rows):
            self._place[row] = place
        n = max(1, len(rows))
        self._values = ffi.new("double[]", n * self._n)
        self._series = ffi.new("struct fp_trend_series[]", n)
        self._weight = ffi.new("double[]", self._n)
        self._c = owned(ffi.new("struct fp_trend *"), lambda _: None, "series")
        c = self._c
        c.n_points, c.n_series = self._n, len(rows)
        c.values, c.weight, c.series = self._values, self._weight, self._series
        self._season = ffi.new("uint8_t[]", points.season or [0])
        if points.season:
            c.period, c.season = 7, self._season
        self.common = ffi.new("double[]", self._n)
        self._fill(sums, points, column, per=per)
        self._find(like, shares=per is None)

    def _fill(self, sums: Sums, points: Points, column: int, *, per: str | None, like: Series | None = None) -> None:
        n, hosts = max(1, len(self.rows)), points.n_hosts if 1 < points.n_hosts <= _MOST_HOSTS else 0
        replicas = ffi.new("struct fp_trend_replicas *")
        n_of, n_by = ffi.new("uint32_t[]", self._n), ffi.new("uint32_t[]", self._n * hosts or 1)
        by_host, squares = ffi.new("double[]", n * hosts or 1), ffi.new("double[]", n)
        self._spread = ffi.new("double[]", n)
        for point, (profiles, of) in enumerate(zip(points.profiles, points.hosts, strict=True)):
            n_of[point] = len(profiles)
            for profile, host in zip(profiles, of, strict=True):
                rows, *costs, calls = sums.kept(profile)
                unit = profile.unit
                places = array("I", map(self._place.__getitem__, rows))
                if hosts:
                    n_by[point * hosts + host] += 1
                scale = 1 / unit if unit else 0.0
                lib.fp_trend_add(
                    self._c,
                    point,
                    ffi.from_buffer("uint32_t[]", places),
                    ffi.from_buffer("int64_t[]", costs[column]),
                    ffi.from_buffer("int64_t[]", calls) if per == "calls" else ffi.NULL,
                    len(rows),
                    scale,
                    by_host,
                    hosts,
                    host if hosts else 0,
                    squares,
                )
                if profile.samples and profile.total and unit and per != "calls":
                    # a share of n samples has about variance share / n; of a cost per unit the same in its unit
                    self._weight[point] += profile.total / profile.samples / unit / len(profiles) ** 2
        replicas.n_hosts, replicas.n_of, replicas.n_by = hosts, n_of, n_by
        replicas.by_host, replicas.squares, replicas.spread = by_host, squares, self._spread
        lib.fp_trend_means(self._c, replicas)
        self._c.spread, self._c.spread_freedom = self._spread, replicas.freedom

    def _find(self, like: Series | None, *, shares: bool) -> None:
        if like:
            self.common = like.common
        elif shares:
            lib.fp_trend_common(self._c, self.common)
        else:
            self.common[0 : self._n] = [1.0] * self._n
        lib.fp_trend_divide(self._c, self.common)
        lib.fp_trend_noise(self._c)
        lib.fp_trend_test(self._c)

    def forget(self) -> None:
        """Free the values."""
        self._values = self._c.values = ffi.new("double[]", 1)
        self._c.n_series = 0

    def values(self, row: int) -> list[float]:
        place = self._place[row]
        return ffi.unpack(self._values + place * self._n, self._n)

    @property
    def noise(self) -> float:
        """The typical relative noise of a point that sampling does not explain."""
        return sqrt(self._c.extra)

    @property
    def is_sampled(self) -> bool:
        return float(self._c.mean_weight) > 0

    def changes(self, alpha: float) -> list[Change]:
        """The changes of all rows: `alpha` is the probability of any if all of it is noise, and a quarter of it the
        share of noise among many (Benjamini and Hochberg).

        The probability of an error is divided among rows by their cost: a row with 5 % of the cost gets about 5 % of
        it, so that many rows without much cost do not hide the others.
        """
        n = len(self.rows)
        if not n:
            return []
        levels = [max(0.0, self._series[i].level) for i in range(n)]
        total = sum(levels) or 1.0
        weights = [_BY_COST * n * level / total + (1 - _BY_COST) for level in levels]
        weighted = sorted(self._series[i].p / weights[i] for i in range(n))
        most = alpha / n
        for k, p in enumerate(weighted, 1):
            if p > alpha:
                break
            if p <= _AMONG_MANY * alpha * k / n:
                most = max(most, _AMONG_MANY * alpha * k / n)
        found: list[Change] = []
        buffer = ffi.new("struct fp_trend_change[]", _MOST_CHANGES)
        for i in range(n):
            if self._series[i].p <= most * weights[i]:
                found += self._changes_of(i, min(_MOST_P, most * weights[i]), buffer)
        return found

    def _changes_of(self, i: int, most: float, buffer: fp_trend_change) -> list[Change]:
        m = lib.fp_trend_changes(self._c, i, most, buffer, _MOST_CHANGES)
        if m < 0:
            raise MemoryError("no memory for the changes of a series")
        return [
            Change(self.rows[i], KINDS[c.kind], c.at, c.end, c.before, c.after, c.z, c.p, c.noise) for c in buffer[0:m]
        ]


_BY_COST = 0.9  # the part of the probability that is divided by cost; the rest by number
_AMONG_MANY = 0.25
_MOST_P = 0.02  # of the first change of a series
