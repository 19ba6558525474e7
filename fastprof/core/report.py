"""The report: what happened in a conversion, for a person, for JSON and for the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fastprof.core._typing import Any
from fastprof.core.options import Option, Options
from fastprof.core.words import counted, worded


def percent(share: float) -> str:
    """A share that is more than 0, for a sentence."""
    return f"{100 * share:.1f} %" if share >= 0.0005 else "less than 0.1 %"


class Counts(Counter[str]):
    """How often each thing happened, by the text that a person sees.

    `codes` has a code for each text.  Codes stay the same when texts are reworded, so scripts may rely on them.
    """

    def __init__(self, counts: Mapping[str, int] | None = None, codes: Mapping[str, str] | None = None) -> None:
        super().__init__(counts or {})
        self.codes: dict[str, str] = dict(codes or {})

    def __reduce__(self) -> tuple[type[Counts], tuple[dict[str, int], dict[str, str]]]:
        return Counts, (dict(self), self.codes)  # for pickle

    def add(self, code: str, text: str, n: int = 1) -> None:
        """Count `n` more.  0 makes no entry."""
        if n:
            text = worded(text)
            self[text] += int(n)
            self.codes[text] = code

    def take(self, other: Counts) -> None:
        """Add another report's counts."""
        for text, n in other.items():
            self.add(other.codes[text], text, n)

    def said(self) -> list[str]:
        """For a person: `2 orphan exits`, by text."""
        return [counted(n, text) for text, n in sorted(self.items())]

    def entries(self) -> list[dict[str, Any]]:
        """For JSON: code, text and count of each, by text."""
        return [{"code": self.codes[text], "text": text, "count": n} for text, n in sorted(self.items())]


class Report:
    """What happened in a conversion, counted.

    `rows` counts what was written; `repairs` are oddities of real writers that were put right; `losses` are damaged
    pieces of the input that were left out (only with --lenient; exit code 3); `left_out` is what the user did not ask
    for (filters); `not_representable` is what the target has no room for; `facts` is what `info` prints.
    """

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.repairs = Counts()
        self.losses = Counts()
        self.left_out = Counts()
        self.not_representable = Counts()
        self._warnings: dict[str, None] = {}  # each once, in order
        self.facts: dict[str, Any] = {}

    def __repr__(self) -> str:
        shown = {name.lstrip("_"): getattr(self, name.lstrip("_")) for name in vars(self)}
        return f"Report({', '.join(f'{name}={value!r}' for name, value in shown.items() if value)})"

    def warn(self, message: str) -> None:
        self._warnings[worded(message)] = None

    @property
    def warnings(self) -> list[str]:
        return list(self._warnings)

    def take(self, other: Report) -> None:
        """Add what another report counts, and its warnings."""
        self.rows.update(other.rows)
        for name in ("repairs", "losses", "left_out", "not_representable"):
            getattr(self, name).take(getattr(other, name))
        for message in other.warnings:
            self.warn(message)

    def take_all(self, other: Report) -> None:
        """The same, and its facts."""
        self.take(other)
        self.facts |= other.facts

    def leave_out(self, rows: int, filters: Iterable[Option[Any]], options: Options) -> None:
        """Count rows that one of `filters` leaves out, of those that are in `options`."""
        flags = ", ".join(option.flag for option in filters if option in options)
        self.left_out.add("filtered-rows", f"rows by {flags}", rows)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rows": dict(self.rows),
            "repairs": self.repairs.entries(),
            "losses": self.losses.entries(),
            "left_out": self.left_out.entries(),
            "not_representable": self.not_representable.entries(),
            "warnings": self.warnings,
            "facts": self.facts,
        }
