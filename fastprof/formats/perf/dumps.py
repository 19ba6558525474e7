"""The code that virtual machines list in jit-PID.dump, which a recording only names."""

from __future__ import annotations

import os

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.log import Log
from fastprof.formats.perf.files import Files
from fastprof.formats.perf.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.core._c import fp_perf_reader
    from fastprof.symbols.jitdump import JitDump

_MONOTONIC = 1  # CLOCK_MONOTONIC, with which virtual machines write


class Dumps:
    """Reads these files."""

    def __init__(self, files: Files, log: Log) -> None:
        self._files = files
        self._log = log
        self._read: list[JitDump] = []  # whose memory the decoder borrows

    def give(self, reader: fp_perf_reader, name: bytes, clock: int | None) -> None:
        """Gives the decoder what is in a file, if it can be found.  Without the clock of the recording's times, it is
        unknown which code was at an address at a time."""
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
        if lib.fp_perf_give_codes(reader, codes, n[0]):
            raise MemoryError("no memory for lists of code")
