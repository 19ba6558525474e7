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
from fastprof.bridges.room import LEAST_NODES, STACK_BYTES, Room
from fastprof.bridges.sums.reported import REPORTED
from fastprof.bridges.sums.sorted_runs import Merge, Sorted
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Pointer, Pull, fp_batch, fp_sum, fp_walk
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import EVERYTHING, Capabilities, batches_of
from fastprof.core.errors import check_sums
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import Options
from fastprof.core.parts import in_any_order, match_columns, match_values, merge_parts, parts_since


def to_sum(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """One part with every distinct (stack, labels, thread) once, in an order independent of that of the inputs.

    Value types are matched by core/parts.py; values that an input lacks are 0.  Errors: FastprofError when a sum
    exceeds 2^63 - 1.
    """
    yield from added_up(batches, model, options, log, holds)


def added_up(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """`to_sum`, which has read all batches when it returns, but has added no stacks to the model yet."""
    found = set[str]()
    sums = StackSums(model, options, log, holds, found, inputs=options[PER_THREAD] or not holds.labels)
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
    index = model.add_part(part)

    def rows() -> Iterator[Batch]:
        yield from sums.rows(index, events, order, by_name=True, alone=True)
        log_missing_labels(options, holds, log, found)

    return rows()


def repeated(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The rows of one input, part by part, with equal rows added up, depth first.

    A part and those that it continues become one.
    """
    found = set[str]()
    sums = StackSums(model, options, log, holds, found)
    current, n_values = -1, 0
    columns: Pointer[int] = ffi.NULL
    types: list[ValueType] = []
    order, alone = list[int](), True
    for batch in batches:
        ended: Iterator[Batch] = iter(())
        if (batch.part, batch.c.n_values) != (current, n_values):
            if current >= 0 and not model.continues(batch.part, current):
                ended, types, alone = sums.rows(current, types, order), [], False
                sums = sums.next()
            current, n_values = batch.part, batch.c.n_values
            order = match_values(model.parts[current], n_values, types)
            columns = ffi.new("uint32_t[]", order or [0])
            sums.begin(model.parts[current])
        sums.put(batch, columns, types)
        yield from ended  # now that the next part's sums have the batch, whose stacks may be removed meanwhile
    yield from sums.rows(current, types, order, alone=alone) if current >= 0 else ()
    log_missing_labels(options, holds, log, found)


# per key: its row, its part of the index, and two arrays for sorting
_KEY_BYTES = 12 + 22 + 2 * 16
WALKED = 1 << 15  # stacks of merged walks that are in the model at a time, if nothing needs earlier ones
_LEAST_KEYS = 1024  # a lower limit would make short runs


class _Walks(Sorted["fp_walk"]):
    """Runs of sums that are walks of their stacks (csrc/bridges/sums/walk.h), in the order of these sums."""

    def __init__(self, sums: fp_sum) -> None:
        super().__init__(lib.FP_WALK_HEAD + sums.n_values)
        self._sums = sums

    def new(self, n: int) -> fp_walk:
        n_values = self._sums.n_values
        walk = owned(lib.fp_walk_new(n, n_values), "the merge of stacks")
        lib.fp_sum_show_ranks(self._sums, walk)
        for i, run in enumerate(self.runs):
            walk.runs[i].width = run.width
        return walk

    def merged(self, merge: fp_walk, to: Pointer[int], n: int) -> tuple[int, int]:
        got = ffi.new("size_t *")
        status = enough(lib.fp_walk_pull(merge, to, n, got))
        return status, int(got[0])


class StackSums:
    """The table of struct fp_sum, and the inputs of its keys.

    `found`: gets the LABEL_WORDS that rows have.
    `inputs`: threads with equal numbers in different inputs are distinct.
    """

    def __init__(
        self, model: Model, options: Options, log: Log, holds: Capabilities, found: set[str], *, inputs: bool = True
    ) -> None:
        self._c = owned(lib.fp_sum_new(model.c), "the sums of stacks")
        self._model, self._log, self._holds = model, log, holds
        self._wanted = labels_wanted(options, holds)
        self._separating = separating_labels(options, holds)
        self._options, self._found = options, found
        self._keep = ("process" in self._wanted) * lib.FP_SUM_PROCESS | ("thread" in self._wanted) * lib.FP_SUM_THREAD
        self._keep |= inputs * lib.FP_SUM_INPUTS
        self._err = ffi.new("struct fp_err *")
        self._max_memory = options[MAX_MEMORY]
        self._room = Room(self._max_memory, not holds.renews_stacks)
        self._drops_rows = holds.renews_stacks and not holds.keeps_stacks  # nothing needs stacks of earlier rows
        self._walked = holds.stacks_at_a_time or WALKED
        self._runs = _Walks(self._c)
        self._taken = False  # each stack is taken from the model before the next batch
        if holds.renews_stacks:
            model.spills.append(self._spill)

    def next(self) -> StackSums:
        """Those of a part that follows, in the same order."""
        sums = StackSums(self._model, self._options, self._log, self._holds, self._found)
        sums._room.keeps_stacks |= not self._drops_rows  # rows that were given refer to them
        enough(lib.fp_sum_follow(sums._c, self._c))
        return sums

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
        c, row, status = self._c, 0, lib.FP_E_OVERFLOW
        while status == lib.FP_E_OVERFLOW:
            status = lib.fp_sum_put(c, batch.c, row, columns, self._err)
            row = c.taken
            if status == lib.FP_E_OVERFLOW or c.keys.n > self._most_keys():  # sums over several runs may be larger
                self._spill()
        self._fits(status, types)
        key_bytes = _KEY_BYTES + 8 * int(c.n_values)
        if self._room.is_full(len(batch), self._model.count("stacks"), c.keys.n - 1, key_bytes, STACK_BYTES, c.keys):
            if self._room.only_keys:
                self._spill()
            elif self._room.keeps_stacks or not self._model.c.n_waiting:
                self._make_room()
            else:
                self._model.empty_stacks()  # not yet: the reader first gives the rows that refer to some

    def _most_keys(self) -> int:
        """The maximum number of keys in memory."""
        return max(_LEAST_KEYS, self._max_memory // (_KEY_BYTES + 8 * int(self._c.n_values)))

    def _most_stacks(self) -> int:
        """The maximum number of stacks in the model, if they need not stay there."""
        if self._room.keeps_stacks or self._model.keeps_stacks:
            return int(lib.FP_NO_ID)
        return max(LEAST_NODES, self._max_memory // STACK_BYTES)

    def _widen(self, n_values: int) -> None:
        enough(lib.fp_sum_set_values(self._c, n_values))
        self._runs.width = lib.FP_WALK_HEAD + self._c.n_values

    def _fits(self, status: int, types: list[ValueType]) -> int:
        """Check a status.  Errors: FastprofError when a sum exceeds 2^63 - 1; MemoryError."""
        return check_sums(status, self._err, self._model, "sums of stacks", types)

    def _spill(self) -> None:
        if self._c.keys.n > 1:
            self._runs.add(self._ordered())
        lib.fp_sum_empty(self._c)

    def _make_room(self) -> None:
        """Spill the sums and, unless they are kept, remove the stacks that they refer to."""
        self._spill()
        if not self._room.keeps_stacks:
            self._model.empty_stacks()

    def _ordered(self) -> Pull:
        """A pull of the sums in memory."""
        enough(lib.fp_sum_order(self._c))
        return self._pull

    def _pull(self, to: Pointer[int], n: int) -> int:
        got = int(lib.fp_sum_pull(self._c, to, n))
        if self._c.failed:
            raise MemoryError("no memory to put sums in order")
        return got

    def rows(
        self,
        part: int,
        types: list[ValueType],
        columns: Sequence[int],
        *,
        by_name: bool = False,
        alone: bool = False,
    ) -> Iterator[Batch]:
        """The sums as rows of `part`, depth first, once; then what was lost is counted.  Value k is sum columns[k].

        A sum beyond 64 bits becomes several rows that add up to it; by name it is an error.
        `alone`: there are no rows of another part, so each stack occurs in one place.
        """
        self._widen(len(types))
        numbers = ffi.new("uint32_t[]", list(columns) or 1)
        in_memory = not len(self._runs)
        if not in_memory:
            if by_name:
                self._sort_again(types)
            pull = self._merged(types, numbers, split=not by_name)
            self._taken = alone and self._drops_rows and self._model.takes_walks and not self._model.keeps_stacks
            self._model.gives_walk |= self._taken
        else:
            if by_name:
                self._rank()
            self._ordered()
            pull = partial(lib.fp_sum_rows, self._c, numbers)
        self._model.keeps_stacks += in_memory
        try:
            for batch in batches_of("stacks", len(columns), part, pull, int(self._c.keys.n) if in_memory else None):
                yield batch
                if not in_memory and self._drops_rows and self._model.count("stacks") > self._walked:
                    self._model.empty_stacks(taken=self._taken)
        finally:
            self._model.keeps_stacks -= in_memory
            if self._holds.renews_stacks:
                self._model.spills.remove(self._spill)
        self._log_counts()

    def _rank(self) -> None:
        """From now on sums are in the order of their names."""
        enough(lib.fp_sum_rank(self._c))

    def _merged(self, types: list[ValueType], numbers: Pointer[int], *, split: bool) -> Callable[[fp_batch], int]:
        """A pull of rows from the runs and the sums in memory."""
        merge = self._merge(split=split)

        def pull(batch: fp_batch) -> int:
            self._c.once = self._taken or (self._drops_rows and not self._model.keeps_stacks)
            most = self._walked if self._c.once else int(lib.FP_NO_ID)
            while True:
                status = lib.fp_sum_walk(self._c, merge.c, numbers, most, batch, self._err)
                if self._fits(status, types) != lib.FP_MORE:
                    return int(status)
                merge.feed()

        return pull

    def _merge(self, *, split: bool) -> Merge[fp_walk]:
        self._make_room()
        merge = self._runs.merge()
        merge.c.split = split
        return merge

    def _sort_again(self, types: list[ValueType]) -> None:
        """Sort runs, which are ordered by ids, into runs ordered by names."""
        merge = self._merge(split=False)
        self._runs = _Walks(self._c)
        self._rank()
        while status := self._fits(
            lib.fp_sum_take(self._c, merge.c, self._most_keys(), self._most_stacks(), self._err), types
        ):
            if status == lib.FP_MORE:
                merge.feed()
            else:
                self._make_room()

    def _log_counts(self) -> None:
        bits = {"process": lib.FP_SUM_PROCESS, "thread": lib.FP_SUM_THREAD}
        self._found |= {name for name, bit in bits.items() if self._c.had & bit}
        self._log.count(REPORTED["sample-times"], self._c.timed)
        if not self._holds.labels:
            what = "sample-labels" if self._holds.threads else "labels-and-threads"
            self._log.count(REPORTED[what], self._c.unlabelled)
