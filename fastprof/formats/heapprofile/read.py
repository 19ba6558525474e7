"""Reads V8's heap profiles (csrc/heapprofile/read.h)."""

from fastprof.core._c import lib
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.formats.heapprofile.reported import REPORTED


class HeapprofileReader(NativeReader):
    """A tree of nodes with the bytes in use."""

    format = "heapprofile"
    view = "stacks"
    new = lib.fp_heapprofile_new
    decode = lib.fp_heapprofile_feed

    def start(self) -> None:
        super().start()
        self.part = self.model.add_part(Part([ValueType("inuse_space", "bytes")]))

    def finish(self) -> None:
        h = self._r
        self.log.facts["nodes"] = int(h.n_nodes)
        self.log.facts["allocations"] = int(h.samples)
        self.log.count_all(REPORTED, h)
