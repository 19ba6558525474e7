"""Writes timelines as XRay FDR version 5 logs (csrc/xray/write.h)."""

from __future__ import annotations

import re

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import Writer
from fastprof.core.io import Sink
from fastprof.core.model import Batch, Model, Part
from fastprof.core.options import Options
from fastprof.core.report import Report

# Function records have room for 28 bits.  Functions whose name does not tell
# their id are numbered from the upper half on, out of the way of those that do.
_ID_LIMIT = 1 << 28
_FIRST_MADE_UP = 1 << 27
BUFFER_SIZE = 16384  # what the header says; readers of version 2 and later do not need it


class XRayWriter(Writer):
    """One FDR v5 log.  Keeps function ids where the model has them or a function is called `#ID`."""

    format = "xray"
    view = "timeline"

    def __init__(self, model: Model, sink: Sink, options: Options, report: Report) -> None:
        super().__init__(model, sink, options, report)
        w = lib.fp_xray_write_new(model.c)
        if not w:
            raise MemoryError("no memory for the XRay writer")
        self._w = ffi.gc(w, lib.fp_xray_write_free)
        self._begun = False
        self._ids: Any = ffi.new("uint32_t[]", 64)
        self._n_ids = 0
        self._made_up = _FIRST_MADE_UP
        self._unnumbered = 0

    def _begin(self, part: Part | None) -> None:
        self._begun = True
        self._w.ticks_per_second = int((part.extra.get("ticks_per_second") if part else None) or 0)
        self._status(lib.fp_xray_write_header(self._w, BUFFER_SIZE, self.out))

    @staticmethod
    def _status(status: int) -> None:
        if status:
            raise MemoryError("no memory for the XRay log")

    def _number_functions(self) -> None:
        """Give each new function of the model its XRay id."""
        n = self.model.count("functions")
        if n > len(self._ids):
            grown = ffi.new("uint32_t[]", 2 * n)
            ffi.memmove(grown, self._ids, 4 * self._n_ids)
            self._ids = grown
        for function in range(self._n_ids, n):
            number = self.model.numbers.get(function)
            if number is None:
                name = self.model.get_function(function).name if function else b""
                numbered = re.fullmatch(rb"#(\d{1,9})", name)
                number = int(numbered[1]) if numbered else _ID_LIMIT
            if number < _FIRST_MADE_UP:
                self._ids[function] = number
                continue
            self._ids[function] = self._made_up
            self._made_up = min(self._made_up + 1, _ID_LIMIT - 1)
            self._unnumbered += function > 0
        self._n_ids = n
        self._w.ids, self._w.n_ids = self._ids, n

    def put(self, batch: Batch) -> None:
        if not self._begun:
            self._begin(self.model.parts[batch.part])
        if self.model.count("functions") != self._n_ids:
            self._number_functions()
        self._status(lib.fp_xray_write_put(self._w, batch.c, self.out))
        self.report.rows["rows written"] += len(batch)

    def end(self) -> None:
        if not self._begun:
            self._begin(self.model.parts[0] if self.model.parts else None)
        w, unsaid = self._w, self.report.unsaid
        self._status(lib.fp_xray_write_end(w, self.out))
        for what, n in (
            ("function names (XRay logs hold only ids)", self._unnumbered),
            ("empty events", w.empty_events),
            ("events of 2 GiB and more", w.large_events),
            ("event types beyond 16 bits", w.wide_types),
        ):
            if n:
                unsaid[what] += int(n)
