"""Reads recordings of heaptrack (csrc/heaptrack/read.h)."""

from fastprof.core._c import lib
from fastprof.core._typing import fp_batch, fp_err, fp_window
from fastprof.core.allocators import NAMES
from fastprof.core.heap_sums import TYPES, facts_of
from fastprof.core.model import Part
from fastprof.core.native import NativeReader
from fastprof.formats.heaptrack.reported import REPORTED


class HeaptrackReader(NativeReader):
    """Allocations by stack: all, temporary ones, those not freed, those at the peak."""

    format = "heaptrack"
    view = "stacks"
    new = lib.fp_heaptrack_new
    allocator = True

    def start(self) -> None:
        super().start()
        self.part = self.model.add_part(Part(TYPES, extra={"drop_frames": NAMES}))

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        status = lib.fp_heaptrack_feed(self._r, in_, batch, err)
        if status in (lib.FP_FULL, lib.FP_DONE):  # rows come after the last line
            self.model.parts[self.part].command = self.model.string(self._r.command) or None
        return status

    def finish(self) -> None:
        r = self._r
        page_size = int(r.page_size)
        self.log.facts |= {"version": int(r.version), "seconds": int(r.heap.now) / 1000}
        self.log.facts |= {"resident_bytes": int(r.resident) * page_size} | facts_of(r.heap, page_size)
        self.log.count_all(REPORTED, r)
