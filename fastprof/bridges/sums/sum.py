"""Stacks -> stacks: equal rows are added up (csrc/bridges/sums/sum.h).

    main > f  {size: 8}  1
    main > g             2    becomes    main > f  {size: 8}  4
    main > f  {size: 8}  3               main > g             2

`--labels` selects what separates rows: their own labels, thread and process, or part.  A part may belong to one CPU;
for timelines fold.py has already made CPUs labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from fastprof.bridges import MAX_MEMORY, PER_THREAD
from fastprof.bridges.labels import labels_wanted, log_missing_labels, separating_labels
from fastprof.bridges.sums.reported import REPORTED
from fastprof.bridges.sums.sorted_runs import Words
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Pull
from fastprof.core.engine import EVERYTHING, Holds, batches_of
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.owner import owned
from fastprof.core.parts import in_any_order, match_columns, match_values, merge_parts, parts_since

if TYPE_CHECKING:
    from fastprof.core._c import Pointer, fp_batch


def to_sum(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """One part with every distinct (stack, labels, thread) once, in an order independent of that of the inputs.

    Value types are matched by core/parts.py; values that an input lacks are 0.  Errors: FastprofError when a sum
    exceeds 2^63 - 1.
    """
    sums = StackSums(model, options, log, holds, inputs=options[PER_THREAD] or not holds.labels)
    events: list[ValueType] = []
    columns: dict[int, Pointer[int]] = {}
    current, n_before = -1, len(model.parts)
    for batch in batches:
        if batch.part not in columns:
            columns[batch.part] = match_columns(model, batch.part, batch.c.n_values, events)
        if batch.part != current:
            current = batch.part
            sums.begin(model.parts[current])
        sums.put(batch, columns[current], events)
    if not columns:  # an empty profile still has value types
        for i in parts_since(model, n_before):
            columns[i] = match_columns(model, i, len(model.parts[i].value_types), events)
    parts = model.whole_parts(columns)
    order = in_any_order(parts, events)
    part = merge_parts(parts, [events[k] for k in order])
    yield from sums.rows(model.add_part(part), events, order, lib.FP_SUM_BY_NAME)
    sums.log_counts()


def repeated(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """The rows of one input, part by part, with equal rows added up, in their order of appearance.

    A part and those that it continues become one.
    """
    sums = StackSums(model, options, log, holds)
    current, n_values = -1, 0
    columns: Pointer[int] = ffi.NULL
    types: list[ValueType] = []
    order = list[int]()
    for batch in batches:
        if (batch.part, batch.c.n_values) != (current, n_values):
            if current >= 0 and not model.continues(batch.part, current):
                yield from sums.rows(current, types, order)
                types = []
            current, n_values = batch.part, batch.c.n_values
            order = match_values(model.parts[current], n_values, types)
            columns = ffi.new("uint32_t[]", order or [0])
            sums.begin(model.parts[current])
        sums.put(batch, columns, types)
    if current >= 0:
        yield from sums.rows(current, types, order)
    sums.log_counts()


# per key: its row, its part of the index, and two arrays for sorting
_KEY_BYTES = 12 + 22 + 2 * 16
_LEAST_KEYS = 1024  # a lower limit would make short runs


def _runs() -> Words:
    return Words(lib.FP_SUM_HEAD, kept=lib.FP_SUM_KEPT, signed=True)


class StackSums:
    """The table of struct fp_sum, and the inputs of its keys.

    `inputs`: threads with equal numbers in different inputs are distinct.
    """

    def __init__(self, model: Model, options: Options, log: Log, holds: Holds, *, inputs: bool = True) -> None:
        self._c = owned(lib.fp_sum_new(model.c), lib.fp_sum_free, "the sums of stacks")
        self._model, self._log, self._holds = model, log, holds
        self._wanted = labels_wanted(options, holds)
        self._separating = separating_labels(options, holds)
        self._options = options
        self._found: set[str] = set()  # the LABEL_WORDS that rows have
        self._keep = ("process" in self._wanted) * lib.FP_SUM_PROCESS | ("thread" in self._wanted) * lib.FP_SUM_THREAD
        self._keep |= inputs * lib.FP_SUM_INPUTS
        self._err = ffi.new("struct fp_err *")
        self._max_memory = options[MAX_MEMORY]
        self._runs = _runs()

    def begin(self, part: Part) -> None:
        """Set the part of the following rows."""
        model, label, thread = self._model, 0, 0
        if "part" in self._separating and part.number:
            label = model.label("part", number=part.number)
            self._found.add("part")
        if (
            "cpu" in self._separating and "cpu" in part.extra
        ):  # as text, like that of timelines, because pprof does not show a number 0
            label = model.label("cpu", str(part.extra["cpu"]), after=label)
            self._found.add("cpu")
        if self._separating & {"thread", "process"} and (part.thread or part.pid):
            thread = model.thread(part.pid or 0, part.thread or 0)
        made = set(part.extra.get("labels", ()))  # by a bridge: CPUs
        self._found |= made
        labels = {"own", *made} & self._wanted
        lib.fp_sum_begin(self._c, self._keep | bool(labels) * lib.FP_SUM_LABELS, label, thread)

    def put(self, batch: Batch, columns: Pointer[int], types: list[ValueType]) -> None:
        """Add rows: value k goes to sum columns[k]; sums have these types."""
        self._widen(len(types))
        row, status = 0, lib.FP_E_OVERFLOW
        while status == lib.FP_E_OVERFLOW:
            status = lib.fp_sum_put(self._c, batch.c, row, columns, self._err)
            row = self._c.taken
            if status == lib.FP_E_OVERFLOW or self._c.keys.n > self._limit():  # sums over several runs may be larger
                self._spill(lib.FP_SUM_BY_KEY)
        self._fits(status, types)

    def _limit(self) -> int:
        """The maximum number of keys in memory."""
        return max(_LEAST_KEYS, self._max_memory // (_KEY_BYTES + 8 * int(self._c.n_values)))

    def _widen(self, n_values: int) -> None:
        if lib.fp_sum_set_values(self._c, n_values):
            raise MemoryError("no memory to sum up stacks")
        self._runs.widen(lib.FP_SUM_HEAD + self._c.n_values)

    def _fits(self, status: int, types: list[ValueType]) -> int:
        """Check a status.  Errors: FastprofError when a sum exceeds 2^63 - 1; MemoryError."""
        return check_sums(status, self._err, self._model, "sums of stacks", types)

    def _spill(self, order: int) -> None:
        self._runs.add(self._ordered(order))
        lib.fp_sum_empty(self._c)

    def _ordered(self, order: int) -> Pull:
        """A pull of the sums in memory."""
        if lib.fp_sum_order(self._c, order):
            raise MemoryError("no memory to put sums in order")
        return partial(lib.fp_sum_pull, self._c)

    def rows(
        self, part: int, types: list[ValueType], columns: Sequence[int], order: int = lib.FP_SUM_AS_SEEN
    ) -> Iterator[Batch]:
        """The sums as rows of `part`, which are then dropped.  Value k is sum columns[k].

        In order of appearance, a sum beyond 64 bits becomes several rows that add up to it; by name it is an error.
        """
        self._widen(len(types))
        numbers = ffi.new("uint32_t[]", list(columns) or 1)
        n_rows = None if len(self._runs) else int(self._c.keys.n)
        if not len(self._runs) and order == lib.FP_SUM_AS_SEEN:
            pull: Callable[[fp_batch], int] = partial(lib.fp_sum_rows_as_seen, self._c, numbers)
        else:
            pull = self._merged(types, numbers, order)
        yield from batches_of("stacks", len(columns), part, pull, n_rows)
        lib.fp_sum_empty(self._c)
        self._runs = _runs()

    def _merged(self, types: list[ValueType], numbers: Pointer[int], order: int) -> Callable[[fp_batch], int]:
        """A pull of rows from the runs and the sums in memory."""
        split = order == lib.FP_SUM_AS_SEEN
        if len(self._runs):
            self._sort_again(types, order, split)
        merge = self._runs.merge(self._ordered(order))
        merge.c.split = split

        def pull(batch: fp_batch) -> int:
            while True:
                status = lib.fp_sum_rows(merge.c, numbers, batch, self._err)
                if self._fits(status, types) != lib.FP_MORE:
                    return int(status)
                merge.feed()

        return pull

    def _sort_again(self, types: list[ValueType], order: int, split: bool) -> None:
        """Sort runs, which are ordered by key, into runs of another order."""
        self._spill(lib.FP_SUM_BY_KEY)
        merge = self._runs.merge()
        merge.c.split = split
        self._runs = _runs()
        self._widen(len(types))
        while status := self._fits(lib.fp_sum_take(self._c, merge.c, self._limit(), self._err), types):
            if status == lib.FP_MORE:
                merge.feed()
            else:
                self._spill(order)

    def log_counts(self) -> None:
        bits = {"process": lib.FP_SUM_PROCESS, "thread": lib.FP_SUM_THREAD}
        self._found |= {name for name, bit in bits.items() if self._c.had & bit}
        log_missing_labels(self._options, self._holds, self._log, self._found)
        self._log.count(REPORTED["sample-times"], self._c.timed)
        if not self._holds.labels:
            what = "sample-labels" if self._holds.threads else "labels-and-threads"
            self._log.count(REPORTED[what], self._c.unlabelled)
