"""The result of `trend`."""

from __future__ import annotations

from collections.abc import Sequence

from fastprof.core import lazy_re as re
from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.core.errors import UsageError
from fastprof.core.log import Log
from fastprof.core.messages import counted
from fastprof.verbs.trend.causes import Cause

if TYPE_CHECKING:
    from fastprof.verbs.trend.table import SeriesTable


_SEVERAL = {"category": "categories"}
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_COMMIT_SHOWN = 12  # characters of a hash in tables


class Row(NamedTuple):
    """A row whose cost changed together with that of a finding."""

    name: str
    file: str
    object: str
    before: float
    after: float


class Finding(NamedTuple):
    """A change.  Costs are shares of the total, at equal cost of the functions that did not change; with `per`, costs
    per unit.  A cost shift has the functions that the cost went to in `others`, other kinds callers of the function.
    """

    name: str
    file: str
    line: int
    object: str
    label: str
    cost: str  # "self" or "inclusive"
    kind: str  # "step", "drift", "spike", "went away" or "cost shift"
    change: float | None  # in percent; None: from 0
    before: float
    after: float
    since: str  # the first changed point
    since_index: int
    last_good: str  # the point before; "": none
    until: str  # of a spike, what went away and a drift: the last changed point; else ""
    p: float
    z: float  # in standard errors
    noise: float  # standard deviation of one point
    values: list[float | None]  # by point; None: its profiles are missing there
    others: tuple[Row, ...]
    causes: tuple[Cause, ...]  # what carries the change
    left: tuple[str, ...] = ()  # with `bisect`: points after the last good one, up to the first bad one
    inputs: tuple[str, ...] = ()  # names of a profile before the change and one after it, of one host if it has both

    @property
    def shown_name(self) -> str:
        name = self.name or self.file or self.object
        if self.line:
            name = f"{name} ({self.file}:{self.line})"
        label = f"{self.label} " if self.label and name else self.label
        return f"{label}{name}" or "[unknown]"

    @property
    def shown_kind(self) -> str:
        return f"{self.kind}, inclusive" if self.cost == "inclusive" else self.kind

    def compared(self, points: Sequence[Point]) -> tuple[int, int]:
        """The numbers of a point before the change and of one after it; of a drift, at its end."""
        numbers = {point.name: i for i, point in enumerate(points)}
        before = numbers.get(self.last_good, max(0, self.since_index - 1))
        return before, numbers.get(self.until, self.since_index) if self.kind == "drift" else self.since_index

    @property
    def is_worse(self) -> bool:
        return self.kind != "cost shift" and self.after > self.before


class Point(NamedTuple):
    """A point, its profiles, and the sum of their costs and samples."""

    name: str
    profiles: int
    total: int
    samples: int | None  # None: unknown
    input: str  # the name of its first profile


class Line(NamedTuple):
    """The cost of a row at each point, as in findings: `values` are self costs.  None: missing."""

    name: str
    file: str
    line: int
    object: str
    label: str
    values: list[float | None]
    inclusive: list[float | None] | None  # None: unknown


class Failure(NamedTuple):
    """A finding that exceeds `fail_over`."""

    name: str
    limit: float
    change: float | None
    since: str


class Trend(NamedTuple):
    """The result of `trend`.  Of `n_found` findings `findings` has the first, the largest change first."""

    over: str
    by: str
    value: str
    unit: str
    per: str | None
    points: list[Point]
    n_rows: int
    n_tested: int
    findings: list[Finding]
    n_found: int
    noise: float  # of the typical row: relative standard deviation of a point that sampling does not explain
    sampled: bool  # whether the noise of sampling is known
    failed: tuple[Failure, ...]
    inputs: int
    rows: list[Line]  # with `rows`: the first, the highest cost first
    log: Log

    @property
    def title(self) -> str:
        """What was compared, in a line."""
        n = len(self.points)
        over = "" if self.over == "order" else f" over {self.over.removeprefix('label:')}"
        first, last = (self.short(self.points[i].name) for i in (0, -1)) if n > 1 else ("", "")
        span = f", {first} to {last}" if n > 1 else ""
        rows = "row" if ":" in self.by else self.by
        found = f"{counted(self.n_found, 'finding')} in {counted(self.n_rows, rows, _SEVERAL.get(rows, ''))}"
        profiles = sum(point.profiles for point in self.points)
        return f"{counted(profiles, 'profile')} at {counted(n, 'point')}{over}{span}: {found}"

    def short(self, point: str) -> str:
        """The name of a point for a table: of an input without the folders that all have, of a commit the beginning."""
        names = [one.name for one in self.points]
        if self.over == "order":
            first, last = min(names), max(names)
            same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
            return point[first.rfind("/", 0, same) + 1 :]
        if all(map(_COMMIT.fullmatch, names)) and len({name[:_COMMIT_SHOWN] for name in names}) == len(names):
            return point[:_COMMIT_SHOWN]
        return point

    def table(self, name: str = "series") -> SeriesTable:
        """The table `series` (docs/trend.md) as an Arrow stream: of `rows`, a row for each point."""
        from fastprof.verbs.trend.table import SeriesTable

        if name != "series":
            raise UsageError(f"a trend has no table {name!r:.80}, only series")
        about = {"over": self.over, "by": self.by, "value": self.value, "unit": self.unit, "per": self.per or ""}
        return SeriesTable(about, self.points, self.rows)

    def __str__(self) -> str:
        """The table of `fastprof trend`."""
        from fastprof.core.printed import printed

        return printed("cli.trend:text", self)

    def _repr_html_(self) -> str:
        from fastprof.core.html import frame, notes
        from fastprof.verbs.trend.page import page

        return frame(page(self)) + notes(self.log)
