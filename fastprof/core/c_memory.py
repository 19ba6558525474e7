"""C objects that live as long as Python refers to them, and their addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastprof.core._c import ffi
from fastprof.core._typing import CData, T, fp_table


def owned(new: T, free: Callable[[T], None], what: str) -> T:
    """The new C object `new`, to be freed by `free` with the last reference to the result.

    Errors: MemoryError naming `what` if it is NULL, which every constructor of the core returns when out of memory.
    """
    if not new:
        raise MemoryError(f"no memory for {what}")
    return ffi.gc(new, free)


def address_of(pointer: CData) -> int:
    """The address of a C object as a number, for compiled modules.  It does not keep the object alive."""
    return int(ffi.cast("uintptr_t", pointer))


def rows_of(table: fp_table) -> Iterator[tuple[int, memoryview]]:
    """The id and the words of each row of a table, which must not grow meanwhile."""
    width = table.width
    words = memoryview(ffi.buffer(table.words, 4 * table.n * width)).cast("I")
    for row in range(1, table.n):
        yield row, words[row * width : row * width + width]
