"""Inherited events become columns with values computed by formula.

    event: Sum = Ir + 2 Dr             events: Ir Dr Sum
    events: Ir Dr              ->      fn=main
    fn=main                            10 5 1 7
    10 5 1

Lost: the formula.  An event that cannot be computed (its formula has a cycle or an
unknown name) is kept as is, with a warning.  Memory: constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Pointer
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.errors import FastprofError, inputs_of
from fastprof.core.formulas import Formulas
from fastprof.core.loaded import copied
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType, set_values
from fastprof.core.operator_copy import Changed
from fastprof.core.options import Options


def compute(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The batches with an additional column for each inherited event of their part.

    Errors: FastprofError when a computed value does not fit into 64 bits.
    """
    changed = Changed(model)
    known: dict[int, tuple[Formulas, list[Pointer[int]]]] = {}
    for batch in batches:
        if batch.part not in known:
            formulas = formulas_of(model.parts[batch.part], log)
            known[batch.part] = formulas, [ffi.new("int64_t[]", factors) for factors in formulas.factors.values()]
        formulas, columns = known[batch.part]
        n_values = int(batch.c.n_values)
        set_values(batch, n_values + len(columns))
        for k, (name, factors) in enumerate(zip(formulas.factors, columns, strict=True)):
            if lib.fp_batch_combine(batch.c, n_values + k, factors, n_values, 1) < 0:
                raise FastprofError(f"{inputs_of(model)}inherited event {name}: a value exceeds 2^63 - 1")
        yield from changed.lend(batch, partial(_with_columns, formulas=formulas))
        set_values(batch, n_values)
    if not any(columns for _, columns in known.values()):
        log.warn(REPORTED["no-inherited-events"])
    changed.end()


def formulas_of(part: Part, log: Log) -> Formulas:
    """The inherited events of a part; warns of each that cannot be computed."""
    inherited: list[ValueType] = part.extra.get("inherited", [])
    formulas = Formulas([t.name for t in part.value_types], {t.name: t.formula for t in inherited if t.formula})
    for name, problem in formulas.problems.items():
        log.warn(REPORTED["uncomputed-events"], name=name, problem=problem)
    return formulas


def _with_columns(part: Part, formulas: Formulas) -> Part:
    """The part with its inherited events as columns."""
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
    more = copied(part)
    more.value_types, more.extra = value_types, extra
    more.summary = _more(part.summary, part, formulas)
    more.totals = _more(part.totals, part, formulas)
    return more


def _more(values: list[int] | None, part: Part, formulas: Formulas) -> list[int] | None:
    if values is None:
        return None
    return [*values, *[0] * (len(part.value_types) - len(values)), *formulas.values(values).values()]
