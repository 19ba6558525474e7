"""Requires the same value types in all inputs, unless an option decides about those that some inputs lack.

a.callgrind  Ir Dr          an error naming both files
b.callgrind  Ir             --union: Ir Dr, where b's Dr is 0       --intersect: Ir
                            diff compares Ir, and warns that b has no Dr
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges import INTERSECT, UNION, VALUE
from fastprof.bridges.sums.reported import REPORTED
from fastprof.core._c import ffi
from fastprof.core._typing import Any
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import UsageError, inputs_of, usage_error
from fastprof.core.loaded import copied
from fastprof.core.log import Log
from fastprof.core.messages import Message
from fastprof.core.model import Batch, Model, Part, ValueType, set_values
from fastprof.core.operator_copy import Changed
from fastprof.core.options import Options
from fastprof.core.parts import match_values


class Agreement:
    """Compares the parts of all inputs with the first one.  With `--value` only that type must be present."""

    def __init__(self, model: Model, options: Options, log: Log, *, compares: bool = False) -> None:
        """`compares`: inputs may lack value types, if all have one in common."""
        self._model, self._log = model, log
        self._wanted = options[VALUE]
        self._may_differ = options[UNION] or options[INTERSECT]
        self._shared: list[ValueType] | None = [] if compares and not self._may_differ else None
        self.all_alike = True
        self._name = ""
        self._first: tuple[str, list[ValueType]] | None = None
        self._period: tuple[str, Any] | None = None

    def named(self, batches: Iterator[Batch], name: str) -> Iterator[Batch]:
        """The rows of the input `name`, which errors name while these rows are read."""
        self._name = name
        yield from batches

    def compared(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Compare each part and pass its rows on.  Errors: UsageError.

        A part that another may continue is compared when it ends: the value types of both count."""
        model, last, name = self._model, -1, ""
        for batch in batches:
            if batch.part != last:
                if last in model.open_parts and not model.continues(batch.part, last):
                    self._compare(model.parts[last], name)
                last, name = batch.part, self._name
                if last not in model.open_parts:
                    self._compare(model.parts[last], name)
            yield batch
        if last in model.open_parts:
            self._compare(model.parts[last], name)

    def _compare(self, part: Part, name: str) -> None:
        types = [t for t in part.value_types if self._wanted in (None, t.name)]
        if not part.value_types:
            return
        if self._first is None:
            self._first = name, types
        first, expected = self._first
        if self._shared is not None:
            self._share(name, types, first, expected)
        elif not self._may_differ and not _same(expected, types):
            hint = "{--union} (missing values are 0)"
            if self._wanted is None:
                hint += ", {--intersect} (common value types only) or {--value}"
            what = "{name}: has {types}, but {first} has {others}; use " + hint
            raise UsageError(
                Message(what, name=name, types=_listed(types), first=first, others=_listed(expected)),
            )
        period = part.extra.get("period_type")
        if period is None:
            return
        if self._period is None:
            self._period = name, period
        first, expected_period = self._period
        if period != expected_period:
            differ = f"{name}: has a period in {'/'.join(period)}, but {first} in {'/'.join(expected_period)}"
            if not self._may_differ:
                raise usage_error("{differ}; with {--union} or {--intersect} the period is left out", differ=differ)
            self._log.warn(REPORTED["different-periods"], differ=differ)

    def _share(self, name: str, types: list[ValueType], first: str, expected: list[ValueType]) -> None:
        """Reduce the value types of all inputs so far to those that `types` has, and warn of others on either side."""
        assert self._shared is not None
        shared = self._shared or [*expected]
        self._shared = _both(shared, types)
        if not self._shared:
            what = "{name}: has {types}, but {first} has {others}: no value type is common to both"
            raise UsageError(
                Message(what, name=name, types=_listed(types), first=first, others=_listed(expected)),
            )
        for one, lacked in ((name, _others(shared, types)), (first, _others(types, shared))):
            if lacked:
                self.all_alike = False
                self._log.warn(REPORTED["missing-values"], name=one, types=_listed(lacked))


def _matched(one: list[ValueType], other: list[ValueType]) -> set[int]:
    """The indexes in `one` of those that `other` has, and further ones for the rest of `other`."""
    return {*match_values(Part(value_types=other), len(other), [*one])}


def _both(one: list[ValueType], other: list[ValueType]) -> list[ValueType]:
    found = _matched(one, other)
    return [t for k, t in enumerate(one) if k in found]


def _others(one: list[ValueType], other: list[ValueType]) -> list[ValueType]:
    found = _matched(one, other)
    return [t for k, t in enumerate(one) if k not in found]


def _same(one: list[ValueType], other: list[ValueType]) -> bool:
    return _matched(one, other) == {*range(len(one))}


def _listed(types: list[ValueType]) -> str:
    return ", ".join(f"{t.name}/{t.unit}" if t.unit else t.name for t in types) or "no such value type"


def common(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The merged rows with the value types that every part has, without the others.

    Errors: UsageError if there is no common value type.
    """
    changed = Changed(model)
    shared: list[ValueType] | None = None
    for batch in batches:
        part = model.parts[batch.part]
        if shared is None:
            # bridges and sums also add parts, with all value types of their sources
            shared = part.value_types
            whole = model.whole_parts(range(len(model.parts)))
            for types in (other.value_types for other in whole if other.value_types):
                shared = _both(shared, types)
            if not shared:
                what = "{inputs}{--intersect:name}: no value type is common to all inputs"
                raise usage_error(what, inputs=inputs_of(model))
        columns = match_values(part, len(part.value_types), [*shared])
        kept = [k for k, column in enumerate(columns) if column < len(shared)]
        c, n_values = batch.c, int(batch.c.n_values)
        for to, k in enumerate(kept):
            if k != to:
                ffi.memmove(c.values + to * c.cap, c.values + k * c.cap, 8 * c.n)
        set_values(batch, len(kept))
        yield from changed.lend(batch, lambda own, kept=kept: _with(own, kept))  # type: ignore[misc]
        set_values(batch, n_values)
    changed.end()


def _with(part: Part, kept: list[int]) -> Part:
    fewer = copied(part)
    fewer.value_types = [part.value_types[k] for k in kept]
    if part.summary is not None:
        fewer.summary = [part.summary[k] for k in kept if k < len(part.summary)]
    fewer.extra = {key: value for key, value in part.extra.items() if key != "inherited"}  # formulas need all events
    if fewer.extra.get("default_sample_type") not in [t.name for t in fewer.value_types]:
        fewer.extra.pop("default_sample_type", None)
    return fewer
