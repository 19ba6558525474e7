"""A timeline -> as much of it as a viewer can open, in one file or several (csrc/bridges/budget/fit_timeline.h).

    enter f 0, enter g 10, exit g 12, enter h 20, exit h 70, exit f 100      calls shorter than 5 merged:
    enter f 0, enter h 20, exit h 70, exit f 100                             f has spent 50 itself instead of 48

Kept: each call that is long enough, with its length; the total time; events, and the calls in which they happened.
Lost, and counted: short calls, whose time becomes self time of their callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fastprof.bridges.budget.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import CAPACITY, Budget
from fastprof.core.errors import check_sums, inputs_of, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import spelled
from fastprof.core.model import Batch, Model, empty
from fastprof.core.spill import Groups

_BUFFERED = 1 << 20  # bytes of packed rows kept in memory


class Merged(NamedTuple):
    """The calls that were merged into their callers."""

    below: int  # length
    calls: int
    time: int  # spent in these calls
    of: int  # time spent in all calls


class Fit:
    """All rows of a timeline, separated by output file: `groups`.

    Ranks go up to `highest`; only calls that always stay, whatever their length, have a higher one.
    If the rows take far more than `budget` bytes, only as many as can be needed are stored.
    """

    highest: int = lib.FP_FIT_TIMELINE_RANKS
    least = "with all calls merged that can be"  # what is left at the highest rank
    first_time: int | None = None  # of the first row

    def __init__(self, model: Model, size: Budget, budget: int, split: str | None) -> None:
        by, slice_ns = lib.FP_FIT_TIMELINE_ALL, 0
        if split is not None:
            slice_ns = slice_of(split)
            by = lib.FP_FIT_TIMELINE_SLICES if slice_ns else lib.FP_FIT_TIMELINE_THREADS
        self._c = owned(lib.fp_fit_timeline_new(model.c, by, slice_ns), "the calls of a timeline")
        # sizes are estimates, up to twice the real size
        lib.fp_fit_timeline_size(self._c, 2 * budget, size.call, size.names, size.event)
        self._model = model
        self._packed = Groups()

    def read(self, batches: Iterable[Batch]) -> None:
        """Store rows, whose calls must nest (bridges/rows/nest.py).  Errors: FastprofError for too many groups;
        UsageError for slices of seconds if times are in ticks."""
        err = ffi.new("struct fp_err *")
        for batch in batches:
            if self._c.slice_ns and not self._model.parts[batch.part].extra.get("ticks_per_second"):
                what = "{inputs}{--split:=}time:SECONDS needs a clock of known frequency, but times are in ticks"
                raise usage_error(what, inputs=inputs_of(self._model))
            if self.first_time is None and len(batch):
                self.first_time = batch["time"][0]
            check_sums(lib.fp_fit_timeline_put(self._c, batch.c, err), err, self._model, spelled("--split", "name"))
            if self._c.packed > _BUFFERED:
                self._spill()

    def _spill(self) -> None:
        for number in range(self._c.n_groups):
            self._packed.take(number, self._c.groups[number].packed)
        self._c.packed = 0

    def threads(self) -> list[int]:
        """For "thread": the thread of each group."""
        return [int(self._c.groups[i].thread) for i in range(self._c.n_groups)]

    def slices(self) -> list[int]:
        """The slice number of each group; slices before that of the first row have negative numbers."""
        return [int(self._c.groups[i].slice) for i in range(self._c.n_groups)]

    def first_rank(self, group: int, nbytes: int) -> int:
        """The rank to try first."""
        return self.rank(group, nbytes)

    def rank(self, group: int, nbytes: int) -> int:
        """The lowest rank at which a group's calls are estimated to fit this many bytes."""
        return int(lib.fp_fit_timeline_rank(ffi.addressof(self._c.groups[group]), nbytes))

    def estimated(self, group: int, rank: int) -> int:
        """The estimated bytes of calls of this rank or a higher one."""
        bytes_ = self._c.groups[group].bytes
        return sum(ffi.unpack(bytes_ + rank, lib.FP_FIT_TIMELINE_RANKS + 1 - rank))

    def lost(self, group: int, rank: int) -> Merged:
        """The calls below a rank."""
        c, n = self._c.groups[group], lib.FP_FIT_TIMELINE_RANKS + 1
        calls, time = ffi.unpack(c.calls, n), ffi.unpack(c.self, n)
        return Merged(int(lib.fp_fit_timeline_length(rank)), sum(calls[:rank]), sum(time[:rank]), sum(time))

    def rows(self, group: int, rank: int) -> Iterator[Batch]:
        """The rows of a group, without calls below a rank, which is at least the result of `rank`."""
        out = Batch("timeline", CAPACITY["timeline"])
        lib.fp_fit_timeline_begin(self._c, group, rank)
        for in_ in self._packed.windows(group, self._c.groups[group].packed):
            while enough(lib.fp_fit_timeline_take(self._c, group, in_, out.c)) == lib.FP_FULL:
                yield out
                empty(out)
        if len(out):
            yield out

    def facts(self, lost: Merged) -> dict[str, Any]:
        """For JSON."""
        if not lost.calls:
            return {}
        return {
            "merged_calls": lost.calls,
            "merged_below": lost.below,
            "merged_share": lost.time / max(lost.of, 1),
        }

    def log_to(self, files: Sequence[Merged], log: Log, budget: int) -> None:
        """Log the calls missing from the files."""
        calls, time, of = (sum(column) for column in [*zip(*files, strict=True)][1:])
        below = max((file.below for file in files if file.calls), default=0)
        unit = "ns" if all(part.extra.get("ticks_per_second") for part in self._model.parts) else "ticks"
        log.count(
            REPORTED["short-calls"],
            calls,
            most="up to " * (len(files) > 1),
            below=below,
            unit=unit,
            share=f"{time / max(of, 1):.2%}",
            budget=budget,
        )


def slice_of(split: str) -> int:
    """The length of a slice for --split in nanoseconds; 0: split by thread."""
    _, _, seconds = split.partition(":")
    return max(1, round(float(seconds) * 1e9)) if seconds else 0
