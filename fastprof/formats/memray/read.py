"""Reads captures of memray (csrc/memray/read.h)."""

from __future__ import annotations

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.c_memory import owned
from fastprof.core.heap_sums import TYPES, facts_of
from fastprof.core.log import Log
from fastprof.core.model import Model, Part
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, Options
from fastprof.core.reported import counts_of
from fastprof.core.source import Source
from fastprof.formats.memray.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.core._c import fp_batch, fp_err, fp_window

_ALLOCATORS = ("", "pymalloc", "pymalloc_debug", "malloc", "other", "mimalloc", "mimalloc_debug")


class MemrayReader(NativeReader):
    """Allocations by stack and thread: all, temporary ones, those not freed, those at the peak."""

    format = "memray"
    view = "stacks"

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        new = lib.fp_memray_new(model.c, options[LENIENT])
        self._r = owned(new, lib.fp_memray_free, "the reader of memray's captures")

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        status = lib.fp_memray_feed(self._r, in_, batch, err)
        if status in (lib.FP_FULL, lib.FP_DONE):  # rows come after the last record
            self._name_threads()
        return status

    def answer(self, batch: fp_batch) -> None:
        """The header is read."""
        r, model = self._r, self.model
        r.input = self._input = model.input()
        first = len(TYPES) // 2 if r.is_aggregated else 0
        r.heap.first_column = first
        extra: dict[str, Any] = {"time_ns": int(r.start_ms) * 1_000_000}
        if r.end_ms > r.start_ms:
            extra["duration_ns"] = int(r.end_ms - r.start_ms) * 1_000_000
        self.part = model.add_part(
            Part(TYPES[first:], command=model.string(r.command) or None, pid=int(r.pid), extra=extra)
        )

    def _name_threads(self) -> None:
        r, model, name = self._r, self.model, ffi.new("uint32_t *")
        threads: dict[tuple[int, int], bytes] = {}
        for i in range(r.n_threads):
            _, pid, tid = model.row("threads", lib.fp_memray_thread(r, i, name))
            if name[0]:
                threads[pid, tid] = model.string(name[0])
        model.names.put(model.parts[self.part], self._input, {}, threads, {})

    def finish(self) -> None:
        r, log = self._r, self.log
        log.facts["version"] = int(r.version)
        if r.python:
            log.facts["python"] = f"{r.python >> 24}.{r.python >> 16 & 255}"
        if 0 < r.python_allocator < len(_ALLOCATORS):
            log.facts["python_allocator"] = _ALLOCATORS[r.python_allocator]
        log.facts |= facts_of(r.heap)
        if r.is_aggregated:
            del log.facts["peak_ms"]  # not in the file
        log.count_all(REPORTED, counts_of(r))
