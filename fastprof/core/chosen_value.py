"""The value type to show, or to keep if a format or a verb holds only one.

    --value=NAME    the value type with that name
    otherwise       the default (core/parts.py) of the first part that has rows; for a format that accepts only some
                    value types (Capabilities.rank), the best match
                    If it is 0 in all rows of all inputs: the first of the same kind (a cost, or a number of samples)
                    that has a cost, with a note.
    other parts     the value type with the same name, and the same unit if both have one; otherwise none

All verbs follow this: convert, top, diff, annotate, report and info.  Those that keep the sums of all value types
choose after the last row (`settled_default`).  The others hold rows back until the default has a cost
(`ChosenValue.settled`): usually that is the first batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import UsageError, inputs_of, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import Message, did_you_mean, some, spelled
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.parts import default_value, match_values, same_kind
from fastprof.core.reported import REPORTED

_CALLS = "ncalls"
_RECORDED = "cumulative_"


def own_calls(types: Sequence[ValueType]) -> int:
    """The column of a graph's cost rows with the calls of their function, also those without a caller in the file;
    -1: none."""
    return next((k for k, t in enumerate(types) if t.name == _CALLS), -1)


def recorded_inclusive(types: Sequence[ValueType], column: int) -> int:
    """The column of a graph's cost rows with the inclusive cost that the source records for their function, for the
    value in `column`; -1: it follows from call arcs.

    The inclusive cost of `time` is `cumulative_time`.  The arcs of other values next to such a pair do not have
    inclusive costs, so those are inclusive costs of their own.
    """
    names = [t.name for t in types]
    pairs = {k: names.index(_RECORDED + name) for k, name in enumerate(names) if _RECORDED + name in names}
    return pairs.get(column, column) if pairs else -1


class ChosenValue:
    """One value type, and its column in each part.  `flag` and `also`, the option's other words, are for errors.

    `like`: the column of another side of a comparison, whose default is this one's, too.
    """

    def __init__(
        self,
        name: str | None,
        flag: str,
        holds: Capabilities = EVERYTHING,
        like: ChosenValue | None = None,
        also: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.type: ValueType | None = None
        self.default: ValueType | None = None  # without a name, and as long as costs do not matter
        self._flag, self._holds, self._like, self._also = flag, holds, like, also
        self.others: dict[ValueType, None] = {}  # the value types of all parts
        self.missing = False  # whether some part lacks the value type
        self._has_cost: set[ValueType] = set()  # those of the default's kind, before `settled` has chosen

    def of(self, part: Part, view: str) -> int:
        """The column in a part, -1 if it has none."""
        types = part.value_types
        self.others |= dict.fromkeys(types)
        if self.type is None:
            found = self._first(part, view)
            self.type = self.default = types[found] if found >= 0 else None
        else:
            found = _index(part, self.type)
        self.missing |= found < 0
        return found

    def _first(self, part: Part, view: str) -> int:
        types, rank_of = part.value_types, self._holds.rank
        if self.name is not None:
            return next((k for k, t in enumerate(types) if t.name == self.name and rank_of(t) is not None), -1)
        if self._like and self._like.default:
            return _index(part, self._like.default)
        default = default_value(part, view)
        ranks = [(rank, k != default, -k) for k, t in enumerate(types) if (rank := rank_of(t)) is not None]
        return -min(ranks)[2] if ranks else -1

    # ---- a default without a cost

    def settled(self, batches: Iterable[Batch], model: Model) -> Iterator[Batch]:
        """The same batches, at whose first one the value type is known: they are held until the default has a cost."""
        from fastprof.core.held import Held

        rest, held = iter(batches), None
        for batch in rest:
            if self.is_settled(model.parts[batch.part], batch):
                yield from held.rows() if held else ()
                yield batch
                yield from rest
                return
            held = held or Held(model, batch.view)
            held.put(batch)
        if held:
            self.settle()
            yield from held.rows()

    def is_settled(self, part: Part, batch: Batch) -> bool:
        """Whether the default has a cost in this batch, or no other could take its place."""
        k = self.of(part, batch.view)
        if k >= batch.c.n_values:  # an empty batch of a part without rows
            return False
        default = self.type
        if default is None or self.name is not None or default != self.default:
            return True
        if k >= 0 and any(batch.values(k)):
            return True
        fits = [self._holds.rank(t) is not None and same_kind(t, default) for t in part.value_types]
        if k >= 0 and sum(fits) < 2:
            return True
        for other, type_ in enumerate(part.value_types[: batch.c.n_values]):
            if fits[other] and other != k and type_ not in self._has_cost and any(batch.values(other)):
                self._has_cost.add(type_)
        return False

    def settle(self, log: Log | None = None) -> None:
        """All rows are read, and the default has no cost.  `log` gets a note if another takes its place."""
        found = [t for t in self.others if t in self._has_cost]
        if found:
            self.type = min(found, key=lambda t: (self._holds.rank(t), found.index(t)))
            self.missing = False
        if log is not None:
            self.note(log)

    def note(self, log: Log) -> None:
        """Report a value type that took the place of the default.  Call it after the last row."""
        if self.type and self.default and self.type != self.default:
            _note(self.default, self.type, log)

    def warn_of_zeros(self, log: Log) -> None:
        """Warn that the value type is 0 in all rows, if there are others and none was requested."""
        if self.name is None and self.type and len(self.others) > 1:
            _warn_of_zeros(self.type, self.others, log)

    def known(self, model: Model) -> ValueType:
        """The value type; call it after the last part.  Errors: UsageError if no part has it."""
        if self.type is not None:
            return self.type
        names = dict.fromkeys(t.name for t in self.others)
        unsupported = f"the format only holds {self._holds.wanted}"
        if self.name in names:
            raise usage_error(
                "{inputs}{flag}{name}: {unsupported}",
                inputs=inputs_of(model),
                flag=spelled(self._flag, "="),
                name=self.name,
                unsupported=unsupported,
            )
        if self.name is not None and names:
            expected = dict.fromkeys((*self._also, *names))
            raise usage_error(
                "{inputs}{flag}: unknown {what} {name!r:.80}, expected {names}{hint}",
                inputs=inputs_of(model),
                flag=spelled(self._flag, "name"),
                what="key or value type" if self._also else "value type",
                name=self.name,
                names=", ".join(expected),
                hint=did_you_mean(self.name, expected),
            )
        if names:
            raise UsageError(f"{inputs_of(model)}value types are {', '.join(names)}: {unsupported}")
        return ValueType(self.name or "cost")  # there are no parts


def settled_default(
    types: Sequence[ValueType], default: int, has_cost: Sequence[object], log: Log | None = None
) -> int:
    """The index of the default, or of the value type that takes its place because it has no cost.

    `has_cost`: for each value type whether any row has a cost in it.  `log` gets a note, or a warning if none has.
    """
    if not 0 <= default < len(types) or has_cost[default]:
        return default
    others = (k for k, t in enumerate(types) if has_cost[k] and same_kind(t, types[default]))
    found = next(others, default)
    if log is not None and found != default:
        _note(types[default], types[found], log)
    elif log is not None and len(types) > 1:
        _warn_of_zeros(types[default], types, log)
    return found


def defaulted(batches: Iterable[Batch], model: Model, log: Log) -> Iterator[Batch]:
    """The same batches, of which all value types are written: afterwards a default without a cost is replaced in their
    parts.  If no sample has any cost, that is an error (Log.zeros)."""
    column, parts = ChosenValue(None, "--value"), dict[int, Part]()
    is_settled = has_cost = has_samples = False
    for batch in batches:
        part = parts[batch.part] = model.parts[batch.part]
        is_settled = is_settled or column.is_settled(part, batch)
        has_samples |= batch.view == "stacks" and len(batch) > 0
        has_cost = has_cost or any(any(batch.values(k)) for k in range(batch.c.n_values))
        yield batch
    if not is_settled:
        column.settle(log)
    if column.type and column.type != column.default:
        for part in parts.values():
            if _index(part, column.type) >= 0:
                part.extra["default_sample_type"] = column.type.name
    if has_samples and not has_cost:
        log.zeros = Message("no sample has a cost")


def _index(part: Part, type_: ValueType) -> int:
    """The column of a value type in a part; -1: none."""
    columns = match_values(part, len(part.value_types), [type_])
    return columns.index(0) if 0 in columns else -1


def _note(default: ValueType, found: ValueType, log: Log) -> None:
    log.warn(REPORTED["default-without-cost"], name=default.name, instead=found.name)


def _warn_of_zeros(shown: ValueType, types: Iterable[ValueType], log: Log) -> None:
    log.warn(REPORTED["only-zeros"], name=shown.name, others=some([t.name for t in types if t != shown]))
