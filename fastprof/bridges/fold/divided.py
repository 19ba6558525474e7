"""Divides the rows of a timeline among several tables, by thread of the timeline."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from fastprof.core import workers
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, fp_shares
from fastprof.core.engine import Encoded
from fastprof.core.model import Batch, Model, empty

if TYPE_CHECKING:
    from fastprof.bridges.fold.accumulators import Accumulator

_ROWS = 1 << 15  # of a shared batch: larger batches wake threads less often
_AHEAD = 8  # shared batches per table that may wait; about as many are read while a table is spilled


class _Lent:
    """A batch shared by several tables."""

    def __init__(self, batch: Batch, number: int, takers: int, known: tuple[int, int]) -> None:
        self.batch, self.number, self.left, self.known = batch, number, takers, known


class Divided:
    """Accumulators 0 to n - 1; each takes the rows of its share (struct fp_shares *) of the threads.

    The first rows are folded immediately.  Once there are many, each table folds its rows in a worker thread, which
    also decodes Encoded batches, while the next rows are read.  The reading thread holds the model's lock throughout,
    except while `put` waits.
    """

    def __init__(
        self, shares: fp_shares, table: Callable[[int], Accumulator], whole: Accumulator, model: Model
    ) -> None:
        self._shares, self._table, self._whole, self._model = shares, table, whole, model
        n = shares.n
        self._tables: dict[int, Accumulator] = {}
        self._wanted, self._next = ffi.new("uint8_t[]", n), ffi.new("uint32_t *")
        self._rows = 0
        self.in_threads = False
        self._workers: dict[int, workers.Workers] = {}
        self._room = threading.Semaphore(_AHEAD * n)  # counts batches that may still be shared
        self._free: list[Batch] = []  # the last one is still in the caches
        self._lock = threading.Lock()  # protects the three fields below, and the tables left of shared batches
        self._number = 0
        self._errors: list[BaseException] = []  # the earliest; removed when raised: its traceback refers to this
        self._failed_at = 1 << 63
        model.lock.acquire()

    @property
    def tables(self) -> list[Accumulator]:
        return [table for _, table in sorted(self._tables.items())]

    def put(self, batch: Batch) -> None:
        """Fold a batch, whose memory may be replaced.  Errors: those of the tables, also for earlier rows."""
        encoded = isinstance(batch, Encoded)
        if not self.in_threads and (encoded or (self._rows >= workers.FEW_ROWS and len(self._tables) > 1)):
            self.in_threads = True
        known = self._names()
        self._whole.register(None, known)
        takers = self._takers(batch)
        self._rows += len(batch)
        if self.in_threads:
            self._lend(batch, takers, known)
            return
        for i in takers:
            table = self._table_of(i)
            table.register(self._whole, known)
            table.put(batch)

    def _table_of(self, i: int) -> Accumulator:
        if i not in self._tables:
            self._tables[i] = self._table(i)
        return self._tables[i]

    def _names(self) -> tuple[int, int]:
        return self._model.c.functions.n, self._model.c.threads.n

    def _takers(self, batch: Batch) -> list[int]:
        if isinstance(batch, Encoded):
            return batch.takers(self._shares, self._give)
        ffi.memmove(self._wanted, bytes(self._shares.n), self._shares.n)
        self._next[0] = 0
        while (thread := lib.fp_fold_shares(batch.c, self._shares, self._wanted, self._next)) != lib.FP_NO_ID:
            self._give(thread)
        return [i for i, wanted in enumerate(bytes(ffi.buffer(self._wanted))) if wanted]

    def _give(self, thread: int) -> None:
        """Assign a new thread to the share with the least work."""
        number, pid, tid = self._model.row("threads", thread)
        nbytes_of = self._model.nbytes_of_threads.get(number)
        lib.fp_shares_assign(self._shares, thread, nbytes_of(pid, tid) if nbytes_of else 1)

    def _lend(self, batch: Batch, takers: list[int], known: tuple[int, int]) -> None:
        mine = batch
        if not isinstance(batch, Encoded):
            with self._model.lent():
                self._room.acquire()
            c = batch.c
            mine = self._free.pop() if self._free else Batch("timeline", _ROWS)
            empty(mine)
            mine.c.part = c.part
            lib.fp_batch_swap(c, mine.c)
        lent = _Lent(mine, self._number, len(takers), known)
        self._number += 1
        left = [*takers]
        try:
            if self._errors:
                self.end()
            while left:
                self._give_to(left[0], partial(self._take_or_fail, left[0], lent))
                del left[0]
        finally:
            for i in left:  # other tables may wait for it
                self._taken(i, lent)

    def _give_to(self, i: int, call: Callable[[], None]) -> None:
        if i not in self._workers:
            self._table_of(i)
            self._workers[i] = workers.Workers()
        worker = self._workers[i]
        for _ in range(worker.n_ready()):
            worker.result()
        worker.give(call)

    def _take_or_fail(self, i: int, lent: _Lent) -> None:
        try:
            if lent.number < self._failed_at:
                self._take(i, lent)
        except BaseException as error:
            self._fail(lent.number, error)
        self._taken(i, lent)

    def _taken(self, i: int, lent: _Lent) -> None:
        if isinstance(lent.batch, Encoded):
            lent.batch.taken(i)
            return
        with self._lock:
            lent.left -= 1
            if not lent.left:
                self._free.append(lent.batch)
                self._room.release()

    def _end_table(self, i: int) -> None:
        if self._number < self._failed_at:  # all batches were folded
            try:
                self._tables[i].end()
            except BaseException as error:
                self._fail(self._number, error)

    def _take(self, i: int, lent: _Lent) -> None:
        table = self._tables[i]
        table.register(self._whole, lent.known)
        if not isinstance(lent.batch, Encoded):
            table.put(lent.batch)
            return
        feed = lent.batch.feed(i)
        while table.feed(feed) != lib.FP_DONE:
            if lent.batch.answer(i):
                with self._model.lock:
                    known = self._names()
                    self._whole.register(None, known)
                    table.register(self._whole, known)

    def _fail(self, number: int, error: BaseException) -> None:
        with self._lock:
            if number < self._failed_at:
                self._failed_at, self._errors = number, [error]

    def _wait(self) -> None:
        """Wait until all rows are folded."""
        with suppress(RuntimeError):  # the lock is released already
            self._model.lock.release()
        for i, worker in self._workers.items():
            worker.give(partial(self._end_table, i))
        for worker in self._workers.values():
            while len(worker):
                worker.result()
            worker.stop()
        if self._workers:
            for i in self._tables.keys() - self._workers.keys():
                self._end_table(i)
        self._workers = {}

    def end(self) -> None:
        """End the tables after the last row.  Errors: those of the tables."""
        self._wait()
        if self._errors:
            raise self._errors.pop()
        if not self.in_threads:
            for table in self.tables:
                table.end()

    def stop(self, error: BaseException) -> None:
        """End the tables after reading failed with `error`.  Errors: those of the tables, for earlier rows."""
        if not isinstance(error, Exception):
            self._failed_at = 0
            for table in self._tables.values():
                table.halt.requested = True
        self._wait()
        if self._errors and isinstance(error, Exception):
            raise self._errors.pop()
