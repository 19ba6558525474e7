"""Reads LLVM sample profiles in text (csrc/pgo/read.h)."""

from __future__ import annotations

from fastprof.core._c import lib
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.log import Log
from fastprof.core.model import Model, Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, Options
from fastprof.core.owner import owned
from fastprof.core.reported import counts_of
from fastprof.core.source import Source
from fastprof.formats.pgo.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.core._c import fp_batch, fp_err, fp_in

_TYPES = ("samples", "calls", "entries")


class LlvmReader(NativeReader):
    """Counts at stacks of inlined functions, calls of targets, and entries of functions.

    Lines are offsets from the first line of their function.
    """

    format = "llvm-profile"
    view = "stacks"
    renews_stacks = True

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        new = lib.fp_pgo_reader_new(model.c, options[LENIENT])
        self._p = owned(new, lib.fp_pgo_reader_free, "the reader of sample profiles")
        types = [ValueType(name, "count") for name in _TYPES]
        self.part = model.add_part(Part(types, extra={"default_sample_type": types[0].name}))

    def step(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        return lib.fp_pgo_feed(self._p, in_, batch, err)

    def finish(self) -> None:
        self.log.facts["profiled_functions"] = int(self._p.functions)
        self.log.count_all(REPORTED, counts_of(self._p))
