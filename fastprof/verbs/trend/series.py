"""The values of each row at each point, and their changes (csrc/ends/trend.h).

           1       2       3       4
f        0.10    0.10    0.12    0.12     shares of each point's total, the mean of its profiles
g        0.90    0.90    0.88    0.88
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from math import isnan, sqrt

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.core.c_memory import owned
from fastprof.core.errors import FastprofError
from fastprof.verbs.trend.sums import Profile, Sums

if TYPE_CHECKING:
    from fastprof.core._c import fp_trend_change

KINDS = ("step", "drift", "spike", "went away")
_MOST_CHANGES = 64
_MOST_HOSTS = 256  # that are compared with themselves
_MOST_CELLS = 1 << 25  # rows times hosts, 8 bytes each
_FULL = 2  # replicas with at least 1/2 of the usual number of samples have full weight, others in proportion


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
    is_own: bool = False  # rows are of hosts: others say nothing of them


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

    def _fill(self, sums: Sums, points: Points, column: int, *, per: str | None) -> None:
        most = _MOST_HOSTS if not points.is_own else _MOST_CELLS // max(1, len(self.rows))
        n, hosts = max(1, len(self.rows)), points.n_hosts if 1 < points.n_hosts <= most else 0
        replicas = ffi.new("struct fp_trend_replicas *")
        n_of, n_by = ffi.new("double[]", self._n), ffi.new("double[]", self._n * hosts or 1)
        by_host, squares = ffi.new("double[]", n * hosts or 1), ffi.new("double[]", n)
        self._spread = ffi.new("double[]", n)
        costs = ffi.new("struct fp_trend_costs *")
        costs.column, costs.per_calls = column, per == "calls"
        places, usual = ffi.from_buffer("uint32_t[]", self._place), _usual(points)
        for costs.point, (profiles, of) in enumerate(zip(points.profiles, points.hosts, strict=True)):
            variance = 0.0
            for profile, host in zip(profiles, of, strict=True):
                data = sums.kept(profile)
                unit, samples = profile.unit, profile.samples
                costs.weight = min(1.0, _FULL * samples / usual) if samples and usual else 1.0
                costs.data, costs.length = ffi.from_buffer("uint8_t[]", data), len(data)  # borrowed from `data`
                costs.host, costs.scale = host if hosts else 0, 1 / unit if unit else 0.0
                if lib.fp_trend_add(self._c, costs, places, len(places), by_host, hosts, squares) != lib.FP_DONE:
                    raise FastprofError("the temporary file of sums was changed")
                n_of[costs.point] += costs.weight
                if hosts:
                    n_by[costs.point * hosts + host] += costs.weight
                if samples and profile.total and unit and per != "calls":
                    # a share of n samples has about variance share / n; of a cost per unit the same in its unit
                    variance += costs.weight**2 * profile.total / samples / unit
            mine = 1 if points.is_own else n_of[costs.point]  # else it is the variance of their mean
            self._weight[costs.point] = variance / n_of[costs.point] / mine
        replicas.n_hosts, replicas.n_of, replicas.n_by, replicas.is_own = hosts, n_of, n_by, points.is_own
        replicas.n_profiles = sum(map(len, points.profiles))
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

    def values(self, row: int) -> list[float | None]:
        """By point; None: missing."""
        place = self._place[row]
        return [None if isnan(x) else x for x in ffi.unpack(self._values + place * self._n, self._n)]

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


def mean_of(values: Iterable[float | None]) -> float | None:
    """Of those that are not missing; None: all are."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _usual(points: Points) -> float:
    """The median number of samples; 0: unknown."""
    found = sorted(one.samples for profiles in points.profiles for one in profiles)
    return found[len(found) // 2] if found else 0.0


_BY_COST = 0.9  # the part of the probability that is divided by cost; the rest by number
_AMONG_MANY = 0.25
_MOST_P = 0.02  # of the first change of a series
