"""The value type to show, or to keep if a format or a verb holds only one.

    --value=NAME    the value type with that name
    otherwise       the default (core/parts.py) of the first part that has rows; for a format that accepts only some
                    value types (Holds.rank), the best match
    other parts     the value type with the same name, and the same unit if both have one; otherwise none

All verbs follow this: convert, top, diff, annotate, report and info.
"""

from __future__ import annotations

from fastprof.core.engine import EVERYTHING, Holds
from fastprof.core.errors import UsageError, inputs_of
from fastprof.core.model import Model, Part, ValueType
from fastprof.core.parts import default_value, match_values
from fastprof.core.words import Message, spelled


class Column:
    """One value type, and its column in each part.  `flag` names it, for errors."""

    def __init__(self, name: str | None, flag: str, holds: Holds = EVERYTHING) -> None:
        self.name = name
        self.type: ValueType | None = None
        self._flag, self._holds = flag, holds
        self.others: dict[ValueType, None] = {}  # the value types of all parts
        self.missing = False  # whether some part lacks the value type

    def of(self, part: Part, view: str) -> int:
        """The column in a part, -1 if it has none."""
        types = part.value_types
        self.others |= dict.fromkeys(types)
        if self.type is None:
            found = self._first(part, view)
            self.type = types[found] if found >= 0 else None
        else:
            columns = match_values(part, len(types), [self.type])
            found = columns.index(0) if 0 in columns else -1
        self.missing |= found < 0
        return found

    def _first(self, part: Part, view: str) -> int:
        types, rank_of = part.value_types, self._holds.rank
        if self.name is not None:
            return next((k for k, t in enumerate(types) if t.name == self.name and rank_of(t) is not None), -1)
        default = default_value(part, view)
        ranks = [(rank, k != default, -k) for k, t in enumerate(types) if (rank := rank_of(t)) is not None]
        return -min(ranks)[2] if ranks else -1

    def known(self, model: Model) -> ValueType:
        """The value type; call it after the last part.  Errors: UsageError if no part has it."""
        if self.type is not None:
            return self.type
        names = dict.fromkeys(t.name for t in self.others)
        unsupported = f"the format only holds {self._holds.wanted}"
        if self.name in names:
            raise UsageError(
                Message(
                    "{inputs}{flag}{name}: {unsupported}",
                    inputs=inputs_of(model),
                    flag=spelled(self._flag, "="),
                    name=self.name,
                    unsupported=unsupported,
                )
            )
        if self.name is not None and names:
            raise UsageError(
                Message(
                    "{inputs}{flag}: unknown value type {name!r:.80}, expected {names}",
                    inputs=inputs_of(model),
                    flag=spelled(self._flag, "name"),
                    name=self.name,
                    names=", ".join(names),
                )
            )
        if names:
            raise UsageError(f"{inputs_of(model)}value types are {', '.join(names)}: {unsupported}")
        return ValueType(self.name or "cost")  # there are no parts
