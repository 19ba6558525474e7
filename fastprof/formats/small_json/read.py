"""Readers of small profiles in JSON (csrc/small_json/read.h)."""

from __future__ import annotations

from fastprof.core._c import lib
from fastprof.core._typing import TYPE_CHECKING, ClassVar
from fastprof.core.log import Log
from fastprof.core.model import Model, Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, Options
from fastprof.core.owner import owned
from fastprof.core.reported import counts_of
from fastprof.core.source import Source
from fastprof.formats.small_json.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.core._c import fp_batch, fp_err, fp_in


class SmallJsonReader(NativeReader):
    """A format of the C core; the first value type is the default."""

    shape: ClassVar[int]
    value_types: ClassVar[tuple[tuple[str, str], ...]]  # names and units

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        new = lib.fp_small_json_new(model.c, self.shape, options[LENIENT])
        self._s = owned(new, lib.fp_small_json_free, "the reader")
        types = [ValueType(name, unit) for name, unit in self.value_types]
        self.part = model.add_part(Part(types, extra={"default_sample_type": types[0].name}))

    def step(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        return lib.fp_small_json_feed(self._s, in_, batch, err)

    def finish(self) -> None:
        self.log.count_all(REPORTED, counts_of(self._s))


class ScaleneReader(SmallJsonReader):
    """Costs of lines: CPU time (of Python, native code and the system, and their sum) and allocations."""

    format = "scalene"
    view = "graph"
    shape = lib.FP_SMALL_SCALENE
    value_types = (*((name, "nanoseconds") for name in ("cpu", "python", "native", "system")), ("alloc", "bytes"))


class GhcJsonReader(SmallJsonReader):
    """The tree of cost centres of a GHC profile."""

    format = "ghc-json"
    view = "stacks"
    shape = lib.FP_SMALL_GHC
    value_types = (("time", "nanoseconds"), ("alloc", "bytes"), ("entries", "count"))
