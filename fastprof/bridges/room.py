"""When sums of stacks have to make room."""

from collections.abc import Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_table
from fastprof.core.model import Batch, Model

STACK_BYTES = 8 + 22 + 2 * 4  # in the model: a row, its part of the index, and two arrays for sorting
LEAST_NODES = 8192  # with fewer, walks would dominate the time
_MOST_NODES = 1 << 15  # if stacks need not be kept and rarely repeat
_MOST_PASSED = 1 << 17  # of rows that pass
_REPEATED = 8  # stacks repeat if at least one row in this many has a known stack


class Room:
    """Limits the memory for the sums of stacks to `max_memory` bytes.

    Stacks that need not be kept are added up while they are in the caches, unless they repeat: then the same stacks
    would be walked again and again.  Kept stacks are in the model anyway.
    """

    def __init__(self, max_memory: int, keeps_stacks: bool = True) -> None:
        self._max_memory, self.keeps_stacks = max_memory, keeps_stacks
        self._most = _MOST_NODES
        self._rows = 0  # since there was room
        self._stacks = 0  # of the model, then: a reader may need some
        self.only_keys = False  # if it is full: stacks take less than half of the memory, so they may stay

    def is_full(
        self, n_rows: int, n_stacks: int, n_keys: int, key_bytes: int, node_bytes: int, keys: fp_table | None
    ) -> bool:
        """Whether, after a batch of `n_rows`, the sums of `n_keys` and, unless they are kept, the model's stacks must
        be removed.  `keys` have a stack first; without them each key is another stack."""
        self._rows += n_rows
        taken = n_keys * key_bytes
        if self.keeps_stacks:
            return taken > self._max_memory and n_keys > LEAST_NODES
        self._stacks = self._stacks if n_stacks >= self._stacks else 0
        new = n_stacks - self._stacks
        full = new > LEAST_NODES and taken + new * node_bytes > self._max_memory
        self.only_keys = full and 2 * new * node_bytes < self._max_memory
        while not full and new > self._most:
            # not the keys: their labels may differ wherever stacks repeat
            n_distinct = lib.fp_sum_stacks(ffi.addressof(keys), n_stacks) if keys else n_keys
            full = n_distinct < 0 or _REPEATED * (self._rows - n_distinct) < self._rows
            self._most *= 2
        if full:
            self._rows = 0
        if full and not self.only_keys:
            self._most, self._stacks = _MOST_NODES, n_stacks
        return full


def most_passed(max_memory: int) -> int:
    """Stacks of rows that pass: as many as fit the memory, but no more than are still found quickly."""
    return min(max_memory // STACK_BYTES, _MOST_PASSED)


def within(most: int, rows: Iterable[Batch], model: Model) -> Iterator[Batch]:
    """The rows; the model's stacks are removed when there are more than `most`, as nothing refers to earlier ones."""
    for batch in rows:
        yield batch
        if model.count("stacks") > most:
            model.empty_stacks()
