"""Graph -> sums by source line or by instruction, of the files or functions shown (csrc/ends/places.h).

    places = Places(model)
    for batch in rows:
        places.put(batch, lambda file: model.string(file) == b"mt.c")
    places.end(0)        {file: (39382, [68305]), ...}: its largest function has 39,382, all of it 68,305
    places.rows(file)    batches of its rows, by line

Memory: the self costs of each function in each file, and the kept rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Pointer
from fastprof.core.c_memory import enough, owned
from fastprof.core.chosen_value import ChosenValue
from fastprof.core.engine import batches_of
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, ValueType
from fastprof.core.parts import match_columns

_WHAT = "sums by place"


class Places:
    """The sums of many graph batches.  Columns are the value types of all parts (core/parts.py matches them).

    A group is a file (its string id), or with `by_address` a function.
    Errors: FastprofError when a sum does not fit into 64 bits.
    """

    def __init__(self, model: Model, *, by_address: bool = False) -> None:
        self._model = model
        self.value_types: list[ValueType] = []
        self._c = owned(lib.fp_places_new(model.c, by_address), "sums by place")
        self._err = ffi.new("struct fp_err *")
        self._columns: dict[int, Pointer[int]] = {}  # by part: the column of each of its values
        self._value = ChosenValue(None, "--value")
        self.default = 0  # index of the default value type

    def settled(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches for `put`, held until the default value type has a cost."""
        return self._value.settled(batches, self._model)

    def note(self, log: Log, *, is_zero: bool) -> None:
        """Report that the default has no cost.  `is_zero`: nor has the value type in its place."""
        self._value.note(log)
        if is_zero:
            self._value.warn_of_zeros(log)

    def put(self, batch: Batch, keep: Callable[[int], bool]) -> None:
        """Add the rows of a batch.  `keep` decides whether the rows of a group are kept; it is called once per group,
        at its first row."""
        columns = self._columns.get(batch.part)
        if columns is None:
            columns = match_columns(self._model, batch.part, batch.c.n_values, self.value_types)
            chosen = self._value.of(self._model.parts[batch.part], "graph")
            if not self._columns and chosen >= 0:
                self.default = int(columns[chosen])
            self._columns[batch.part] = columns
        status = lib.FP_NEEDS
        while status == lib.FP_NEEDS:
            status = lib.fp_places_put(self._c, batch.c, columns, self._err)
            check_sums(status, self._err, self._model, _WHAT, self.value_types)
            if status == lib.FP_NEEDS:
                group = int(self._c.requested)
                what = lib.FP_PLACES_ROWS if keep(group) else lib.FP_PLACES_TOTAL
                enough(lib.fp_places_keep(self._c, group, what))

    def end(self, value: int) -> dict[int, tuple[int, list[int]]]:
        """The groups, after the last batch: for each the largest absolute self cost of a function in value `value`, and
        the group's own self costs."""
        check_sums(lib.fp_places_end(self._c, value, self._err), self._err, self._model, _WHAT, self.value_types)
        sums = self._c.groups
        columns = [sums.values[k][0 : sums.keys.n] for k in range(sums.n_columns)]
        return {
            int(sums.keys.words[i]): (int(columns[0][i]), [int(column[i]) for column in columns[1:]])
            for i in range(1, sums.keys.n)
        }

    def rows(self, group: int) -> Iterator[Batch]:
        """The rows of a kept group, sorted by line or address, self costs before calls."""
        lib.fp_places_select(self._c, group)
        part = next(iter(self._columns), 0)
        yield from batches_of("graph", len(self.value_types), part, partial(lib.fp_places_pull, self._c))
