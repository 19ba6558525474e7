"""Instructions of a page, with the costs that `fastprof annotate --asm` prints.

    head.asm    found: [side, function, its file, program, its lines], the most expensive functions first; a line is
                [address, text or null, self costs by value column], or null: a gap.  cut: functions without room

The disassembler reads the programs that symbols are read from.
"""

from __future__ import annotations

from fastprof.core._typing import Any
from fastprof.core.unknown_names import readable
from fastprof.verbs.annotation import Annotation, Instruction
from fastprof.verbs.page.contexts import Shown
from fastprof.verbs.page.source import key_of

MOST = 40  # functions of a profile
_MOST_TEXT = 500_000  # characters of all instructions
_LONGEST = 200  # characters of an instruction
_EACH = 30  # characters of an address and costs

_Listed = tuple[int, str | None, dict[tuple[int, str, str], int]]  # address, text, costs


class Instructions:
    """The instructions of one or two profiles."""

    def __init__(self) -> None:
        self._found: list[tuple[int, str, str, str, list[_Listed | None]]] = []
        self._left = _MOST_TEXT
        self._cut = 0

    def add(self, side: int, found: Annotation) -> None:
        """Add the annotation of a side's profile."""
        keys = [(side, *key_of(value_type)) for value_type in found.value_types]
        for listing in found.listings:
            lines: list[_Listed | None] = []
            for block in listing.blocks():
                if lines:
                    lines.append(None)
                for one in block:
                    assert isinstance(one, Instruction)
                    costs = {key: value for key, value in zip(keys, one.values or (), strict=False) if value}
                    lines.append((one.address, one.text and one.text[:_LONGEST], costs))
            self._left -= sum(_EACH + len(line[1] or "") for line in lines if line)
            if self._left < 0:
                self._cut += 1
            else:
                self._found.append((side, readable(listing.name), readable(listing.file), listing.path, lines))

    def add_to(self, head: dict[str, Any], shown: Shown, kept: list[int]) -> None:
        columns = [shown.columns[c] for c in kept]
        keys = [(column.side, *key_of(shown.events[column.event])) for column in columns]
        head["asm"] = {
            "found": [
                [
                    side,
                    name,
                    file,
                    path,
                    [line and [f"{line[0]:x}", line[1], [line[2].get(key, 0) for key in keys]] for line in lines],
                ]
                for side, name, file, path, lines in self._found
            ],
            "cut": self._cut,
        }
