"""The columns of figures before the names: shares and costs, of two profiles their difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastprof.cli.browser.lines import LESS, MORE, Part, padded
from fastprof.cli.text import percent
from fastprof.core.figures import Scale
from fastprof.verbs.browse import Event, change_of

_WIDTH = 12
_BAR = " ▏▎▍▌▋▊▉█"
_BAR_WIDTH = 8


def bar(share: float) -> str:
    """A bar of _BAR_WIDTH cells for a share from 0 to 1."""
    eighths = round(min(1.0, max(0.0, abs(share))) * _BAR_WIDTH * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_BAR[rest] if rest else "")).ljust(_BAR_WIDTH)


class Figures:
    """Writes costs of an event.  `titles`: of its cost columns, as "self" and "incl."."""

    def __init__(self, event: Event, total: Sequence[int], titles: Sequence[str]) -> None:
        self._event, self._titles, self._total = event, titles, total
        self.compared = len(event.columns) > 1
        self._base = max(map(abs, total), default=0)
        self._scales = [Scale.of(0, event.unit or event.name)] * len(titles)

    def fit(self, columns: Iterable[Iterable[int]]) -> None:
        """Choose units that fit the costs of each cost column."""
        unit = self._event.unit or self._event.name
        self._scales = []
        for column in columns:
            costs = [*column]
            self._scales.append(Scale.of(max(map(abs, costs), default=0), unit, costs))

    def head(self) -> str:
        words = []
        for scale, title in zip(self._scales, self._titles, strict=True):
            more = [f"Δ {title}", f"new {title}"] if self.compared else [title]
            words += [f"{word} {scale.unit}".strip() for word in more]
        shares = ["Δ %" if self.compared else f"{self._titles[0]} %"]
        return " ".join([*(padded(word, 7) for word in shares), " " * _BAR_WIDTH, *(padded(w, _WIDTH) for w in words)])

    def share(self, costs: Sequence[int]) -> float:
        """Of the total; of two profiles the change as a share of the larger total."""
        return change_of(costs) / self._base if self._base else 0.0

    def parts(self, *costs: Sequence[int]) -> list[Part]:
        """The figures of a line; the share is that of the first."""
        share = self.share(costs[0])
        style = (MORE if share > 0 else LESS if share < 0 else "") if self.compared else ""
        sign = "+" if self.compared and share > 0 else ""
        found = [(padded(sign + percent(share), 7) + " ", style), (bar(share) + " ", style or "cyan")]
        for scale, of in zip(self._scales, costs, strict=True):
            if self.compared:
                change = change_of(of)
                found.append((padded("+" * (change > 0) + scale(change), _WIDTH) + " ", style))
            found.append((padded(scale(of[-1]), _WIDTH) + " ", ""))
        return found

    @property
    def width(self) -> int:
        return 8 + _BAR_WIDTH + 1 + (_WIDTH + 1) * len(self._titles) * (1 + self.compared)
