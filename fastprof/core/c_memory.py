"""C objects that live as long as Python refers to them, and their addresses."""

from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import C, CData, fp_table


def owned(new: C, what: str) -> C:
    """The new C object `new`, to be freed with the last reference to the result: by the core's function that has the
    name of its struct, and then _free or _clear.

    Errors: MemoryError naming `what` if it is NULL, which every constructor of the core returns when out of memory.
    """
    if not new:
        raise MemoryError(f"no memory for {what}")
    struct = ffi.typeof(new).item.cname.removeprefix("struct ")
    return ffi.gc(new, getattr(lib, f"{struct}_free", None) or getattr(lib, f"{struct}_clear"))


def enough(status: int) -> int:
    """What a function of the core returned that fails only without memory.  Errors: MemoryError."""
    if status < 0:
        raise MemoryError("no memory")
    return status


def address_of(pointer: CData) -> int:
    """The address of a C object as a number, for compiled modules.  It does not keep the object alive."""
    return int(ffi.cast("uintptr_t", pointer))


def rows_of(table: fp_table) -> Iterator[tuple[int, memoryview]]:
    """The id and the words of each row of a table, which must not grow meanwhile."""
    width = table.width
    words = memoryview(ffi.buffer(table.words, 4 * table.n * width)).cast("I")
    for row in range(1, table.n):
        yield row, words[row * width : row * width + width]
