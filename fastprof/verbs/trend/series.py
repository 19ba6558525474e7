"""The values of each row at each point, and their changes (csrc/ends/trend.h).

           1       2       3       4
f        0.10    0.10    0.12    0.12     shares of each point's total, the mean of its profiles
g        0.90    0.90    0.88    0.88
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Iterable, Iterator, Sequence
from math import isnan, sqrt

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple, fp_trend_change, fp_trend_profiles
from fastprof.core.c_memory import enough
from fastprof.core.errors import FastprofError
from fastprof.verbs.trend.sums import Profile, Sums

KINDS = ("step", "drift", "spike", "went away")
_MOST_CHANGES = 64
_MOST_HOSTS = 256  # that are compared with themselves
_MOST_CELLS = 1 << 25  # rows times hosts, 8 bytes each
_TOGETHER = 256  # profiles that are added at once
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


class Replicas:
    """The profiles of all points, in their order, as C reads them.  `n_rows`: as many series there are."""

    def __init__(self, points: Points, n_rows: int, *, per: str | None) -> None:
        most = _MOST_HOSTS if not points.is_own else _MOST_CELLS // max(1, n_rows)
        self.n_hosts = points.n_hosts if 1 < points.n_hosts <= most else 0
        self.is_own = points.is_own
        n, all_ = len(points.names), [one for profiles in points.profiles for one in profiles]
        usual = _usual(all_)
        self.at = array("Q", [one.at for one in all_])
        self._size = array("I", [one.size for one in all_])
        self._host = array("I", [host for of in points.hosts for host in of])
        self._point = array("I", [point for point in range(n) for _ in points.profiles[point]])
        self._scale = array("d", [1 / one.unit if one.unit else 0.0 for one in all_])
        self._weight = array(
            "d", [min(1.0, _FULL * one.samples / usual) if one.samples and usual else 1.0 for one in all_]
        )
        # sums of weights by point, and by host; and the variance of a point, times its level
        n_hosts, n_of, n_by, variances = self.n_hosts, [0.0] * n, [0.0] * (n * self.n_hosts or 1), [0.0] * n
        for one, point, host, weight in zip(all_, self._point, self._host, self._weight, strict=True):
            n_of[point] += weight
            if n_hosts:
                n_by[point * n_hosts + host] += weight
            if one.samples and one.total and one.unit and per != "calls":
                # a share of n samples has about variance share / n; of a cost per unit the same in its unit
                variances[point] += weight**2 * one.total / one.samples / one.unit
        self.n_of, self.n_by, self.variances = n_of, n_by, variances
        for point, of in enumerate(n_of):
            variances[point] /= of * (1 if points.is_own else of)  # else it is the variance of their mean

    def parts(self, data: bytes | mmap.mmap) -> Iterator[fp_trend_profiles]:
        """Some profiles after the other.  `data`: the costs of all."""
        made = ffi.new("struct fp_trend_profiles *")
        borrowed = ffi.from_buffer("uint8_t[]", data)
        made.data, made.length = borrowed, len(data)
        columns: dict[str, tuple[str, array[Any]]] = {
            "at": ("uint64_t[]", self.at),
            "size": ("uint32_t[]", self._size),
            "point": ("uint32_t[]", self._point),
            "host": ("uint32_t[]", self._host),
            "scale": ("double[]", self._scale),
            "weight": ("double[]", self._weight),
        }
        items = {name: ffi.from_buffer(kind, column) for name, (kind, column) in columns.items()}
        for first in range(0, len(self.at), _TOGETHER):
            for name, pointer in items.items():
                setattr(made, name, pointer + first)
            made.n = min(_TOGETHER, len(self.at) - first)
            yield made
            if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                data.madvise(mmap.MADV_DONTNEED)  # memory does not grow with profiles


class Series:
    """The values of rows in one column: 0 is self cost, 1 inclusive cost.

    `rows`: those that are tested.  `per`: as --per.  `like`: series of the same points and rows, whose growth of the
    typical row and replicas are taken.
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
        is_tested: bool = True,
    ) -> None:
        self.rows, self._n = rows, len(points.names)
        self._place = array("I", [lib.FP_TREND_NO_ROW]) * max(1, len(sums.rows.keys))
        for place, row in enumerate(rows):
            self._place[row] = place
        n = max(1, len(rows))
        self._values = ffi.new("double[]", n * self._n)
        self._series = ffi.new("struct fp_trend_series[]", n)
        self.replicas: Replicas = like.replicas if like else Replicas(points, len(rows), per=per)
        self._weight = ffi.new("double[]", self.replicas.variances)
        self._c = c = ffi.new("struct fp_trend *")
        c.n_points, c.n_series = self._n, len(rows)
        c.values, c.weight, c.series = self._values, self._weight, self._series
        self._season = ffi.new("uint8_t[]", points.season or [0])
        if points.season:
            c.period, c.season = 7, self._season
        self.common = ffi.new("double[]", self._n)
        self._fill(sums, column, per=per)
        self._divide(like, shares=per is None)
        enough(lib.fp_trend_noise(self._c))  # takes seasons out of the values
        if is_tested:
            enough(lib.fp_trend_test(self._c))

    def _fill(self, sums: Sums, column: int, *, per: str | None) -> None:
        n, of = max(1, len(self.rows)), self.replicas
        by_host, squares = ffi.new("double[]", n * of.n_hosts or 1), ffi.new("double[]", n)
        self._spread = ffi.new("double[]", n)
        sides = ffi.new("struct fp_trend_sides *")
        sides.places, sides.n_rows = ffi.from_buffer("uint32_t[]", self._place), len(self._place)
        sides.n_hosts, sides.by_host, sides.squares = of.n_hosts, by_host, squares
        for part in of.parts(sums.kept()):
            part.column, part.per_calls = column, per == "calls"
            if lib.fp_trend_add(self._c, part, sides) != lib.FP_DONE:
                raise FastprofError("temporary file: the sums of profiles were changed")
        replicas = ffi.new("struct fp_trend_replicas *")
        n_of, n_by = ffi.new("double[]", of.n_of), ffi.new("double[]", of.n_by)
        replicas.n_hosts, replicas.n_of, replicas.n_by, replicas.is_own = of.n_hosts, n_of, n_by, of.is_own
        replicas.n_profiles = len(of.at)
        replicas.by_host, replicas.squares, replicas.spread = by_host, squares, self._spread
        enough(lib.fp_trend_means(self._c, replicas))
        self._c.spread, self._c.spread_freedom = self._spread, replicas.freedom

    def _divide(self, like: Series | None, *, shares: bool) -> None:
        if like:
            self.common = like.common
        elif shares:
            enough(lib.fp_trend_common(self._c, ffi.NULL, self.common))
        else:
            self.common[0 : self._n] = [1.0] * self._n
        self._set_share(shares=shares)
        lib.fp_trend_divide(self._c, self.common)

    def _set_share(self, *, shares: bool) -> None:
        is_divided = any(factor != 1.0 for factor in self.common[0 : self._n])
        self._c.is_share = (lib.FP_TREND_DIVIDED if is_divided else lib.FP_TREND_SHARES) if shares else 0

    def refine(self, rows: Iterable[int]) -> bool:
        """Test again, with the growth of the typical row as it is without `rows`, which changed.  False: these have so
        little of the cost that nothing was done."""
        places = {self._place[row] for row in rows}
        levels = [max(0.0, self._series[i].level) for i in range(len(self.rows))]
        if sum(levels[i] for i in places) < _LARGE * sum(levels):
            return False
        without, more = ffi.new("uint8_t[]", len(self.rows)), ffi.new("double[]", self._n)
        for i in places:
            without[i] = 1
        enough(lib.fp_trend_common(self._c, without, more))
        lib.fp_trend_divide(self._c, more)
        for i in range(self._n):
            self.common[i] *= more[i]
        self._set_share(shares=True)
        enough(lib.fp_trend_noise(self._c))
        enough(lib.fp_trend_test(self._c))
        return True

    def forget(self) -> None:
        """Free the values."""
        self._values = self._c.values = ffi.new("double[]", 1)
        self._c.n_series = 0

    def values(self, row: int) -> list[float | None]:
        """The values of a row, by point; None: missing."""
        place = self._place[row]
        return [None if isnan(x) else x for x in ffi.unpack(self._values + place * self._n, self._n)]

    @property
    def noise(self) -> float:
        """The typical relative noise of a point that sampling does not explain."""
        return sqrt(self._c.extra)

    @property
    def is_share(self) -> bool:
        """Whether values are shares of each point as they are: the typical row did not change."""
        return bool(self._c.is_share == lib.FP_TREND_SHARES)

    @property
    def is_sampled(self) -> bool:
        return float(self._c.mean_weight) > 0

    def changes(self, alpha: float, *, are_apart: bool = True) -> list[Change]:
        """The changes of all rows: `alpha` is the probability of any if all of it is noise; if changes `are_apart`, not
        of one cause, a quarter of it is the share of noise among many (Benjamini and Hochberg).

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
            if p > alpha or not are_apart:
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
        m = enough(lib.fp_trend_changes(self._c, i, most, buffer, _MOST_CHANGES))
        return [
            Change(self.rows[i], KINDS[c.kind], c.at, c.end, c.before, c.after, c.z, c.p, c.noise) for c in buffer[0:m]
        ]


def mean_of(values: Iterable[float | None]) -> float | None:
    """Of those that are not missing; None: all are."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _usual(profiles: Iterable[Profile]) -> float:
    """The median number of samples; 0: unknown."""
    found = sorted(one.samples for one in profiles)
    return found[len(found) // 2] if found else 0.0


_LARGE = 0.05  # share of the cost of rows that changed from which the typical row is sought without them
_BY_COST = 0.9  # the part of the probability that is divided by cost; the rest by number
_AMONG_MANY = 0.25
_MOST_P = 0.02  # of the first change of a series
