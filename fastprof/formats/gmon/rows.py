"""Readers that know the rows of a graph once the whole input is read."""

from collections.abc import Iterator

from fastprof.core._c import lib
from fastprof.core._typing import fp_batch, fp_err, fp_window
from fastprof.core.c_memory import enough
from fastprof.core.engine import Reader


class GraphReader(Reader):
    """A subclass has `_parse`, which reads whole records and returns whether these are all, `_made`, which gives the
    rows after that, and `part`, whose only value type is a time."""

    view = "graph"
    part: int
    _rows: Iterator[tuple[int, ...]] | None = None
    _waiting: tuple[int, ...] | None = None

    def _parse(self, in_: fp_window) -> bool:
        raise NotImplementedError

    def _made(self) -> Iterator[tuple[int, ...]]:
        """Kind, function, callee, file, line, calls, value."""
        raise NotImplementedError

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        if self._rows is None:
            if not self._parse(in_):
                return int(lib.FP_MORE)
            self._rows = self._made()
        batch.part = self.part
        enough(lib.fp_batch_set_values(batch, 1))
        while row := self._waiting or next(self._rows, None):
            self._waiting = row
            if batch.n == batch.cap:
                return int(lib.FP_FULL)
            i, batch.n = batch.n, batch.n + 1
            batch.kind[i], batch.function[i], batch.callee[i], batch.file[i], batch.line[i], batch.count[i] = row[:-1]
            batch.values[i] = row[-1]
            self._waiting = None
        return int(lib.FP_DONE)
