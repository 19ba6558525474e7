"""The log: counts and warnings of a conversion, for people, JSON and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from fastprof.core._typing import Any, CData
from fastprof.core.messages import Message, joined, packed, spelled, unpacked
from fastprof.core.options import Option, Options
from fastprof.core.reported import REPORTED, Entry, counts_of


def percent(share: float) -> str:
    """A share above 0, for a sentence."""
    return f"{100 * share:.1f} %" if share >= 0.0005 else "less than 0.1 %"


_COUNTS = ("repairs", "losses", "left_out", "not_representable")

Warn = Callable[..., None]  # Log.warn
Values = tuple[tuple[str, Any], ...]  # values of a text's fields, by name


class Counts(Mapping[str, int]):
    """Counts by code; missing codes are 0.

    `lines` and `entries` add the texts of codes, with options spelled as in Python (`samples=True reads them`) or as
    flags.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[Entry, Values], int] = {}

    def add(self, entry: Entry, n: int = 1, **values: Any) -> None:
        """Count `n` more.  0 adds no entry."""
        if n:
            key = entry, tuple(values.items())
            self._counts[key] = self._counts.get(key, 0) + int(n)

    def drop(self, *codes: str) -> None:
        """Remove the entries with these codes."""
        self._counts = {key: n for key, n in self._counts.items() if key[0].code not in codes}

    def counted(self) -> Iterator[tuple[Entry, Values, int]]:
        yield from ((entry, values, n) for (entry, values), n in self._counts.items())

    def texts(self, *, flags: bool = False) -> dict[str, int]:
        return {entry.text(values, flags=flags): n for entry, values, n in self.counted()}

    def __getitem__(self, code: str) -> int:
        return sum(n for entry, _, n in self.counted() if entry.code == code)

    def __contains__(self, code: object) -> bool:
        return any(entry.code == code for entry, _ in self._counts)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(entry.code for entry, _ in self._counts))

    def __len__(self) -> int:
        return len({entry.code for entry, _ in self._counts})

    def __repr__(self) -> str:
        return f"Counts({dict(self)})"

    def total(self) -> int:
        return sum(self._counts.values())

    def take(self, other: Counts) -> None:
        """Add another log's counts."""
        for key, n in other._counts.items():
            self._counts[key] = self._counts.get(key, 0) + n

    def cover(self, other: Counts) -> None:
        """Take the larger count of each: another log is of the same inputs."""
        for key, n in other._counts.items():
            self._counts[key] = max(self._counts.get(key, 0), n)

    def lines(self, *, flags: bool = False) -> list[str]:
        """For a person: `2 orphan exits`, sorted by text."""
        found = sorted(self.counted(), key=lambda one: one[0].text(one[1], flags=flags))
        return [entry.counted(n, values, flags=flags) for entry, values, n in found]

    def data(self) -> list[Any]:
        """For the `take_data` of another process: lists of JSON values."""
        return [[*entry, packed(values), n] for entry, values, n in self.counted()]

    def take_data(self, data: Iterable[Any]) -> None:
        for *entry, values, n in data:
            key = Entry(*entry), unpacked(values)
            self._counts[key] = self._counts.get(key, 0) + n

    def entries(self, *, flags: bool = False) -> list[dict[str, Any]]:
        """For JSON: code, text and count of each, sorted by text."""
        entries = [
            {"code": entry.code, "text": entry.text(values, flags=flags), "count": n}
            for entry, values, n in self.counted()
        ]
        return sorted(entries, key=lambda entry: str(entry["text"]))


