"""Source lines of a page, with the costs that `fastprof annotate` prints.

    head.sources    found: [file as in the profile, its lines separated by newlines]; missing: files that were not found
    line            lines of the files, one file after the other: file, number (relative to the previous line),
                    whether the file has it; self cost and inclusive cost of the calls on it, by value column

Only files below the given folders are opened (verbs/annotate/sources.py).  The most expensive files come first, while
there is room.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastprof.core._typing import Any
from fastprof.core.log import Log
from fastprof.core.model import ValueType
from fastprof.core.unknown_names import readable
from fastprof.verbs.annotation import Annotation, Line
from fastprof.verbs.page import Columns
from fastprof.verbs.page.contexts import Shown
from fastprof.verbs.reported import REPORTED

_MOST_TEXT = 800_000  # characters of all lines: a fifth of a page when compressed
_LINE_BYTES = 20  # of a line's number and costs
_LONGEST = 400  # characters of a line
_MOST_MISSING = 200  # names

_Key = tuple[int, str, str]  # side, name and unit of a value type


class Source:
    """The lines of one or two profiles."""

    def __init__(self) -> None:
        self._files: dict[str, dict[int, str | None]] = {}  # text by line
        self._self: dict[tuple[_Key, str, int], int] = {}  # by value type, file and line
        self._calls: dict[tuple[_Key, str, int], int] = {}
        self._left = _MOST_TEXT
        self._missing: dict[str, None] = {}
        self._cut: dict[str, None] = {}  # files without room

    def add(self, side: int, found: Annotation) -> None:
        """Add the annotation of a side's profile."""
        keys = [(side, *key_of(value_type)) for value_type in found.value_types]
        for listing in found.listings:
            name = readable(listing.name)
            for block in listing.blocks():
                for line in block:
                    assert isinstance(line, Line)
                    if line.number:
                        self._add(name, line, keys)
        self._missing.update(dict.fromkeys(readable(missing.name) for missing in found.missing))

    def _add(self, name: str, line: Line, keys: Sequence[_Key]) -> None:
        text = line.text if line.text is None or len(line.text) <= _LONGEST else line.text[:_LONGEST] + "…"
        if line.number not in self._files.get(name, {}):
            self._left -= len(text or "") + _LINE_BYTES
            if self._left < 0:
                self._cut[name] = None
                return
            self._files.setdefault(name, {})[line.number] = text
        for k, key in enumerate(keys):
            at = key, name, line.number
            if line.values and line.values[k]:
                self._self[at] = line.values[k]
            if calls := sum(call.values[k] for call in line.calls):
                self._calls[at] = calls

    def log(self, log: Log) -> None:
        """Report the content that the page lacks."""
        if self._missing:
            log.warn(REPORTED["missing-page-sources"], n=len(self._missing), first=next(iter(self._missing)))
        log.count(REPORTED["cut-sources"], len(self._cut))

    def add_to(self, columns: Columns, head: dict[str, Any], shown: Shown, kept: list[int]) -> None:
        files = {name: sorted(lines.items()) for name, lines in self._files.items()}
        head["sources"] = {
            "found": [[name, "\n".join(text or "" for _, text in lines)] for name, lines in files.items()],
            "cut": [*self._cut],
            "missing": [*self._missing][:_MOST_MISSING],
        }
        lines = [(at, name, number) for at, (name, of) in enumerate(files.items()) for number, _ in of]
        columns.add("line file", "I", [at for at, _, _ in lines])
        firsts = {name: of[0][0] for name, of in files.items()}
        steps = [0, *(number for _, _, number in lines)]
        columns.add(
            "line number",
            "I",
            [number - (0 if number == firsts[name] else steps[i]) for i, (_, name, number) in enumerate(lines)],
        )
        columns.add("line known", "B", [text is not None for of in files.values() for _, text in of])
        for k, c in enumerate(kept):
            column = shown.columns[c]
            key = (column.side, *key_of(shown.events[column.event]))
            for what, costs in (("self", self._self), ("calls", self._calls)):
                columns.add(f"line {what} {k}", "d", [costs.get((key, name, number), 0) for _, name, number in lines])


def key_of(value_type: ValueType) -> tuple[str, str]:
    """The name and the unit by which value types of the page and of `annotate` are the same."""
    return value_type.name, value_type.unit
