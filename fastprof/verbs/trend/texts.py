"""Figures and names of a trend as texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastprof.core._typing import TYPE_CHECKING
from fastprof.verbs.trend.series import mean_of

if TYPE_CHECKING:
    from fastprof.verbs.trend.result import Finding, Trend

_BARS = "▁▂▃▄▅▆▇█"
_WIDE = 24  # characters of a sparkline


def figure_of(found: Trend) -> Callable[[float], str]:
    """How values are written: shares in percent, costs per unit as numbers."""
    if found.per is not None:
        return lambda value: f"{value:,.4g}"

    def share(value: float) -> str:
        percent = 100 * value
        return "0" if not value else f"{percent:.1f} %" if percent >= 1 else f"{percent:.2g} %"

    return share


def with_(one: Finding, shown: Callable[[str], str] = str) -> str:
    """Where the cost went, or the callers whose cost changed with it.  `shown`: a name as text."""
    if not one.others:
        return ""
    is_shift = one.kind == "cost shift"
    names = first_of([shown(other.name) for other in one.others], 1 + is_shift)
    return f"{'to' if is_shift else 'callers'} {names}"


def first_of(names: Sequence[str], n: int) -> str:
    more = f" and {len(names) - n:,} more" if len(names) > n else ""
    return ", ".join(names[:n]) + more


def fitted(path: str, most: int) -> str:
    """A call path, without its middle if it has more than `most` characters."""
    names = path.split(" > ")
    for n in range(len(names) - 2, 0, -1):
        if len(path) <= most:
            break
        path = " > ".join([names[0], "...", *names[-n:]])
    return path


def sparkline(values: Sequence[float | None]) -> str:
    """A character for each point, or for the mean of several; a blank where all are missing."""
    n = min(_WIDE, len(values))
    means = [mean_of(values[i * len(values) // n : (i + 1) * len(values) // n]) for i in range(n)]
    known = [mean for mean in means if mean is not None] or [0.0]
    low, high = min(known), max(known)
    low = min(low, 0.8 * high)  # small changes are not drawn like large ones
    span = (high - low) or 1
    return "".join(" " if mean is None else _BARS[min(7, int(8 * (mean - low) / span))] for mean in means)


def percent(change: float | None) -> str:
    if change is None:
        return "new"
    if change <= -100:
        return "gone"
    digits = 0 if abs(change) >= 9.95 else 1 if abs(change) >= 0.095 else 2
    return f"{change:+.{digits}f} %"


def sure(p: float) -> str:
    """The probability of noise."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