class Log:
    """Counts and warnings of a conversion.

    `rows` counts written rows; `repairs` are oddities of real writers that were fixed; `losses` are damaged pieces of
    the input that were skipped (only with --lenient; exit code 3); `left_out` counts rows removed by filters;
    `not_representable` counts items that the target cannot hold, or that reading left out; `facts` are printed by
    `info`.
    """

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.repairs = Counts()
        self.losses = Counts()
        self.left_out = Counts()
        self.not_representable = Counts()
        self._warnings: dict[tuple[Entry, Values], None] = {}  # each once, in order
        self.facts: dict[str, Any] = {}
        # if the only value type written is 0 in all rows: the error
        self.zeros: Message | None = None

    def __repr__(self) -> str:
        shown = {name.lstrip("_"): getattr(self, name.lstrip("_")) for name in vars(self)}
        return f"Log({', '.join(f'{name}={value!r}' for name, value in shown.items() if value)})"

    def _is_of_info(self) -> bool:
        return {"format", "view"} <= self.facts.keys()

    def __str__(self) -> str:
        """Of `info` what `fastprof info` prints."""
        from fastprof.core.printed import printed

        return printed("cli.info:text", self) if self._is_of_info() else repr(self)

    def _repr_html_(self) -> str:
        """For notebooks: facts and counts; of `info` what `fastprof info` prints."""
        if self._is_of_info():
            from fastprof.core.printed import printed

            return printed("cli.info:html", self)
        from fastprof.core.html import pairs

        counts = {name: getattr(self, name).texts() for name in _COUNTS}
        warnings = {"warnings": self.warnings} if self._warnings else {}
        return pairs(self.facts | {"rows": self.rows} | counts | warnings)

    def count(self, entry: Entry, n: int = 1, **values: Any) -> None:
        """Count `n` more of an entry, with the values of its fields."""
        if n:
            counts: Counts = getattr(self, entry.kind)
            counts.add(entry, n, **values)

    def count_all(self, table: Mapping[str, Entry], counts: Mapping[str, int] | CData) -> None:
        """Count several, by code, or what a struct of the C core counted."""
        for code, n in (counts if isinstance(counts, Mapping) else counts_of(counts)).items():
            if n:
                self.count(table[code], n)

    def warn(self, entry: Entry, **values: Any) -> None:
        self._warnings[entry, tuple(values.items())] = None

    @property
    def warnings(self) -> list[str]:
        return [warning["text"] for warning in self.warned()]

    def warned(self, *, flags: bool = False) -> list[dict[str, str]]:
        """For JSON: code and text of each."""
        return [{"code": entry.code, "text": entry.text(values, flags=flags)} for entry, values in self._warnings]

    def take(self, other: Log) -> None:
        """Add the counts and warnings of another log."""
        self.rows.update(other.rows)
        for name in _COUNTS:
            getattr(self, name).take(getattr(other, name))
        self.take_warnings(other)

    def cover(self, other: Log) -> None:
        """Add what another log of the same inputs, which were read twice, has more."""
        for name in _COUNTS:
            getattr(self, name).cover(getattr(other, name))
        self.take_warnings(other)

    def take_warnings(self, other: Log) -> None:
        self._warnings.update(other._warnings)

    def data(self) -> dict[str, Any]:
        """Counts and warnings for the `take_data` of another process, as JSON values."""
        warnings = [[*entry, packed(values)] for entry, values in self._warnings]
        return {name: getattr(self, name).data() for name in _COUNTS} | {"warnings": warnings}

    def take_data(self, data: Mapping[str, Any]) -> None:
        for name in _COUNTS:
            getattr(self, name).take_data(data[name])
        self._warnings.update({(Entry(*entry), unpacked(values)): None for *entry, values in data["warnings"]})

    def take_all(self, other: Log) -> None:
        """Add the counts, warnings and facts of another log."""
        self.take(other)
        self.facts |= other.facts

    def leave_out(self, rows: int, filters: Iterable[Option[Any]], options: Options) -> None:
        """Count rows that a filter leaves out: any of `filters` that is in `options`."""
        flags = joined(", ", [spelled(option.flag) for option in filters if option in options])
        self.count(REPORTED["filtered-rows"], rows, options=flags)

    def as_dict(self, *, flags: bool = False) -> dict[str, Any]:
        """For JSON."""
        return {
            "rows": dict(self.rows),
            "repairs": self.repairs.entries(flags=flags),
            "losses": self.losses.entries(flags=flags),
            "left_out": self.left_out.entries(flags=flags),
            "not_representable": self.not_representable.entries(flags=flags),
            "warnings": self.warned(flags=flags),
            "facts": self.facts,
        }
