"""The tables of the stack machine: each has a struct fp_fold and its runs on disk."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from fastprof.bridges.fold.arc_runs import ArcRuns
from fastprof.bridges.sums.sorted_runs import Halt, Merge, Sorted, Words
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Check, Pointer, Pull, fp_feed, fp_fold, fp_fold_tree, fp_merge
from fastprof.core.c_memory import enough, owned
from fastprof.core.model import Batch

# per arc: struct fp_fold_arc, index entries, and the orders or links used for sorting
_ARC_BYTES = 48 + 8 + 12
_LEAST_ARCS = 1024  # a lower limit would make many short runs
_MANY_CONTEXTS = 1 << 15  # more than a core's L2 cache holds
_TAKEN_CONTEXTS = 1 << 14  # the same next to another machine, for Drained
_STREAM = 64 * 1024  # bytes of records that a table's thread merges at a time


class Accumulator:
    """Folds the rows of a timeline.  `limit`: its size in bytes above which it is spilled."""

    def __init__(self, fold: fp_fold, limit: int, check: Check, lock: RLock) -> None:
        self.fold = fold
        self._lock = lock  # of the model
        self.halt = Halt()
        self._windows = limit // 2
        fold.hard_limit = max(_LEAST_ARCS, limit // _ARC_BYTES)
        self._err = ffi.new("struct fp_err *")
        self._check = check
        self.registered: tuple[int, int] | None = None  # at least this many functions and threads
        self._joined: list[Accumulator] = []

    def check(self, status: int) -> int:
        return self._check(status, self._err)

    def register(self, like: Accumulator | None = None, known: tuple[int, int] | None = None) -> None:
        """Register the functions and threads of the model.  `like`: a table that has them; `known`: their numbers."""
        if known is None or known != self.registered:
            with self._lock:
                enough(lib.fp_fold_register(self.fold, like.fold if like else ffi.NULL))
            self.registered = known

    def put(self, batch: Batch) -> None:
        """Fold a batch."""
        if self.check(lib.fp_fold_put(self.fold, batch.c, self._err)) == lib.FP_FULL:
            self._spill_and_drop()

    def feed(self, feed: fp_feed) -> int:
        """Fold the rows of a feed until it needs the caller or ends; returns its status."""
        while self.check(lib.fp_fold_feed(self.fold, feed, self._err)) == lib.FP_FULL:
            self._spill_and_drop()
        return int(feed.status)

    def _spill_and_drop(self) -> None:
        fold = self.fold
        self._spill(keep_hot=True)
        enough(lib.fp_fold_drop_spilled(fold))
        fold.hard_limit = max(fold.hard_limit, 2 * fold.n_arcs)

    def end(self) -> None:
        """End open calls and sort; call it after the last batch."""
        self.check(lib.fp_fold_end(self.fold, self._err))
        if self.fold.n_arcs and self.has_runs():  # runs are merged in its memory
            self._spill(keep_hot=False)
            lib.fp_fold_drop(self.fold)
        self._order()

    def join(self, other: Accumulator) -> None:
        """Join another table, which has ended, to this one, which has not."""
        self.check(lib.fp_fold_join(self.fold, other.fold, self._err))
        self._joined.append(other)

    def has_runs(self) -> bool:
        """Whether anything was spilled."""
        raise NotImplementedError

    def _order(self, keep_hot: bool = False) -> None:
        raise NotImplementedError

    def _spill(self, keep_hot: bool) -> None:
        """Write the machine's sums as sorted runs; with `keep_hot`, all but those with the most calls."""
        raise NotImplementedError


