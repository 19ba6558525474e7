"""Adds up sorted runs of call arcs in several threads, each for some ranges of keys of all runs.

    keys          0         a         b         c         d         e
    run 0         |  ....   |  ..     |  ...    |  ....   |   ..    |
    run 1         |   ..    |  ....   |  ....   |   .     |  ....   |
    added up by    reader    thread    thread    reader    thread

The reader, which turns the sums into rows, needs the ranges in order.  Threads add up the next ranges in memory.
If only few are ready, the reader adds one up itself, which needs no memory for sums.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from contextlib import ExitStack
from functools import partial

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Pointer, Pull, fp_arc_sums
from fastprof.core.c_memory import owned
from fastprof.core.workers import Workers

if TYPE_CHECKING:
    from fastprof.bridges.fold.arc_runs import ArcRuns

Key = tuple[int, int]
# For each run, the offset and length to read; from the first key on, before the second.
_Range = tuple[list[tuple[int, int]], Key | None, Key | None]

_LEAST = 400  # minimum arcs of a run in a range: a block, about 200 arcs, is read for each range that it touches
_KEYS = 4096  # number of keys from which the ends of ranges are chosen
_PIECE = 512 * 1024  # bytes of sums that a thread passes on at a time
_ARC_BYTES = 8 * lib.FP_ARC_WIDTH
_FEW, _MANY = 2, 3  # numbers of ready ranges


class Ranges:
    """`n_threads` workers besides the reading thread.  `memory`: bytes for records being added up and their sums."""

    def __init__(self, runs: ArcRuns, n_threads: int, memory: int, threads: ExitStack) -> None:
        self._runs = runs
        # If all keys differ, sums made ahead take as much memory as unpacked records.
        n_arcs = max(1, memory // 2 // (n_threads + 1) // _ARC_BYTES, len(runs) * _LEAST)  # of a range
        self._ends = self._choose_ends(n_arcs)
        self._at = [0] * len(runs)  # by run: the position in its index where the next range begins
        self._pull: Pull = lambda to, n: 0  # of the range being read
        self._n_begun = 0  # ranges
        self._n_threads, self._workers = n_threads, Workers(n_threads)
        self._next: deque[_Range | None] = deque()  # started and not yet read; None: by a thread
        self._free: deque[tuple[fp_arc_sums, bytearray]] = deque()  # unused sums and memory for records
        threads.callback(self._workers.stop)
        self._go_on()

    def _choose_ends(self, n_arcs: int) -> list[Key | None]:
        """The keys between ranges of about `n_arcs` arcs.  The first range has no beginning, the last no end."""
        runs = self._runs.runs
        n = sum(run.n_arcs for run in runs) // n_arcs
        every = 1 + sum(len(run.keys) for run in runs) // _KEYS
        keys = sorted(key for run in runs for key in zip(run.groups[::every], run.keys[::every], strict=True))
        return [None, *(keys[i * len(keys) // (n + 1)] for i in range(1, n + 1)), None]

    def pull(self, to: Pointer[int], n: int) -> int:
        """Up to `n` words of sums, in order; 0 at the end."""
        while not (got := self._pull(to, n)) and self._next:
            self._read_next()
        return got

    def _read_next(self) -> None:
        mine = self._next.popleft()
        self._go_on()
        self._pull = _given(self._workers.result()) if mine is None else self._sums(*mine)

    def _go_on(self) -> None:
        """Start ranges until all threads are busy; at least one if any is left."""
        while self._n_begun + 1 < len(self._ends) and len(self._workers) < self._n_threads + _MANY - 1:
            range_ = self._take()
            if all(one is None for one in self._next) and self._workers.n_ready() < _FEW:
                self._next.append(range_)
                if not self._n_threads:
                    return
            else:
                self._next.append(None)
                self._workers.give(partial(self._all_sums, range_))

    def _take(self) -> _Range:
        """The next range."""
        low, high = self._ends[self._n_begun : self._n_begun + 2]
        self._n_begun += 1
        places = []
        for i, run in enumerate(self._runs.runs):
            # The first record of the range is known only after reading those before it in its block.
            begin, end = self._at[i], len(run.keys)
            if high is not None:
                begun, ended = bisect_left(run.groups, high[0], begin), bisect_right(run.groups, high[0], begin)
                end = bisect_left(run.keys, high[1], begun, ended)
            self._at[i] = max(end - 1, begin)
            first, last = ((run.offsets[at] if at < len(run.offsets) else run.nbytes) for at in (begin, end))
            places.append((run.offset + first, last - first))
        return places, low, high

    def _sums(self, places: list[tuple[int, int]], low: Key | None, high: Key | None) -> Pull:
        """Read the records, and add them up in memory."""
        # The result must not refer back to this object: a reference cycle would keep temporary files open.
        runs, free, at = self._runs, self._free, 0
        try:
            sums, memory = free.pop()
        except IndexError:
            sums, memory = self._new_sums(), bytearray()
        room = sum(nbytes for _, nbytes in places) + lib.FP_ARC_SLACK
        if len(memory) < room:
            memory = bytearray(room)
        view = memoryview(memory)
        for run, (offset, nbytes) in zip(runs.runs, places, strict=True):
            run.file.read(offset, view[at : at + nbytes])
            at += nbytes
        nbytes_of = ffi.new("size_t[]", [nbytes for _, nbytes in places])
        got, err = ffi.new("size_t *"), ffi.new("struct fp_err *")
        first, last = (ffi.NULL if key is None else ffi.new("uint64_t[]", key) for key in (low, high))
        bytes_ = ffi.from_buffer("uint8_t[]", memory)
        runs.check(lib.fp_arc_sums_begin(sums, bytes_, nbytes_of, len(places), first, last, err), err)

        def pull(to: Pointer[int], n: int) -> int:
            runs.check(lib.fp_arc_sums_pull(sums, to, n, got, err), err)
            if not got[0]:
                free.append((sums, memory))
            return int(got[0])

        return pull

    def _new_sums(self) -> fp_arc_sums:
        n_functions = self._runs.model.functions.n
        return owned(lib.fp_arc_sums_new(n_functions), "the sums of call arcs")

    def _all_sums(self, range_: _Range) -> deque[bytes]:
        """All sums of a range; runs in a worker thread."""
        pull, n = self._sums(*range_), max(1, _PIECE // _ARC_BYTES) * lib.FP_ARC_WIDTH
        chunk, found = ffi.new("uint64_t[]", n), deque[bytes]()
        while got := pull(chunk, n):
            found.append(bytes(ffi.buffer(chunk, got * 8)))
        return found


def _given(pieces: deque[bytes]) -> Pull:
    """A pull of words in memory, which frees the memory as it goes."""
    at = 0

    def pull(to: Pointer[int], n: int) -> int:
        nonlocal at
        if not pieces:
            return 0
        part = memoryview(pieces[0])[at : at + 8 * n]
        ffi.memmove(to, part, len(part))
        at += len(part)
        if at == len(pieces[0]):
            pieces.popleft()
            at = 0
        return len(part) // 8

    return pull
