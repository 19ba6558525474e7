"""Stacks or graph -> the same with one value type.

    samples/count 5  cpu/nanoseconds 50000000        --value samples        samples/count 5

Kept: everything else.  Lost: the other value types, which are counted unless the user named the one to keep.

Without a name the value type that suits the target best is kept, and of those that suit it the same, the source's
default.  If that is 0 in every row of stacks, the next best is kept.  As long as all rows are 0, it is not known which
one to keep; until then distinct stacks are kept in memory.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

from fastprof.bridges import VALUE
from fastprof.bridges.changed import Changed
from fastprof.bridges.sum import StackSums
from fastprof.core._c import ffi
from fastprof.core.engine import EVERYTHING, Holds
from fastprof.core.errors import UsageError, inputs_of
from fastprof.core.model import Batch, Model, Part
from fastprof.core.options import Options
from fastprof.core.parts import default_value
from fastprof.core.report import Report


def one_value(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """The same rows with one value column.

    Errors: UsageError when no value type has the name that was asked for, or none fits the format.
    """
    chosen: dict[int, int] = {}  # by part: the column that is kept
    changed = Changed(model)
    held: _Held | None = None  # the rows of a part, as long as its first choice is 0 in all of them
    for batch in batches:
        if held is not None and held.part != batch.part:
            yield from held.rows(chosen, changed)
            held = None
        if batch.part not in chosen and held is None:
            candidates = _candidates(model, model.parts[batch.part], batch.view, options[VALUE], holds)
            if len(candidates) == 1 or batch.view != "stacks" or any(batch.values(candidates[0])):
                chosen[batch.part] = candidates[0]
            else:
                held = _Held(batch, candidates, StackSums(model, options, report, holds), model)
        if held is None:
            yield from _only(batch, chosen[batch.part], changed)
            continue
        held.put(batch)
        if held.seen[held.candidates[0]]:
            yield from held.rows(chosen, changed)
            held = None
    if held is not None:
        yield from held.rows(chosen, changed)
    if options[VALUE] is None:
        _tell(model, chosen, holds, report)
    changed.end()


def _candidates(model: Model, part: Part, view: str, name: str | None, holds: Holds) -> list[int]:
    """The columns to choose from, the best first."""
    types = part.value_types
    if name is not None:
        if found := [k for k, t in enumerate(types) if t.name == name]:
            if holds.suits(types[found[0]]) is None:
                raise UsageError(f"{inputs_of(model)}--value={name}: {_refusal(holds)}")
            return found[:1]
        known = ", ".join(t.name for t in types)
        raise UsageError(f"{inputs_of(model)}--value: there is no value type {name!r:.80}, only {known}")
    ranks = {k: rank for k, t in enumerate(types) if (rank := holds.suits(t)) is not None}
    if not ranks:
        names = ", ".join(t.name for t in types) or "none at all"
        raise UsageError(f"{inputs_of(model)}value types are {names}: {_refusal(holds)}")
    default = default_value(part, view)
    return sorted(ranks, key=lambda k: (ranks[k], k != default, -k))


def _refusal(holds: Holds) -> str:
    return f"this format only holds {holds.wanted}"


def _only(batch: Batch, k: int, changed: Changed) -> Iterator[Batch]:
    """Yields the batch with column k alone."""
    c, n_values = batch.c, int(batch.c.n_values)
    if k:
        ffi.memmove(c.values, c.values + k * c.cap, 8 * c.n)
    batch.set_values(1)
    yield from changed.lend(batch, lambda part: _part_of_one(part, k))
    batch.set_values(n_values)


def _part_of_one(part: Part, k: int) -> Part:
    one = copy.copy(part)
    one.value_types = [part.value_types[k]]
    one.summary, one.totals = (
        None if said is None else [said[k] if k < len(said) else 0] for said in (part.summary, part.totals)
    )
    # formulas need the other events
    one.extra = {key: value for key, value in part.extra.items() if key not in ("inherited", "default_sample_type")}
    return one


class _Held:
    """The first rows of a part, in which the first choice is 0.  Equal stacks are added up."""

    def __init__(self, batch: Batch, candidates: list[int], sums: StackSums, model: Model) -> None:
        self.part, self.candidates = batch.part, candidates
        self._n_values = int(batch.c.n_values)
        self._sums = sums
        self._types = model.parts[batch.part].value_types
        self._columns = ffi.new("uint32_t[]", [*range(self._n_values)])
        self.seen = [False] * self._n_values  # for each column: is it other than 0 in some row?
        self._model = model
        model.keep_stacks = True
        sums.begin(model.parts[batch.part])

    def put(self, batch: Batch) -> None:
        self._sums.put(batch, self._columns, self._types)
        self.seen = [seen or any(batch.values(k)) for k, seen in enumerate(self.seen)]

    def rows(self, chosen: dict[int, int], changed: Changed) -> Iterator[Batch]:
        best = next((k for k in self.candidates if self.seen[k]), self.candidates[0])
        chosen[self.part] = best
        for batch in self._sums.rows(self.part, self._types, range(self._n_values)):
            yield from _only(batch, best, changed)
        self._model.keep_stacks = False


def _tell(model: Model, chosen: dict[int, int], holds: Holds, report: Report) -> None:
    for index, kept in chosen.items():
        types = model.parts[index].value_types
        told = holds.told if types[kept].name in holds.told else ()
        for k, t in enumerate(types):
            if k != kept and t.name not in told:
                report.not_representable.add("value-types", f"values of type {t.name}")
