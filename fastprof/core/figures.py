"""Figures for people: three digits and a unit, one unit for a column.  Text, pages and notebooks have the same rule.

cost = Scale.of(largest=5_184_323_000, unit="nanoseconds")
cost.title("self"), cost(2_125_572_000), cost(1_500_000)

self s  2.13  1.50 ms
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastprof.core._typing import NamedTuple
from fastprof.core.units import SIZES, TIMES

_TWO_DIGITS = 10  # a figure without its decimal point

# Units by their names in value types: the factor to the smallest unit, and the names of the larger units, each with
# the figure from which the next one is used.  Counts are exact up to 999,999,999.
_TIME = (("ns", 1, 10**3), ("us", 10**3, 999_500), ("ms", 10**6, 999_500_000), ("s", 10**9, 10**99))
_BYTES = (("B", 1, 1 << 10), ("KiB", 1 << 10, 1 << 20), ("MiB", 1 << 20, 1 << 30), ("GiB", 1 << 30, 10**99))
_COUNT = (("", 1, 10**9), ("G", 10**9, 999_500 * 10**6), ("T", 10**12, 10**99))
_COUNT_ALONE = (("", 1, 10**4), ("k", 10**3, 999_500), ("M", 10**6, 999_500 * 10**3), *_COUNT[1:])
UNITS = {unit: (factor, _TIME) for unit, factor in TIMES.items()}
UNITS |= {unit: (factor, _BYTES) for unit, factor in SIZES.items()}


class Scale(NamedTuple):
    """The format of the figures of a column: all in one unit, so that they can be compared at a glance.

    A figure of which that unit would show less than two digits has its own, as in "150 ns" below "ms"; if most of them
    would be 0.00, each figure has its own.  fastprof/verbs/page/text.js has the same rule.
    """

    unit: str  # "ms", "KiB", "G"; "" for plain counts, or if each figure has its own unit
    factor: int  # the value type's unit, in the smallest unit
    divisor: int
    places: int = 0  # decimals: the largest figure has three digits
    name: str = ""  # the value type's unit
    each: bool = False  # each figure has its own unit

    @staticmethod
    def of(largest: int, unit: str = "", figures: Iterable[int] = (), *, lost: float = 0.5) -> Scale:
        """The scale of a column whose largest figure is `largest`.  `unit` is a value type's.  `lost`: the share of
        `figures` that may be 0.00.

        Scale.of(999, "nanoseconds")(999)               "999"    ns
        Scale.of(41_000_000, "nanoseconds")(1_234_567)  "1.2"    ms
        Scale.of(5_000_000_000)(5_000_000_000)          "5.00"   G
        """
        factor, scales = UNITS.get(unit.lower(), (1, _COUNT))
        scale = _scaled(largest, factor, scales)._replace(name=unit)
        counted = [abs(figure) * factor for figure in figures if figure]
        n = sum(2 * size * 10**scale.places < scale.divisor for size in counted)
        return Scale("", factor, 0, name=unit, each=True) if n > lost * len(counted) else scale

    def __call__(self, value: int) -> str:
        if self.each:
            return self._alone(value) if value else "0"
        if self.divisor == 1:
            return f"{value * self.factor:,}"
        parts = (abs(value) * self.factor * 2 * 10**self.places + self.divisor) // (2 * self.divisor)  # rounded
        if value and parts < _TWO_DIGITS and (alone := self._alone(value)):
            return alone
        whole, rest = divmod(parts, 10**self.places)
        return f"{'-' * (value < 0 < parts)}{whole:,}" + (f".{rest:0{self.places}d}" if self.places else "")

    def _alone(self, value: int) -> str:
        """A figure in its own unit, which is left out if it is that of the column; "" for a plain count in a column of
        larger ones, where it would look like one of them."""
        factor, scales = UNITS.get(self.name.lower(), (1, _COUNT_ALONE))
        scale = _scaled(value, factor, scales)
        if self.unit and not scale.unit:
            return ""
        return f"{scale(value)} {scale.unit if scale.unit != self.unit else ''}".rstrip()

    def title(self, name: str) -> str:
        """The heading of the column: "self ms"; just "ms" for a value type named like a unit."""
        return f"{'' if name in UNITS else name} {self.unit}".strip()


def _scaled(largest: int, factor: int, scales: Iterable[tuple[str, int, int]]) -> Scale:
    size = abs(largest) * factor
    name, divisor = next((name, divisor) for name, divisor, below in scales if size < below)
    places = 0 if divisor == 1 or size * 100 >= 9995 * divisor else 1 if size * 1000 >= 9995 * divisor else 2
    return Scale(name, factor, divisor, places)


def quantity(value: int, unit: str = "") -> str:
    """One figure with its unit: "1.74 s", "512 KiB", "2,344"."""
    if unit.lower() not in UNITS:
        return f"{value:,}" if unit in ("", "count") else f"{value:,} {unit}"
    scale = Scale.of(value, unit)
    return f"{scale(value)} {scale.unit}" if value else "0"


def of_value(costs: Sequence[int], name: str, unit: str) -> str:
    """Costs of a value type: "1.74 s of cpu", "14 Ir", "127 MiB → 131 MiB of alloc_space"."""
    if unit.lower() in UNITS and unit != name:
        return f"{' → '.join(quantity(cost, unit) for cost in costs)} of {name}"
    return f"{' → '.join(f'{cost:,}' for cost in costs)} {name}{'' if unit in ('', 'count', name) else f' {unit}'}"
