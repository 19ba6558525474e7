"""Tables that outgrow their memory: sorted runs in a temporary file, merged when read back."""

from __future__ import annotations

from collections.abc import Sequence

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Generic, Merger, NamedTuple, Pointer, Pull, Self, fp_merge
from fastprof.core.c_memory import owned
from fastprof.core.loaded import copied
from fastprof.core.spill import Spilled, not_cleared

_CHUNK = 256 * 1024  # bytes moved at a time when a run is written
_WINDOWS = 2 << 20  # bytes for the windows of all runs together when they are merged, by default
_LEAST_WINDOW = 8 * 1024
MOST_RUNS = 256  # at this number they are merged into one run, which bounds the memory of the windows


class Halt:
    """Stops another thread that is writing runs."""

    requested = False

    def check(self) -> None:
        """Errors: Halted if a halt is requested."""
        if self.requested:
            raise Halted


class Halted(Exception):
    """The rest of a run is not needed."""


class Run(NamedTuple):
    file: Spilled
    offset: int
    nbytes: int
    width: int  # of its records


class Runs:
    """Runs of records of `width` words, or of bytes, in an unnamed temporary file."""

    def __init__(self, width: int, item: str = "uint64_t") -> None:
        self.width, self.item, self.size = width, item, int(ffi.sizeof(item))
        self.runs: list[Run] = []
        self.file = Spilled()
        self.halt = Halt()

    def __len__(self) -> int:
        return len(self.runs)

    def add(self, pull: Pull) -> None:
        """Write the records from `pull` as a new run."""
        start = self.file.nbytes
        n = self.whole(_CHUNK)
        chunk = ffi.new(f"{self.item}[]", n)
        view = memoryview(ffi.buffer(chunk))
        while got := pull(chunk, n):
            self.halt.check()
            self.file.append(view[: got * self.size])
        self.runs.append(Run(self.file, start, self.file.nbytes - start, self.width))

    def whole(self, nbytes: int) -> int:
        """The number of items of the records that fit this many bytes, at least one record."""
        items = max(self.width, nbytes // self.size)
        return items - items % self.width


class Sorted(Runs, Generic[Merger]):
    """Sorted runs.  A subclass merges them."""

    def new(self, n: int) -> Merger:
        """The C struct that merges n runs."""
        raise NotImplementedError

    def merged(self, merge: Merger, to: Pointer[int], n: int) -> tuple[int, int]:
        """Have `merge` write up to n items of merged records; returns (status, items)."""
        raise NotImplementedError

    def add(self, pull: Pull) -> None:
        if len(self.runs) == MOST_RUNS:
            self._join()
        super().add(pull)

    def with_runs(self, runs: list[Run]) -> Self:
        """A copy with these runs."""
        other = copied(self)
        other.runs, other.file = runs, Spilled()
        return other

    def merge(self, *others: Pull, windows: int = _WINDOWS) -> Merge[Merger]:
        """A merge of all runs, and of `others` as further runs that need not go through the file.  `windows`: total
        size of the windows in bytes."""
        return Merge(self, others, windows)

    def _join(self) -> None:
        """Merge all runs into one."""
        joined = self.with_runs([])
        joined.add(self.merge().pull)
        self.runs, self.file = joined.runs, joined.file


class Words(Sorted["fp_merge"]):
    """Runs of records of words, whose counters are added up (csrc/core/merge.h)."""

    def widen(self, width: int) -> None:
        """Set the words of the following records.  Earlier records have 0 in additional words."""
        self.width = max(width, self.width)

    def new(self, n: int) -> fp_merge:
        merge = owned(lib.fp_merge_new(n, self.width), "the merge of runs")
        for i, run in enumerate(self.runs):
            if run.width != self.width:
                merge.runs[i].width = run.width
        return merge

    def merged(self, merge: fp_merge, to: Pointer[int], n: int) -> tuple[int, int]:
        got = ffi.new("size_t *")
        return lib.fp_merge_pull(merge, to, n, got), int(got[0])


class Merge(Generic[Merger]):
    """The runs as one sorted stream of records.  `c` is the C struct that merges them."""

    def __init__(self, runs: Sorted[Merger], others: Sequence[Pull], windows: int) -> None:
        self._runs, self._others = runs, others
        n_runs = len(runs) + len(others)
        self.c = runs.new(n_runs)
        self._items = runs.whole(max(_LEAST_WINDOW, min(_CHUNK, windows // max(n_runs, 1))))
        self._windows = [not_cleared(f"{runs.item}[]", self._items) for _ in range(n_runs)]
        self._at = [run.offset for run in runs.runs]
        for i, window in enumerate(self._windows):
            self.c.runs[i].p = window

    def feed(self) -> bool:
        """Refill the run that needs input; False when none does."""
        i = self.c.to_refill
        if i == lib.FP_MERGE_NONE:
            return False
        run, window, size = self.c.runs[i], self._windows[i], self._runs.size
        left = run.n - run.pos  # an incomplete record
        if left:
            ffi.memmove(window, window + run.pos, left * size)
        if i >= len(self._runs):
            got = self._others[i - len(self._runs)](window + left, self._items - left)
        else:
            source = self._runs.runs[i]
            nbytes = min(source.offset + source.nbytes - self._at[i], (self._items - left) * size)
            source.file.read(self._at[i], memoryview(ffi.buffer(window))[left * size :][:nbytes])
            self._at[i] += nbytes
            got = nbytes // size
        run.pos, run.n, run.eof = 0, left + got, got == 0
        return True

    def pull(self, to: Pointer[int], n: int) -> int:
        """Write the merged records, as input of another merge."""
        while True:
            status, got = self._runs.merged(self.c, to, n)
            if got or status == lib.FP_DONE:
                return got
            self.feed()
