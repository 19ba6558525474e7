"""Rows -> the same rows with renamed value types, so that inputs agree.

    --rename-value ns=time                        ns              becomes    time
    --rename-value wall=time/nanoseconds          wall/ms 3                  time/nanoseconds 3000000
    --rename-value samples/us=time/nanoseconds    samples 3                  time/nanoseconds 3000

If the value type has a unit of the same kind, its values are converted; a count only gets the unit's name, unless its
unit is stated.  Nothing is lost: a unit in which values would need fractions is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fastprof.bridges import RENAME_VALUE
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core.errors import FastprofError, inputs_of, usage_error
from fastprof.core.formulas import renamed_terms
from fastprof.core.loaded import copied
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.operator_copy import Changed
from fastprof.core.options import Options
from fastprof.core.units import SIZES, TIMES

_TIMES = TIMES | {unit[:-1]: factor for unit, factor in TIMES.items() if unit.endswith("seconds")}
_SIZES = SIZES | {"kilobyte": 1 << 10, "megabyte": 1 << 20, "gigabyte": 1 << 30, "gigabytes": 1 << 30}
_SIZES |= {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Names:
    """The new names and units of --rename-value.  Errors: UsageError for a name given twice."""

    def __init__(self, options: Options) -> None:
        self._new: dict[str, tuple[str, str]] = {}
        self._stated: dict[str, tuple[str, str]] = {}  # by name: the unit of OLD/UNIT, and OLD/UNIT
        self.unused: dict[str, None] = {}
        for text in options[RENAME_VALUE]:
            old, _, new = text.partition("=")
            name, _, unit = new.partition("/")
            bare, _, stated = old.rpartition("/")
            if not name or old in self._new or bare in self._stated:
                what = "{--rename-value:=}{text}: expected OLD=NEW, OLD=NEW/UNIT or OLD/UNIT=NEW/UNIT, each OLD once"
                raise usage_error(what, text=text)
            self._new[old] = name, unit
            if bare and (stated in _TIMES or stated in _SIZES):  # cpu/cycles/u is a name
                self._stated[bare] = stated, old
        self.unused.update(dict.fromkeys(self._new))

    def of(self, old: ValueType) -> tuple[ValueType, int]:
        """The value type that `old` becomes, and the factor of its values.  Errors: UsageError."""
        own, key = old.unit, old.name
        if key not in self._new and key in self._stated:
            own, key = self._stated[key]
            if old.unit not in ("", "count", own):
                what = "{--rename-value:name}: {name} is in {found}, not in {unit}"
                raise usage_error(what, name=old.name, found=old.unit, unit=own)
        if key not in self._new:
            return old, 1
        self.unused.pop(key, None)
        name, unit = self._new[key]
        unit = unit or own
        return old._replace(name=name, unit=unit), _factor(old._replace(unit=own), unit)

    def log_to(self, log: Log) -> None:
        for name in self.unused:
            log.warn(REPORTED["no-such-value"], name=name)


def _factor(old: ValueType, unit: str) -> int:
    if old.unit in ("", "count", unit):
        return 1
    for sizes in _TIMES, _SIZES:
        here, there = sizes.get(old.unit, 0), sizes.get(unit, 0)
        if here and there and here % there == 0:
            return here // there
        if here and there:
            what = "{--rename-value:name}: {name}/{old} in {new} would need fractions; convert to the finer unit"
            raise usage_error(what, name=old.name, old=old.unit, new=unit)
    what = "{--rename-value:name}: {name} is in {old}, which cannot be converted to {new}"
    raise usage_error(what, name=old.name, old=old.unit, new=unit)


def renamed(batches: Iterable[Batch], model: Model, names: Names) -> Iterator[Batch]:
    """The batches, with values converted in place.  Errors: UsageError for two value types that become the same;
    FastprofError for a value beyond 2^63 - 1."""
    changed = Changed(model)
    known: dict[int, list[int]] = {}
    for batch in batches:
        if batch.part not in known:
            types = [names.of(old) for old in model.parts[batch.part].value_types]
            _check(model.parts[batch.part].value_types, [new for new, _ in types], model)
            known[batch.part] = [factor for _, factor in types]
        n = int(batch.c.n_values)
        for k, factor in enumerate(known[batch.part][:n]):
            if factor == 1:
                continue
            factors = ffi.new("int64_t[]", [factor * (j == k) for j in range(n)])
            if lib.fp_batch_combine(batch.c, k, factors, n, 1) < 0:
                name = model.parts[batch.part].value_types[k].name
                raise FastprofError(f"{inputs_of(model)}{name} in the other unit: a value exceeds 2^63 - 1")
        yield from changed.lend(batch, partial(_with_names, names=names))
    changed.end()


def _check(old: list[ValueType], new: list[ValueType], model: Model) -> None:
    if len({(t.name, t.unit) for t in new}) < len({(t.name, t.unit) for t in old}):
        what = "{inputs}{--rename-value:name}: two value types would be the same: {types}"
        twice = sorted({f"{t.name}/{t.unit}".rstrip("/") for t in new if new.count(t) > 1})
        raise usage_error(what, inputs=inputs_of(model), types=", ".join(twice))


def _with_names(part: Part, names: Names) -> Part:
    new = copied(part)
    types = [names.of(old) for old in part.value_types]
    of = {old.name: t.name for old, (t, _) in zip(part.value_types, types, strict=True)}
    new.value_types = [t for t, _ in types]
    new.summary, new.totals = _scaled(part.summary, types), _scaled(part.totals, types)
    new.extra = {**part.extra}
    if "default_sample_type" in part.extra:
        default = part.extra["default_sample_type"]
        new.extra["default_sample_type"] = of.get(default, default)
    if part.extra.get("period_type") in [old[:2] for old in part.value_types]:
        period, factor = names.of(ValueType(*part.extra["period_type"]))
        new.extra["period_type"] = period.name, period.unit
        new.extra["period"] = part.extra.get("period", 0) * factor
    if "orders" in part.extra.get("merged", {}):
        orders = [[names.of(ValueType(*t))[0][:2] for t in order] for order in part.extra["merged"]["orders"]]
        new.extra["merged"] = part.extra["merged"] | {"orders": orders}
    if "inherited" in part.extra:
        new.extra["inherited"] = [t._replace(formula=renamed_terms(t.formula, of)) for t in part.extra["inherited"]]
    return new


def _scaled(values: list[int] | None, types: list[tuple[ValueType, int]]) -> list[int] | None:
    return values and [value * factor for value, (_, factor) in zip(values, types, strict=False)]
