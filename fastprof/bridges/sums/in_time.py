"""Stacks -> stacks in order of time, for formats that draw samples on a time axis (csrc/bridges/sums/in_time.h).

    5 ms main > g  2            main > f       4
    main > f       1   becomes  2 ms main > h  1
    main > f       3            5 ms main > g  2
    2 ms main > h  1

Rows without a time come first; equal ones are added up.
"""

from collections.abc import Callable, Iterable, Iterator

from fastprof.bridges.sums.reported import REPORTED
from fastprof.bridges.sums.sum import repeated
from fastprof.core._c import lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import CAPACITY, EVERYTHING, Capabilities
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, empty
from fastprof.core.options import MAX_MEMORY, Options
from fastprof.core.spill import MOST_ROUNDS, Spilled


def in_time(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Batch]:
    """The rows of one input.  Those with a time keep their labels, from which a writer may know a thread's name."""
    by_time = _ByTime(min(options[MAX_MEMORY], MOST_ROUNDS), model)
    try:
        yield from repeated(by_time.without_times(batches), model, options, log, holds)
        yield from by_time.rows()
    finally:
        by_time.end()
    if not holds.labels:
        log.count(REPORTED["sample-labels"], by_time.labelled)


class _ByTime:
    """Rows with times, in a temporary file beyond `most` bytes.  They refer to their stacks until the `end`."""

    def __init__(self, most: int, model: Model) -> None:
        self._model, self._keeps = model, False
        self._c = owned(lib.fp_in_time_new(), "samples in order of time")
        self._c.rounds.most = most
        self._spilled = Spilled()

    @property
    def labelled(self) -> int:
        return int(self._c.labelled)

    def without_times(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches with the rows that have no time; the others are kept."""
        for batch in batches:
            self._done(lambda: lib.fp_in_time_put(self._c, batch.c))  # noqa: B023
            if self._c.rows and not self._keeps:
                self._keeps = True
                self._model.keeps_stacks += 1
            yield batch

    def rows(self) -> Iterator[Batch]:
        out = Batch("stacks", CAPACITY["stacks"])
        while self._done(lambda: lib.fp_in_time_take(self._c, out.c)) == lib.FP_FULL:
            yield out
            empty(out)
        if len(out):
            yield out

    def end(self) -> None:
        self._model.keeps_stacks -= self._keeps

    def _done(self, call: Callable[[], int]) -> int:
        """Call until it asks for nothing more."""
        while (status := enough(call())) == lib.FP_NEEDS:
            self._spilled.answer(self._c.rounds)
        return status
