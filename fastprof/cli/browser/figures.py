"""The columns of figures before the names: shares and costs, of two profiles their difference."""

from collections.abc import Iterable, Sequence

from fastprof.cli.browser.lines import LESS, MORE, Part, padded
from fastprof.cli.text import percent
from fastprof.core.figures import Scale
from fastprof.verbs.browse import Event, change_of

_LEAST = 9  # columns of a figure
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
        self._widths = [[_LEAST] * (1 + self.compared) for _ in titles]
        self.has_bars = True

    def fit(self, columns: Iterable[Iterable[int]]) -> None:
        """Choose units that fit the costs of each cost column."""
        unit = self._event.unit or self._event.name
        self._scales = []
        for column in columns:
            costs = [*column]
            largest = max(map(abs, costs), default=0)
            self._scales.append(Scale.of(largest, unit, costs))
            least = max(_LEAST, len(self._scales[-1](largest)) + self.compared)
            words = self._words(len(self._scales) - 1)
            self._widths[len(self._scales) - 1] = [max(least, len(word)) for word in words]

    def _words(self, column: int) -> list[str]:
        title, unit = self._titles[column], self._scales[column].unit
        return [f"{word} {unit}".strip() for word in ([f"Δ {title}", f"new {title}"] if self.compared else [title])]

    def head(self) -> str:
        found = [padded("Δ %" if self.compared else f"{self._titles[0]} %", 7), *([" " * _BAR_WIDTH] * self.has_bars)]
        for column, widths in enumerate(self._widths):
            found += map(padded, self._words(column), widths)
        return " ".join(found)

    def share(self, costs: Sequence[int]) -> float:
        """Of the total; of two profiles the change as a share of the larger total."""
        return change_of(costs) / self._base if self._base else 0.0

    def parts(self, *costs: Sequence[int]) -> list[Part]:
        """The figures of a line; the share is that of the first."""
        share = self.share(costs[0])
        style = (MORE if share > 0 else LESS if share < 0 else "") if self.compared else ""
        sign = "+" if self.compared and share > 0 else ""
        found = [(padded(sign + percent(share), 7) + " ", style)]
        found += [(bar(share) + " ", style or "cyan")] * self.has_bars
        for scale, of, widths in zip(self._scales, costs, self._widths, strict=True):
            if self.compared:
                change = change_of(of)
                found.append((padded("+" * (change > 0) + scale(change), widths[0]) + " ", style))
            found.append((padded(scale(of[-1]), widths[-1]) + " ", ""))
        return found

    @property
    def width(self) -> int:
        return 8 + (_BAR_WIDTH + 1) * self.has_bars + sum(width + 1 for widths in self._widths for width in widths)
