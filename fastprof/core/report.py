"""The report: what happened in a conversion, for a person, for JSON and for the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from fastprof.core._typing import Any
from fastprof.core.options import Option, Options
from fastprof.core.words import counted, worded


def percent(share: float) -> str:
    """A share that is more than 0, for a sentence."""
    return f"{100 * share:.1f} %" if share >= 0.0005 else "less than 0.1 %"


class Counts(Mapping[str, int]):
    """How often each thing happened, by the text that a person sees; what did not happen is 0.

    Each text has a code.  Codes stay the same when texts are reworded, so scripts may rely on them.  Texts speak of
    options as whoever looks at them does (core/words.py): `--samples reads them`, or `samples=True reads them`.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()  # of code and text, written with flags

    def add(self, code: str, text: str, n: int = 1) -> None:
        """Count `n` more.  0 makes no entry."""
        if n:
            self._counts[code, text] += int(n)

    def drop(self, code: str) -> None:
        """Forget what has this code."""
        self._counts = Counter({key: n for key, n in self._counts.items() if key[0] != code})

    def as_counted(self) -> Iterator[tuple[str, str, int]]:
        """Code, text and count of each, for an error, which finds its words when it is told."""
        yield from ((code, text, n) for (code, text), n in self._counts.items())

    def _told(self) -> dict[str, int]:
        return {worded(text): n for _, text, n in self.as_counted()}

    def __getitem__(self, text: str) -> int:
        return self._told().get(text, 0)

    def __contains__(self, text: object) -> bool:
        return text in self._told()

    def __iter__(self) -> Iterator[str]:
        return iter(self._told())

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"Counts({self._told()})"

    def total(self) -> int:
        return self._counts.total()

    def take(self, other: Counts) -> None:
        """Add another report's counts."""
        self._counts.update(other._counts)

    def said(self) -> list[str]:
        """For a person: `2 orphan exits`, by text."""
        return [counted(n, text) for text, n in sorted(self.items())]

    def entries(self) -> list[dict[str, Any]]:
        """For JSON: code, text and count of each, by text."""
        entries = [{"code": code, "text": worded(text), "count": n} for code, text, n in self.as_counted()]
        return sorted(entries, key=lambda entry: str(entry["text"]))


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
        self._warnings: dict[str, None] = {}  # each once, in order, written with flags
        self.facts: dict[str, Any] = {}
        self.zeros = ""  # a warning that what is shown is 0 everywhere, for the error that nothing could be written

    def __repr__(self) -> str:
        shown = {name.lstrip("_"): getattr(self, name.lstrip("_")) for name in vars(self)}
        return f"Report({', '.join(f'{name}={value!r}' for name, value in shown.items() if value)})"

    def warn(self, message: str) -> None:
        self._warnings[message] = None

    @property
    def warnings(self) -> list[str]:
        return [worded(message) for message in self._warnings]

    def take(self, other: Report) -> None:
        """Add what another report counts, and its warnings."""
        self.rows.update(other.rows)
        for name in ("repairs", "losses", "left_out", "not_representable"):
            getattr(self, name).take(getattr(other, name))
        self._warnings.update(other._warnings)

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
