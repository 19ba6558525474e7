"""Inherited events become columns: each row's values by formula.

    event: Sum = Ir + 2 Dr             events: Ir Dr Sum
    events: Ir Dr              ->      fn=main
    fn=main                            10 5 1 7
    10 5 1

Lost: the formula.  An event whose formula has no value (a cycle, an unknown
name) stays as it is, with a warning.  Memory: constant.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core.engine import Report
from fastprof.core.errors import FastprofError
from fastprof.core.formulas import Formulas
from fastprof.core.model import Batch, Model, Part, ValueType


def compute(batches: Iterable[Batch], model: Model, report: Report) -> Iterator[Batch]:
    """The same batches with a column more for each inherited event of their part.

    Errors: FastprofError when a computed value does not fit into 64 bits.
    """
    parts: dict[int, _Computed] = {}
    last = -1
    for batch in batches:
        index, n_values = batch.part, int(batch.c.n_values)
        if index not in parts:
            parts[index] = _Computed(model.parts[index], report)
        part = parts[index]
        batch.set_values(n_values + len(part.columns))
        for k, factors in enumerate(part.columns):
            if lib.fp_batch_combine(batch.c, n_values + k, factors, n_values) < 0:
                name = part.more.value_types[n_values + k].name
                raise FastprofError(f"inherited event {name}: a value is beyond 2^63-1")
        if last not in (-1, index):
            parts[last].update()
        last = index
        # the reader goes on with its own: what stands behind the rows (a summary) is yet to come
        model.parts[index] = part.more
        yield batch
        model.parts[index] = part.part
        batch.set_values(n_values)
    for index, part in parts.items():
        part.update()
        model.parts[index] = part.more


class _Computed:
    """A part as it is read, and `more`: the same with its inherited events as columns."""

    def __init__(self, part: Part, report: Report) -> None:
        self.part = part
        self.formulas = formulas_of(part, report)
        self.columns = [ffi.new("int64_t[]", factors) for factors in self.formulas.factors.values()]
        self.more = _with_columns(part, self.formulas)

    def update(self) -> None:
        """Takes over what the reader has found since."""
        vars(self.more).update(vars(_with_columns(self.part, self.formulas)))


def formulas_of(part: Part, report: Report) -> Formulas:
    """The inherited events of a part, a warning for each that has no value."""
    inherited: list[ValueType] = part.extra.get("inherited", [])
    formulas = Formulas([t.name for t in part.value_types], {t.name: t.formula for t in inherited if t.formula})
    for name, problem in formulas.problems.items():
        report.warn(f"inherited event {name} cannot be computed: {problem}")
    return formulas


def _with_columns(part: Part, formulas: Formulas) -> Part:
    """The part as it is with its inherited events as columns."""
    inherited: list[ValueType] = part.extra.get("inherited", [])
    events = {event.name: event for event in inherited}
    extra = {key: value for key, value in part.extra.items() if key != "inherited"}
    rest = [event for event in inherited if event.name not in formulas.factors]
    if rest:
        extra["inherited"] = rest
    value_types = list(part.value_types)
    for name, factors in formulas.factors.items():
        units = {t.unit for t, factor in zip(part.value_types, factors, strict=True) if factor}
        value_types.append(events[name]._replace(formula="", unit=units.pop() if len(units) == 1 else ""))
    more = copy.copy(part)
    more.value_types, more.extra = value_types, extra
    more.summary = _more(part.summary, part, formulas)
    more.totals = _more(part.totals, part, formulas)
    return more


def _more(values: list[int] | None, part: Part, formulas: Formulas) -> list[int] | None:
    if values is None:
        return None
    return [*values, *[0] * (len(part.value_types) - len(values)), *formulas.values(values).values()]
