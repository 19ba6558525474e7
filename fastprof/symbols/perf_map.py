"""Maps of JIT-compiled code: perf-PID.map."""

import os
from collections.abc import Sequence

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core.c_memory import enough, owned
from fastprof.core.messages import counted
from fastprof.symbols.demangle import Demangle
from fastprof.symbols.names import NameTable
from fastprof.symbols.symbol import Symbol

_PERF_MAP = re.compile(r"perf-\d+\.map$")
_PERF_MAP_LINE = re.compile(
    rb"^[ \t]*+(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]++(?:0[xX])?([0-9a-fA-F]{1,16})[ \t]([^\n\0]++)[^\n]*+$", re.MULTILINE
)


def is_perf_map(path: str) -> bool:
    """Whether a path is that of a map of JIT-compiled code."""
    return _PERF_MAP.search(path) is not None


class PerfMap(NameTable):
    """A map of JIT-compiled code: start and size, in hexadecimal, and name of each function.

        7f7ab8ec71c0 270 int java.lang.Object.hashCode()

    Where functions overlap, the later line wins: a virtual machine reuses the memory of deleted functions.
    Source: Linux tools/perf/Documentation/jit-interface.txt.
    """

    def __init__(self, path: str | os.PathLike[str], demangle: Demangle = "full") -> None:
        super().__init__(path, demangle)
        data = self._read()
        self._names: list[bytes] = []
        self._space = owned(lib.fp_space_new(), "symbols")
        self._hit = ffi.new("struct fp_space_hit *")
        for start, size, name in _PERF_MAP_LINE.findall(data):
            enough(lib.fp_space_map(self._space, 0, int(start, 16), int(size, 16), 0, len(self._names), 0))
            self._names.append(name)
        wrong = len(re.findall(rb"^[^\n]*[^\s\0]", data, re.MULTILINE)) - len(self._names)
        if wrong:
            self.note = f"{counted(wrong, 'line is', 'lines are')} not understood"

    def lookup_many(self, addresses: Sequence[int]) -> list[tuple[Symbol, ...]]:
        space, hit = self._space, self._hit
        found = [lib.fp_space_find(space, 0, address, hit) and self._names[hit.word] for address in addresses]
        return [self._chain(name or b"") for name in found]
