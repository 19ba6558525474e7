"""Stacks or graph -> the same rows with one value type.

    samples/count 5  cpu/nanoseconds 50000000        --value samples        samples/count 5

Kept: everything else.  Lost: the other value types, which are counted unless the user named the one to keep.

core/chosen_value.py chooses the value type.  If it is 0 in all rows, nothing is written (Log.zeros).

Some formats hold either one value type or certain ones together (Capabilities.together).  The latter are kept if the
first part has them and the user named none.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from fastprof.bridges import VALUE
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi
from fastprof.core.chosen_value import ChosenValue
from fastprof.core.engine import EVERYTHING, Capabilities
from fastprof.core.loaded import copied
from fastprof.core.log import Log
from fastprof.core.messages import Message, some
from fastprof.core.model import Batch, Model, Part, set_values
from fastprof.core.operator_copy import Changed
from fastprof.core.options import Options


def one_value(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The same rows with one value column; parts without it have no rows.

    Errors, after the last row: UsageError when no value type has the requested name, or none fits the format.
    """
    column = ChosenValue(options[VALUE], VALUE.flag, holds)
    chosen: dict[int, int] = {}  # by part: the column that is kept; -1: none
    together, batches = _together(batches, model, options, holds)
    is_zero = True  # so far
    has_samples = False
    changed = Changed(model)
    for batch in batches if together else column.settled(batches, model):
        has_samples |= batch.view == "stacks" and len(batch) > 0
        if batch.part not in chosen:
            part = model.parts[batch.part]
            is_kept = not together or _names(part) == holds.together
            chosen[batch.part] = column.of(part, batch.view) if is_kept else -1
        k = chosen[batch.part]
        if together and k >= 0:
            is_zero = False
            yield batch
            continue
        if k >= 0:
            is_zero = is_zero and not (len(batch) and any(batch.values(k)))
            yield from _only(batch, k, changed)
    kept = column.known(model)
    column.note(log)
    if has_samples and is_zero:
        others = some([t.name for t in column.others if t != kept])
        hint = Message("; {--value:=}NAME selects another value type: {others}", others=others) if others else ""
        log.zeros = Message("no row has a cost: {name} is 0 everywhere{hint}", name=kept.name, hint=hint)
    if options[VALUE] is None:
        _log_choice(model, chosen, holds.together if together else holds.same, log)
    changed.end()


def _together(
    batches: Iterable[Batch], model: Model, options: Options, holds: Capabilities
) -> tuple[bool, Iterable[Batch]]:
    """Whether the value types of Capabilities.together are kept, because the first part has them; and the same
    batches."""
    rows = iter(batches)
    first = next(rows, None) if holds.together and options[VALUE] is None else None
    if first is None:
        return False, rows
    return _names(model.parts[first.part]) == holds.together, chain([first], rows)


def _names(part: Part) -> tuple[str, ...]:
    return tuple(t.name for t in part.value_types)


def _only(batch: Batch, k: int, changed: Changed) -> Iterator[Batch]:
    """Yield the batch with value column k only."""
    c, n_values = batch.c, int(batch.c.n_values)
    if k:
        ffi.memmove(c.values, c.values + k * c.cap, 8 * c.n)
    set_values(batch, 1)
    yield from changed.lend(batch, lambda part: _part_of_one(part, k))
    set_values(batch, n_values)


def _part_of_one(part: Part, k: int) -> Part:
    one = copied(part)
    one.value_types = [part.value_types[k]]
    one.summary, one.totals = (
        None if totals is None else [totals[k] if k < len(totals) else 0] for totals in (part.summary, part.totals)
    )
    # formulas need the other events
    one.extra = {key: value for key, value in part.extra.items() if key not in ("inherited", "default_sample_type")}
    return one


def _log_choice(model: Model, chosen: dict[int, int], also: tuple[str, ...], log: Log) -> None:
    for index, kept in chosen.items():
        types = model.parts[index].value_types
        same = also if kept >= 0 and types[kept].name in also else ()
        for k, t in enumerate(types):
            if k != kept and t.name not in same:
                log.count(REPORTED["value-types"], name=t.name)
