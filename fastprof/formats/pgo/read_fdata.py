"""Reads BOLT's fdata (csrc/pgo/fdata.h)."""

import re

from fastprof.core._c import lib
from fastprof.core._typing import fp_batch, fp_err, fp_window
from fastprof.core.branches import value_types
from fastprof.core.c_memory import owned
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.formats.pgo.reported import REPORTED

_EVENT = re.compile(rb"(?:boltedcollection\n)?no_lbr ?([^\n]*)\n")


class FdataReader(NativeReader):
    """Branches, or counts of places.  Lines are offsets in bytes from the beginning of their symbol."""

    format = "bolt"
    view = "stacks"
    renews_stacks = True

    def start(self) -> None:
        event = _EVENT.match(self.source.head)
        new = lib.fp_pgo_fdata_new(self.model.c, self.options[LENIENT], event is not None)
        self._p = owned(new, "the reader of fdata")
        types = value_types()
        if event:
            name = event[1].decode("utf-8", "replace").strip().rstrip(":")
            types = [ValueType(name or "samples", "count")]
        self.part = self.model.add_part(Part(types, extra={"default_sample_type": types[0].name}))

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        return lib.fp_pgo_fdata_feed(self._p, in_, batch, err)

    def finish(self) -> None:
        self.log.count_all(REPORTED, self._p)
