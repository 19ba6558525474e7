"""Stacks -> stacks: equal rows summed up (csrc/bridges/sum.h).

    main > f  {size: 8}  1
    main > g             2    becomes    main > f  {size: 8}  4
    main > f  {size: 8}  3               main > g             2

`--labels` says what keeps rows apart: their own labels, their thread and process,
the part they come from.  CPUs are labels already: only timelines know them, and
fold.py makes the labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fastprof.bridges import MAX_MEMORY, labels_apart, labels_wanted, tell_missing_labels
from fastprof.bridges.pull import batches_of
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import EVERYTHING, Holds
from fastprof.core.errors import check_sums
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.owner import owned
from fastprof.core.parts import match_columns, merge_parts
from fastprof.core.report import Report


def to_sum(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """One part with every distinct (stack, labels, thread) once.  Memory is linear in these.

    Value types are matched by core/parts.py; those of one input only are 0
    elsewhere.
    """
    sums = StackSums(model, options, report, holds)
    events: list[ValueType] = []
    columns: dict[int, Any] = {}
    current = -1
    for batch in batches:
        if batch.part not in columns:
            columns[batch.part] = match_columns(model.parts[batch.part], batch.c.n_values, events)
        if batch.part != current:
            current = batch.part
            sums.begin(model.parts[current])
        sums.fits(sums.put(batch, columns[current], len(events)), events)
    part = model.add_part(merge_parts([model.parts[i] for i in columns], events))
    yield from sums.rows(part, len(events))
    sums.tell()


def repeated(
    batches: Iterable[Batch], model: Model, options: Options, report: Report, holds: Holds = EVERYTHING
) -> Iterator[Batch]:
    """The rows of one input, part by part, equal ones summed up.

    The table holds as many rows as `--max-memory` has room for.  When it is full they are given out, so a row may
    come again later.
    """
    sums = StackSums(model, options, report, holds)
    current, n_values, columns = -1, 0, ffi.NULL
    limit = 0
    for batch in batches:
        same = (batch.part, batch.c.n_values) == (current, n_values)
        if current >= 0 and not (same and sums.n < limit):
            yield from sums.rows(current, n_values)
        if not same:
            current, n_values = batch.part, batch.c.n_values
            columns = ffi.new("uint32_t[]", list(range(n_values)) or 1)
            limit = options[MAX_MEMORY] // (_KEY_BYTES + 8 * n_values)
            sums.begin(model.parts[current])
        status = sums.put(batch, columns, n_values)
        while status == lib.FP_E_OVERFLOW:  # samples that no sum can hold stay as they are
            yield from sums.rows(current, n_values)
            status = sums.put(batch, columns, n_values, sums.taken)
        sums.fits(status, model.parts[current].value_types)
    if current >= 0:
        yield from sums.rows(current, n_values)
    sums.tell()


_KEY_BYTES = 12 + 22  # a key and its share of the index


class StackSums:
    """The table of struct fp_sum, and what its keys are made of."""

    def __init__(self, model: Model, options: Options, report: Report, holds: Holds) -> None:
        self._c = owned(lib.fp_sum_new(model.c), lib.fp_sum_free, "the sums of stacks")
        self._model, self._report, self._holds = model, report, holds
        self._wanted = labels_wanted(options, holds)
        self._apart = labels_apart(options, holds)
        self._options = options
        self._found: set[str] = set()  # labels of rows, of LABEL_WORDS
        self._keep = ("process" in self._wanted) * lib.FP_SUM_PROCESS | ("thread" in self._wanted) * lib.FP_SUM_THREAD
        self._err = ffi.new("struct fp_err *")

    @property
    def n(self) -> int:
        """Distinct rows so far."""
        return int(self._c.keys.n) - 1

    def begin(self, part: Part) -> None:
        """The rows to come are of this part."""
        model, label, thread = self._model, 0, 0
        if "part" in self._apart and part.number:
            label = model.label("part", number=part.number)
            self._found.add("part")
        if self._apart & {"thread", "process"} and (part.thread or part.pid):
            thread = model.thread(part.pid or 0, part.thread or 0)
        made = set(part.extra.get("labels", ()))  # by a bridge: CPUs
        self._found |= made
        labels = {"own", *made} & self._wanted
        lib.fp_sum_begin(self._c, self._keep | bool(labels) * lib.FP_SUM_LABELS, label, thread)

    @property
    def taken(self) -> int:
        """After an overflow: how many rows of the batch were taken."""
        return int(self._c.taken)

    def put(self, batch: Batch, columns: Any, n_values: int, row: int = 0) -> int:
        """Add the rows from `row` on; the status of fp_sum_put."""
        if lib.fp_sum_set_values(self._c, n_values):
            raise MemoryError("no memory to sum up stacks")
        return int(lib.fp_sum_put(self._c, batch.c, row, columns, self._err))

    def fits(self, status: int, events: list[ValueType]) -> None:
        """Errors: FastprofError when a sum is beyond 2^63 - 1, MemoryError."""
        check_sums(status, self._err, self._model, "sums of stacks", events)

    def rows(self, part: int, n_values: int) -> Iterator[Batch]:
        """The sums as rows of `part`, which are then forgotten."""
        yield from batches_of("stacks", n_values, part, partial(lib.fp_sum_pull, self._c))
        lib.fp_sum_empty(self._c)

    def tell(self) -> None:
        bits = {"process": lib.FP_SUM_PROCESS, "thread": lib.FP_SUM_THREAD}
        self._found |= {name for name, bit in bits.items() if self._c.had & bit}
        tell_missing_labels(self._options, self._holds, self._report, self._found)
        not_representable = self._report.not_representable
        not_representable.add("sample-times", "times of samples", self._c.timed)
        if not self._holds.labels:
            not_representable.add("sample-labels", "labels and threads of samples", self._c.unlabelled)
