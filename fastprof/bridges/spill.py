"""Tables that outgrow their memory: sorted runs in a temporary file, merged when read back."""

from __future__ import annotations

import os
from collections.abc import Callable

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError
from fastprof.core.owner import owned

# Pull up to n words of sorted records into a buffer; 0 at the end.
Pull = Callable[[Any, int], int]

_WORD = 8
_CHUNK = 32 * 1024  # words moved at a time when a run is written
_WINDOWS = 2 << 20  # bytes for the windows of all runs together when they are merged


class Runs:
    """Sorted runs of records of `width` words (csrc/core/merge.h), all in one unnamed temporary file."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._runs: list[tuple[int, int]] = []  # byte offset, bytes
        self._file: Any = None

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, pull: Pull) -> None:
        """Write what `pull` gives as one more run."""
        if self._file is None:
            import tempfile

            self._file = tempfile.TemporaryFile(prefix="fastprof-", buffering=0)
        start = self._file.seek(0, os.SEEK_END)
        n = _CHUNK - _CHUNK % self.width
        chunk = ffi.new("uint64_t[]", n)
        view = memoryview(ffi.buffer(chunk))
        while got := pull(chunk, n):
            data = view[: got * _WORD]
            try:
                while len(data):
                    data = data[self._file.write(data) :]
            except OSError as error:
                raise FastprofError(f"temporary file: {error.strerror or error}") from None
        self._runs.append((start, self._file.tell() - start))

    def merge(self, last: Pull) -> Merge:
        """All runs and, as one more, what `last` gives (which need not go through the file)."""
        return Merge(self, last)

    def read(self, offset: int, into: memoryview) -> None:
        """Fill `into` from `offset`, which was written: whatever is missing is an error, not an end."""
        while len(into):
            try:
                got = os.preadv(self._file.fileno(), [into], offset)
            except OSError as error:
                raise FastprofError(f"temporary file: {error.strerror or error}") from None
            if not got:
                raise FastprofError(f"temporary file: ends at byte {offset}, where something was written")
            offset, into = offset + got, into[got:]

    @property
    def runs(self) -> list[tuple[int, int]]:
        return self._runs


class Merge:
    """The runs as one sorted stream of records.  `c` is its struct fp_merge."""

    def __init__(self, runs: Runs, last: Pull) -> None:
        self._runs, self._last = runs, last
        n_runs = len(runs) + 1
        self.c = owned(lib.fp_merge_new(n_runs, runs.width), lib.fp_merge_free, "the merge of runs")
        words = max(1024, min(_CHUNK, _WINDOWS // _WORD // n_runs))
        self._words = words - words % runs.width
        self._windows = [ffi.new("uint64_t[]", self._words) for _ in range(n_runs)]
        self._at = [offset for offset, _ in runs.runs]
        for i, window in enumerate(self._windows):
            self.c.runs[i].p = window

    def feed(self) -> bool:
        """Refill the run that is hungry; False when none is."""
        i = self.c.hungry
        if i == lib.FP_MERGE_NONE:
            return False
        run, window = self.c.runs[i], self._windows[i]
        if i == len(self._runs):
            got = self._last(window, self._words)
        else:
            left = sum(self._runs.runs[i]) - self._at[i]
            nbytes = min(left, self._words * _WORD)
            self._runs.read(self._at[i], memoryview(ffi.buffer(window))[:nbytes])
            self._at[i] += nbytes
            got = nbytes // _WORD
        run.pos, run.n, run.eof = 0, got, got == 0
        return True
