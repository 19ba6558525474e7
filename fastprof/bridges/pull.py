"""Rows that C code has ready, as batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastprof.core._c import lib
from fastprof.core._typing import Any
from fastprof.core.engine import CAPACITY
from fastprof.core.model import Batch


def batches_of(view: str, n_values: int, part: int, pull: Callable[[Any], int]) -> Iterator[Batch]:
    """Batches of `part`, each valid until the next is asked for; at least one, which may be empty.

    `pull` appends rows to a struct fp_batch * and returns FP_FULL while there are more, then FP_DONE.  It raises what
    else its C function returns; only that a batch cannot grow, which all may meet, is a MemoryError here.
    """
    batch = Batch(view, CAPACITY[view], n_values)
    batch.c.part = part
    status = lib.FP_FULL
    while status == lib.FP_FULL:
        status = pull(batch.c)
        if status < 0:
            raise MemoryError("no memory for a batch")
        yield batch
        batch.reset()
