"""Stacks -> as many of them as a viewer can open, in one file or one per thread (csrc/bridges/budget/fit_stacks.h).

    main > a > b 5, main > a > c 1, main > a > c > d 1, main > e 93      less than 3 % pruned:
    main > a > b 5, main > a > [pruned] 2,              main > e 93

Kept: every total; each stack that costs enough, with its callers.  Lost: times of samples, if they do not fit, so that
equal rows are added up; then the other stacks.  They are counted, with their share of each value type.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from fastprof.bridges.budget.reported import REPORTED
from fastprof.bridges.room import within
from fastprof.bridges.sums.sum import WALKED, repeated
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple, Pointer
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import CAPACITY, Budget, Capabilities
from fastprof.core.errors import check_sums, inputs_of, usage_error
from fastprof.core.log import Log, percent
from fastprof.core.messages import spelled
from fastprof.core.model import Batch, Model, ValueType, empty, set_values
from fastprof.core.options import Options
from fastprof.core.parts import match_columns
from fastprof.core.spill import Groups
from fastprof.core.streams import temporary_failed

_BUFFERED = 1 << 20  # bytes of packed rows kept in memory
_NODES = 1 << 18  # stacks of a walk kept in memory, 32 bytes each


_WITH_TIMES = -1  # the rank of rows that keep their times


class Pruned(NamedTuple):
    """The stacks of a group that were merged into a frame [pruned]."""

    share: float  # of the total: each pruned stack is below it
    stacks: int
    values: list[float]  # by value type: the sum of these stacks
    of: list[float]  # by value type: the sum of all stacks
    times: int  # samples whose time was dropped


class Trim:
    """All stacks rows, one group per output file."""

    highest: int = lib.FP_FIT_STACKS_RANKS
    least = "with everything in [pruned]"  # what is left at the highest rank
    first_time: int | None = None

    def __init__(self, model: Model, size: Budget, options: Options, holds: Capabilities, split: str | None) -> None:
        self._c = owned(lib.fp_fit_stacks_new(model.c, split is not None), "the stacks of a profile")
        self._model, self._size, self._options, self._holds = model, size, options, holds
        self._packed, self._in_file = Groups(), False
        self._events: list[ValueType] = []
        self._columns: dict[int, Pointer[int]] = {}  # by part: the event of each of its values
        self._weighed = -1  # the group that `_c` has ranked
        self._totals: Pointer[float] = ffi.NULL  # totals of that group, by event
        self._values: Pointer[float] = ffi.NULL  # of its pruned stacks, by event

    def read(self, batches: Iterable[Batch]) -> None:
        """Store rows.  Errors: FastprofError for too many groups."""
        err = ffi.new("struct fp_err *")
        self._model.takes_walks = True
        for batch in batches:
            if not self._columns:  # sums have read their input before their first row
                self._model.keeps_stacks += 1
                self._c.is_walk = self._model.gives_walk
            if batch.part not in self._columns:
                columns = match_columns(self._model, batch.part, batch.c.n_values, self._events)
                self._columns[batch.part] = columns
            status = lib.fp_fit_stacks_put(self._c, batch.c, err)
            if error := int(self._c.file_error):
                raise temporary_failed(OSError(error, os.strerror(error)))
            check_sums(status, err, self._model, spelled("--split", "name"))
            if self._c.n_of > _NODES and not self._in_file:
                self._in_file = True
                lib.fp_fit_stacks_to_file(self._c, self._packed.file().fileno())
            if self._c.packed > _BUFFERED:
                for number in range(self._c.n_groups):
                    self._packed.take(number, self._c.groups[number].packed)
                self._c.packed = 0
        self._model.keeps_stacks -= self._c.is_renewed  # they are here

    def threads(self) -> list[int]:
        """With a split: the thread of each group.  Errors: UsageError if no row has a thread."""
        found = [int(self._c.groups[i].thread) for i in range(self._c.n_groups)]
        if found and not any(found):
            what = "{inputs}{--split:=}thread has nothing to split: no sample has a thread"
            raise usage_error(what, inputs=inputs_of(self._model))
        return found

    # ---- ranks

    def first_rank(self, group: int, nbytes: int) -> int:
        """The rank to try first: all stacks if rows are few, otherwise as many as may fit (sizes are estimates)."""
        few = self._packed.nbytes + self._c.packed < nbytes // 4
        if self._timed(group) and (few or self.estimated(group, _WITH_TIMES) <= 2 * nbytes):
            return _WITH_TIMES
        return 0 if few else self.rank(group, 2 * nbytes)

    def _timed(self, group: int) -> int:
        return int(self._c.groups[group].timed) if group < self._c.n_groups else 0

    def rank(self, group: int, nbytes: int) -> int:
        """The lowest rank at which the stacks are estimated to fit this many bytes."""
        left, rank = self.estimated(group, 0), 0
        while left > nbytes and rank < self.highest:
            left -= int(self._c.bytes[rank])
            rank += 1
        return rank

    def estimated(self, group: int, rank: int) -> int:
        """The estimated bytes of stacks of this rank or a higher one."""
        self._weigh(group)
        if rank == _WITH_TIMES:
            return self.estimated(group, 0) + self._timed(group) * self._size.sample
        return sum(ffi.unpack(self._c.bytes + rank, self.highest + 1 - rank))

    def _weigh(self, group: int) -> None:
        if self._weighed == group:
            return
        self._weighed = group
        n = len(self._events)
        self._totals = ffi.new("double[]", n + 1)
        for batch in self._summed(group):
            lib.fp_fit_stacks_total(batch.c, self._columns[batch.part], self._totals)
        enough(lib.fp_fit_stacks_weigh_begin(self._c))
        for batch in self._summed(group):
            lib.fp_fit_stacks_weigh(self._c, batch.c, self._columns[batch.part], self._totals, n)
        lib.fp_fit_stacks_weighed(self._c, self._size.stack, self._size.sample, self._size.frame)

    # ---- rows

    def rows(self, group: int, rank: int) -> Iterator[Batch]:
        """The rows of a group, with stacks below a rank pruned and equal rows added up."""
        rows = self._cut(group, max(rank, 0)) if rank > 0 or self._c.is_renewed else self._kept(group)
        if rank > 0 or (rank == 0 and self._timed(group)):
            return self._added_up(rows)
        return within(WALKED, rows, self._model) if self._c.is_renewed else rows

    def _added_up(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        holds = self._holds._replace(renews_stacks=bool(self._c.is_renewed), stacks_at_a_time=WALKED)
        return repeated(batches, self._model, self._options, Log(), holds)

    def _summed(self, group: int) -> Iterator[Batch]:
        """The stored rows of a group without times; their stacks are nodes."""
        rows = self._kept(group)
        return self._added_up(rows) if self._timed(group) and not self._c.is_renewed else rows

    def _cut(self, group: int, rank: int) -> Iterator[Batch]:
        if rank:
            self._weigh(group)
        self._values = ffi.new("double[]", len(self._events) + 1)
        enough(lib.fp_fit_stacks_cut(self._c, rank))
        for batch in self._kept(group):
            enough(lib.fp_fit_stacks_batch(self._c, batch.c, self._columns[batch.part], self._values))
            yield batch

    def _kept(self, group: int) -> Iterator[Batch]:
        """The stored rows of a group; their stacks are nodes.

        An empty batch for each part comes first, because some parts have no rows.
        """
        c, out = self._c, Batch("stacks", CAPACITY["stacks"])
        for part in self._columns:
            out.c.part = part
            set_values(out, len(self._model.parts[part].value_types))
            yield out
            empty(out)
        if group >= c.n_groups:
            return  # no row was read
        lib.fp_fit_stacks_begin(c, group)
        for in_ in self._packed.windows(group, c.groups[group].packed):
            while enough(lib.fp_fit_stacks_take(c, group, in_, out.c)) == lib.FP_FULL:
                yield out
                empty(out)
        if len(out):
            yield out

    # ---- losses

    def lost(self, group: int, rank: int) -> Pruned:
        """The stacks missing from the rows of the group that was pulled last."""
        n = len(self._events)
        times = self._timed(group) if rank != _WITH_TIMES else 0
        if rank <= 0:
            return Pruned(0, 0, [0] * n, [0] * n, times)
        values, of = (ffi.unpack(p, n) if n else [] for p in (self._values, self._totals))
        return Pruned(lib.fp_fit_stacks_share(rank), int(self._c.stacks), values, of, times)

    def facts(self, lost: Pruned) -> dict[str, Any]:
        """For JSON."""
        if not lost.stacks:
            return {}
        shares = {e.name: value / (of or 1) for e, value, of in zip(self._events, lost.values, lost.of, strict=True)}
        return {"pruned_stacks": lost.stacks, "pruned_below": lost.share, "pruned_share": shares}

    def log_to(self, files: Sequence[Pruned], log: Log, budget: int) -> None:
        """Log the times and stacks missing from the files."""
        log.count(REPORTED["dropped-times"], sum(file.times for file in files), budget=budget)
        shares = []
        for k, event in enumerate(self._events):
            value, of = sum(file.values[k] for file in files), sum(file.of[k] for file in files)
            if value:
                shares.append(f"{percent(value / of)} of {event.name}")
        log.count(
            REPORTED["pruned-stacks"],
            sum(file.stacks for file in files),
            share=f"{'up to ' * (len(files) > 1)}{100 * max(file.share for file in files):.2g} %",
            shares=", ".join(shares) or "nothing",
            budget=budget,
        )
