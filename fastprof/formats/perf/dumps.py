"""JIT-compiled code, which jit-PID.dump lists and a recording only names."""

from __future__ import annotations

import os

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, fp_perf_reader
from fastprof.core.c_memory import enough
from fastprof.core.log import Log
from fastprof.formats.perf.files import Files
from fastprof.formats.perf.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.symbols.jitdump import JitDump

_MONOTONIC = 1  # CLOCK_MONOTONIC, with which virtual machines write


class Dumps:
    """Reads the dumps that a recording names."""

    def __init__(self, files: Files, log: Log) -> None:
        self._files = files
        self._log = log
        self._read: list[JitDump] = []  # the decoder borrows their memory

    def give(self, reader: fp_perf_reader, name: bytes, clock: int | None) -> None:
        """Gives the decoder the code in a dump, if the file is found.  Without the clock of the recording, the code at
        an address at a given time is unknown.
        """
        from fastprof.symbols.jitdump import JitDump

        found = self._files.find(name)
        if not isinstance(found, JitDump) or found.c is None:
            return
        if clock != _MONOTONIC or lib.fp_jitdump_stats(found.c).is_ticks:
            self._log.warn(REPORTED["code-of-another-clock"], path=os.fsdecode(name))
            return
        n = ffi.new("uint64_t *")
        codes = lib.fp_jitdump_codes(found.c, n)
        self._read.append(found)
        enough(lib.fp_perf_give_codes(reader, codes, n[0]))
