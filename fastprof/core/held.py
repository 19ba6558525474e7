"""Batches that are read before it is known how to use them, in an unnamed temporary file."""

from collections.abc import Iterator

from fastprof.core._c import ffi
from fastprof.core._typing import NamedTuple
from fastprof.core.model import Batch, Model, empty, set_values
from fastprof.core.spill import Spilled


class _Kept(NamedTuple):
    """The header of a batch, and where its columns begin in the file."""

    n: int
    part: int
    n_values: int
    is_summed: int
    offset: int


class Held:
    """Keeps copies of batches of one view.  Call `rows` after the last `put`.

    Memory: a few words for each batch, and the model's stacks, which stay until `rows` is read to its end.
    """

    def __init__(self, model: Model, view: str) -> None:
        self._model, self._view = model, view
        self._file, self._kept = Spilled(), list[_Kept]()
        model.keeps_stacks += 1

    def put(self, batch: Batch) -> None:
        c = batch.c
        self._kept.append(_Kept(int(c.n), int(c.part), int(c.n_values), int(c.is_summed), self._file.nbytes))
        for column in self._columns(batch):
            self._file.append(column)

    def _columns(self, batch: Batch) -> Iterator[memoryview]:
        """The bytes of each column."""
        for name in batch.columns:
            yield batch[name].cast("B")
        if batch.c.is_summed:
            yield memoryview(ffi.buffer(batch.c.count, 8 * batch.c.n))
        for k in range(batch.c.n_values):
            yield batch.values(k).cast("B")

    def rows(self) -> Iterator[Batch]:
        """The batches, each valid until the next is requested."""
        try:
            if not self._kept:
                return
            batch = Batch(self._view, max(1, *(kept.n for kept in self._kept)))
            for kept in self._kept:
                empty(batch)
                set_values(batch, kept.n_values)
                batch.c.n, batch.c.part, batch.c.is_summed = kept.n, kept.part, kept.is_summed
                offset = kept.offset
                for column in self._columns(batch):
                    self._file.read(offset, column)
                    offset += len(column)
                yield batch
        finally:
            self._model.keeps_stacks -= 1
