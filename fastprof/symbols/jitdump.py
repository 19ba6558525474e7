"""JIT-compiled code with lines: jit-PID.dump (csrc/symbols/jitdump.h)."""

import mmap
import os
from collections.abc import Sequence

from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_jitdump
from fastprof.core.c_memory import enough, owned
from fastprof.core.messages import counted
from fastprof.symbols.demangle import Demangle
from fastprof.symbols.names import NameTable
from fastprof.symbols.symbol import Symbol


def is_jitdump(head: bytes) -> bool:
    """Whether a file that begins like this is a jitdump."""
    return head[:4] in (b"DTiJ", b"JiTD")


class JitDump(NameTable):
    """The code in a jitdump.  Its addresses here are offsets in the file, because memory is reused for other code.

    `c` is NULL and `reason` set if nothing can be read.
    """

    def __init__(self, path: str | os.PathLike[str], demangle: Demangle = "full") -> None:
        super().__init__(path, demangle)
        self.c: fp_jitdump = ffi.NULL
        try:
            with open(self.path, "rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            self.reason = getattr(error, "strerror", None) or "empty file"
            return
        self._data = ffi.from_buffer("uint8_t[]", data)
        err = ffi.new("struct fp_err *")
        read = lib.fp_jitdump_new(self._data, len(data), err)
        if not read and err.code != lib.FP_E_NOMEM:
            self.reason = f"damaged jitdump: {ffi.string(err.what).decode()} is not supported"
            return
        self.c = owned(read, "symbols")
        self._place = ffi.new("struct fp_jitdump_place *")
        stats = lib.fp_jitdump_stats(self.c)
        notes = [f"{counted(stats.damaged, 'damaged record')}"] if stats.damaged else []
        self.note = "; ".join([*notes, *(["its end is missing or damaged"] if stats.is_cut else [])])

    def link_address(self, address: int, start: int, offset: int) -> int | None:
        return (address - start + offset) % (1 << 64)

    def lookup_many(self, addresses: Sequence[int]) -> list[tuple[Symbol, ...]]:
        found = {offset: self._lookup(offset) for offset in sorted(addresses)}
        return [found[offset] for offset in addresses]

    def _lookup(self, offset: int) -> tuple[Symbol, ...]:
        place = self._place
        status = enough(lib.fp_jitdump_find(self.c, offset, place))
        if not status:
            return ()
        file = str(ffi.buffer(place.file, place.file_n), "utf-8", "replace") if place.file_n else ""
        return self._chain(bytes(ffi.buffer(place.name, place.name_n)), file, place.line)
