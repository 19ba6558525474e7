"""Writes profiles of cProfile (csrc/pstats/write.h)."""

from fastprof.core._c import lib
from fastprof.core.c_memory import owned
from fastprof.core.engine import Writer
from fastprof.core.model import Batch, ValueType
from fastprof.formats.pstats import SECONDS, VALUE_TYPES
from fastprof.formats.pstats.reported import REPORTED


class PstatsWriter(Writer):
    """Adds up functions and their callers, and writes them at the end."""

    format = "pstats"
    view = "graph"

    def start(self) -> None:
        self._w = owned(lib.fp_pstats_writer_new(self.model.c), "the writer of pstats")
        self._types: dict[ValueType, None] = {}

    def put(self, batch: Batch) -> None:
        types = self.model.parts[batch.part].value_types
        self._w.complete = tuple(t.name for t in types) == VALUE_TYPES
        unit = types[0].unit if types else ""
        self._w.unit = SECONDS.get(unit, 1.0)
        self._w.is_time = unit in SECONDS
        self._types |= dict.fromkeys(types)
        self.check(lib.fp_pstats_put(self._w, batch.c, self.err))
        self.written += len(batch)
        self.log.rows["rows_written"] += len(batch)

    def end(self) -> None:
        w, log = self._w, self.log
        self.take_all(lambda: int(lib.fp_pstats_take(w, self.out, self.err)))
        log.count_all(REPORTED, w)
        if not w.complete:
            types = [*self._types][:1]
            log.count(REPORTED["units"], sum(t.unit not in ("", "count", *SECONDS) for t in types))
            log.count(REPORTED["value-names"], sum(t.name != "time" for t in types))
        if w.estimated:
            log.warn(REPORTED["estimated-times"])
