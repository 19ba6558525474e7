"""Reads profiles of cProfile (csrc/pstats/read.h)."""

from fastprof.core._c import lib
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.formats.pstats import VALUE_TYPES
from fastprof.formats.pstats.reported import REPORTED

_TYPES = [ValueType(name, "nanoseconds" if name.endswith("time") else "count") for name in VALUE_TYPES]


class PstatsReader(NativeReader):
    """Functions and their callers."""

    format = "pstats"
    view = "graph"
    new = lib.fp_pstats_reader_new
    decode = lib.fp_pstats_feed

    def start(self) -> None:
        super().start()
        self.part = self.model.add_part(Part([*_TYPES], extra={"default_sample_type": "time"}))

    def finish(self) -> None:
        r = self._r
        self.log.facts["functions"] = int(r.functions)
        self.log.facts["callers"] = int(r.calls)
        if r.sampled:
            self.log.facts["sampled"] = True
        self.log.count_all(REPORTED, r)