class Arcs(Accumulator):
    """Call arcs, for a graph."""

    def __init__(self, fold: fp_fold, limit: int, check: Check, lock: RLock) -> None:
        super().__init__(fold, limit, check, lock)
        self._arcs, self._nodes = ArcRuns(fold.model, check), Words(lib.FP_NODE_WIDTH)
        self._arcs.halt = self._nodes.halt = self.halt

    def _order(self, keep_hot: bool = False) -> None:
        enough(lib.fp_fold_order(self.fold, keep_hot))

    def _spill(self, keep_hot: bool) -> None:
        self._order(keep_hot)
        self._arcs.add(partial(lib.fp_fold_pull_arcs, self.fold))
        self._nodes.add(partial(lib.fp_fold_pull_nodes, self.fold))

    def join(self, other: Accumulator) -> None:
        super().join(other)
        assert isinstance(other, Arcs)
        self._arcs.runs += other._arcs.runs
        self._nodes.runs += other._nodes.runs

    def has_runs(self) -> bool:
        return len(self._arcs) > 0

    @property
    def _folds(self) -> list[fp_fold]:
        return [self.fold, *(table.fold for table in self._joined)]

    def nodes(self) -> Merge[fp_merge]:
        """The nodes; call it after `end` and, because it restarts all pulls, before pulling from `arcs`."""
        for fold in self._folds:
            lib.fp_fold_rewind(fold)
        return self._nodes.merge(*(partial(lib.fp_fold_pull_nodes, fold) for fold in self._folds))

    def arcs(self, several: bool, threads: ExitStack) -> Merge[fp_merge]:
        """The arcs; call it once, after `end`.  With spilled runs and `several`, further threads add arcs up from
        now on, until `threads` is closed.  Otherwise the consumer adds them up alone."""
        pulls = [partial(lib.fp_fold_pull_arcs, fold) for fold in self._folds if fold.n_arcs]
        arcs = Words(lib.FP_ARC_WIDTH)
        if not self.has_runs():
            return arcs.merge(*pulls)
        from fastprof.bridges.fold.ranges import Ranges

        for pull in pulls:
            self._arcs.add(pull)
        n_tables = max(1, len(self._joined))
        return arcs.merge(
            Ranges(self._arcs, max(1, n_tables - 1) * several, 2 * self._windows * n_tables, threads).pull
        )


class _PathRuns(Sorted["fp_fold_tree"]):
    """Runs of call paths."""

    def __init__(self, fold: fp_fold, check: Check) -> None:
        super().__init__(1, "uint8_t")
        self._fold, self._check = fold, check

    def new(self, n: int) -> fp_fold_tree:
        return owned(lib.fp_fold_tree_new(self._fold, n), "the merge of call paths")

    def merged(self, merge: fp_fold_tree, to: Pointer[int], n: int) -> tuple[int, int]:
        got, err = ffi.new("size_t *"), ffi.new("struct fp_err *")
        return self._check(lib.fp_fold_tree_pull(merge, to, n, got, err), err), int(got[0])


class Drained(Accumulator):
    """Call paths for another consumer, which takes them whenever there are many."""

    def __init__(self, fold: fp_fold, check: Check, lock: RLock, take: Callable[[fp_fold], None]) -> None:
        super().__init__(fold, _TAKEN_CONTEXTS * _ARC_BYTES, check, lock)
        fold.soft_limit = _TAKEN_CONTEXTS
        self._take = take

    def end(self) -> None:
        super().end()
        self._spill(keep_hot=False)

    def _order(self, keep_hot: bool = False) -> None:
        pass

    def _spill(self, keep_hot: bool) -> None:
        self._take(self.fold)

    def has_runs(self) -> bool:
        return False


class Paths(Accumulator):
    """Call paths, for stacks."""

    def __init__(self, fold: fp_fold, limit: int, check: Check, lock: RLock) -> None:
        super().__init__(fold, limit, check, lock)
        # Most call paths are new, so looking them up in a table larger than the caches does not pay.
        fold.soft_limit = _MANY_CONTEXTS
        self._runs = _PathRuns(fold, check)
        self._runs.halt = self.halt

    def _order(self, keep_hot: bool = False) -> None:
        with self._lock:
            enough(lib.fp_fold_rank(self.fold))
        enough(lib.fp_fold_link(self.fold))

    def _spill(self, keep_hot: bool) -> None:
        self._order()
        self._runs.add(partial(lib.fp_fold_pull_tree, self.fold))

    def has_runs(self) -> bool:
        return len(self._runs) > 0 or any(table.has_runs() for table in self._joined)

    def merge(self, threads: ExitStack | None) -> Merge[fp_fold_tree]:
        """The call paths; call it once, after `end`."""
        merges = [table.merge(None) for table in self._joined if isinstance(table, Paths)]
        others = [merge.pull if threads is None else streamed(merge, threads) for merge in merges]
        return self._runs.merge(partial(lib.fp_fold_pull_tree, self.fold), *others, windows=self._windows)


def streamed(merge: Merge[fp_fold_tree], threads: ExitStack) -> Pull:
    """The bytes of `merge` as input of another merge.  A thread produces them, until `threads` is closed."""
    from fastprof.core.workers import Prefetch

    chunk = ffi.new("uint8_t[]", _STREAM)
    ahead = Prefetch(lambda: bytes(ffi.buffer(chunk, merge.pull(chunk, _STREAM))))
    threads.callback(ahead.stop)
    return lambda to, n: ahead.readinto(memoryview(ffi.buffer(to, n)))
