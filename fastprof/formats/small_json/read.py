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
    value_types: ClassVar[dict[str, str]]

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        self._s = owned(lib.fp_small_json_new(model.c, self.shape, options[LENIENT]), lib.fp_small_json_free, "a reader")
        types = [ValueType(name, unit) for name, unit in self.value_types.items()]
        self.part = model.add_part(Part(types, extra={"default_sample_type": types[0].name}))

    def step(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        return lib.fp_small_json_feed(self._s, in_, batch, err)

    def finish(self) -> None:
        self.log.count_all(REPORTED, counts_of(self._s))


class ScaleneReader(SmallJsonReader):
    """Costs of lines: CPU time, which is the sum of that in Python, in native code and in the system, and allocations."""

    format = "scalene"
    view = "graph"
    shape = lib.FP_SMALL_SCALENE
    value_types: ClassVar = {
        **dict.fromkeys(("cpu", "python", "native", "system"), "nanoseconds"),
        "alloc": "bytes",
    }


class GhcJsonReader(SmallJsonReader):
    """The tree of cost centres of a GHC profile."""

    format = "ghc-json"
    view = "stacks"
    shape = lib.FP_SMALL_GHC
    value_types: ClassVar = {"time": "nanoseconds", "alloc": "bytes", "entries": "count"}
