"""Functions of a program's symbol table."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fastprof.core._typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fastprof.symbols.objects import ElfObject

_LOCAL, _FUNCTION = 0, 2


class Entry(NamedTuple):
    """A function with link-time addresses."""

    start: int
    size: int
    name: bytes
    is_local: bool


def functions(elf: ElfObject) -> Iterator[Entry]:
    """Those of .symtab with a size, by address; of several at one address all, in the table's order."""
    table, names = elf.section(".symtab"), elf.section(".strtab")
    if table is None or names is None or elf.bits != 64:
        return
    data = bytes(elf.data(table))
    order, text = ">" if elf.swapped else "<", bytes(elf.data(names))
    found = []
    for name, info, _, index, start, size in struct.iter_unpack(order + "IBBHQQ", data[: len(data) // 24 * 24]):
        end = text.find(b"\0", name)
        if info & 15 == _FUNCTION and size and index and end > name:
            found.append(Entry(start, size, text[name:end], info >> 4 == _LOCAL))
    yield from sorted(found, key=lambda one: one.start)
