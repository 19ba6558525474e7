"""Readers of small profiles in JSON (csrc/small_json/read.h)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastprof.core._c import ffi, lib
from fastprof.core._typing import ClassVar, fp_batch
from fastprof.core.c_memory import owned
from fastprof.core.log import Log
from fastprof.core.model import Model, Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, Options
from fastprof.core.source import Source
from fastprof.formats.small_json.reported import REPORTED


class SmallJsonReader(NativeReader):
    """A format of the C core; the first value type is the default.  Without value types it asks for a part."""

    shape: ClassVar[int]
    value_types: ClassVar[tuple[tuple[str, str], ...]]  # names and units
    decode = lib.fp_small_json_feed

    def start(self) -> None:
        self._r = owned(lib.fp_small_json_new(self.model.c, self.shape, self.options[LENIENT]), "the reader")
        types = [ValueType(name, unit) for name, unit in self.value_types]
        if types:
            self.part = self.model.add_part(Part(types, extra={"default_sample_type": types[0].name}))

    def finish(self) -> None:
        self.log.count_all(REPORTED, self._r)


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


class SafariReader(SmallJsonReader):
    """JavaScript samples with their times, which the file has from its start on.  Loses records of other timelines."""

    format = "safari"
    view = "stacks"
    shape = lib.FP_SMALL_SAFARI
    value_types = (("time", "nanoseconds"), ("samples", "count"))


class PyinstrumentReader(SmallJsonReader):
    """Samples in the order of a session, or the tree that pyinstrument made of them."""

    format = "pyinstrument"
    view = "stacks"
    shape = lib.FP_SMALL_PYINSTRUMENT
    value_types = ()

    def answer(self, batch: fp_batch) -> None:
        """The samples, or the tree, begin."""
        s = self._r
        types = [ValueType("wall", "nanoseconds")] + [ValueType("samples", "count")] * (not s.is_tree)
        part = Part(types, extra={"default_sample_type": "wall"})
        s.input = self.model.input()
        for name, ns in (("time_ns", s.start_ns), ("duration_ns", s.elapsed_ns)):
            if ns > 0:
                part.extra[name] = int(ns)
        part.comments = [self.model.string(s.target)] if s.target else []
        self.part = self.model.add_part(part)

    def finish(self) -> None:
        super().finish()
        s, model, text = self._r, self.model, ffi.new("uint32_t[2]")
        names, ids = dict[tuple[int, int], bytes](), dict[int, bytes]()
        for i in range(1, s.n_threads + 1):
            lib.fp_small_json_thread(s, i, text, text + 1)
            names[0, i], ids[i] = model.string(text[0]), model.string(text[1])
        if names:
            model.names.put(model.parts[self.part], s.input, {}, names, ids)
        self.log.facts |= {"cpu_seconds": s.cpu_ns / 1e9} if s.cpu_ns > 0 else {}


_RAW = re.compile(rb':\x08raw\[|"raw"\s{0,8}:\s{0,8}\[')
_TIMES = re.compile(rb':[^:\[]{1,3}raw_sample_timestamps\[|"raw_sample_timestamps"\s{0,8}:\s{0,8}\[\s{0,8}\d')
_LONGEST = 64  # bytes of a match


class StackprofReader(SmallJsonReader):
    """Samples, or without them the costs of frames and of their calls."""

    format = "stackprof"
    view = "stacks"
    shape = lib.FP_SMALL_STACKPROF
    value_types = ()
    renews_stacks = True

    def start(self) -> None:
        super().start()
        self._r.is_marshal = self.source.head.startswith(b"\4\b")
        if not self.source.search(_RAW, _LONGEST):
            self.view, self._r.is_graph = "graph", 1

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        if self.source.search(_TIMES, _LONGEST):  # the times of samples come after them
            self._r.only_times = 1
            yield 0, None
            self._r.only_times = 0
            lib.fp_small_json_again(self._r)
        yield 0, None

    def answer(self, batch: fp_batch) -> None:
        """The mode is known, which decides what an interval is of: microseconds, or allocations."""
        s, mode = self._r, self.model.string(self._r.mode).decode("utf-8", "replace")
        types = {"object": ValueType("alloc_objects", "count"), "custom": ValueType("events", "count")}
        one = types.get(mode) or ValueType("wall" if mode == "wall" else "cpu", "nanoseconds")
        self.log.facts |= {"mode": mode, "interval": int(s.interval)}
        if mode not in types:
            s.interval *= 1000
        self.part = self.model.add_part(
            Part([one, ValueType("samples", "count")], extra={"default_sample_type": one.name})
        )

    def finish(self) -> None:
        super().finish()
        s = self._r
        for name in ("samples", "gc_samples", "missed_samples"):
            self.log.facts[name] = int(getattr(s, name))


def stackprof(source: Source, model: Model, options: Options, log: Log) -> StackprofReader:
    """The reader of a file, which is searched for samples."""
    source.spool()
    return StackprofReader(source, model, options, log)
