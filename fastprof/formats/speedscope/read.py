"""Reads speedscope's JSON (csrc/speedscope/read.h)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import Reader
from fastprof.core.errors import FormatError
from fastprof.core.model import MAX_VALUE_TYPES, Model, Part, ValueType
from fastprof.core.options import LENIENT, Options
from fastprof.core.owner import owned
from fastprof.core.report import Report
from fastprof.core.source import Source
from fastprof.core.spill import Spilled

_TYPE = re.compile(rb'"type"\s{0,8}:\s{0,8}"(evented|sampled)"')
_LONGEST = 48  # bytes that match, at most
_SCALES = {b"nanoseconds": 0, b"microseconds": 3, b"milliseconds": 6, b"seconds": 9}  # to nanoseconds
# As fastprof calls profiles of samples: `thread 7: cpu (nanoseconds)`, `Ir, estimated from a call graph`.
_OURS = re.compile(rb'"exporter"\s*:\s*"fastprof-')
_NAMED = re.compile(r"(?:.*: )?(.+?)(?: \(([^()]*)\))?(, estimated from a call graph)?", re.DOTALL)


class SpeedscopeReader(Reader):
    """A timeline or stacks, as the first profile is; profiles of the other kind are left out, and counted."""

    format = "speedscope"

    def __init__(self, source: Source, model: Model, options: Options, report: Report) -> None:
        super().__init__(source, model, options, report)
        self.source.spool()  # the first profile may stand far behind; and there are two passes
        first = self.source.search(_TYPE, _LONGEST)
        self.view = "timeline" if first and first[1] == b"evented" else "stacks"
        new = lib.fp_speedscope_read_new(model.c, options[LENIENT])
        self._r = owned(new, lib.fp_speedscope_read_free, "the reader of speedscope's JSON")
        self._is_ours = _OURS.search(self.source.head) is not None
        self._file = Spilled()
        self._read = 0  # bytes of the kept values in the file
        self._others = 0
        self._types: list[ValueType] = []  # of stacks, known after the first pass

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        yield 0, None
        self._plan()
        lib.fp_speedscope_again(self._r)
        yield 0, None

    def _plan(self) -> None:
        """What becomes of each profile."""
        r, model = self._r, self.model
        wanted = lib.FP_SPEEDSCOPE_EVENTED if self.view == "timeline" else lib.FP_SPEEDSCOPE_SAMPLED
        profiles = [r.profiles[i] for i in range(r.n_profiles)]
        mine = [(i, p) for i, p in enumerate(profiles, 1) if p.type == wanted]
        self._others = len(profiles) - len(mine)
        input_ = model.input() if mine else 0
        named = [self._named(p) for _, p in mine]
        types = [self._value_type(p, name) for (_, p), name in zip(mine, named, strict=True)]
        alike = Counter(types)
        self._types = list(alike) or [ValueType("weight", "count")]  # of stacks
        if len(self._types) > MAX_VALUE_TYPES:
            detail = f"profiles have {len(self._types):,} names and units, expected up to {MAX_VALUE_TYPES:,}"
            raise FormatError(self.source.name, self.format, detail)
        if self.view == "stacks":
            estimated = [b"stacks are estimated from a call graph"] * any(name and name[3] for name in named)
            model.add_part(Part(value_types=self._types, comments=estimated))
        parts: dict[Any, int] = {}
        names = [(0, i, model.string(p.name)) for i, p in mine]
        for (i, p), value_type in zip(mine, types, strict=True):
            unit = model.string(p.unit)
            p.wanted, p.scale = 1, _SCALES.get(unit, 0)
            p.is_time = is_time = unit in _SCALES
            if self.view == "timeline":
                key: Any = is_time
                part = Part(extra={"ticks_per_second": 1_000_000_000 * is_time})
                p.thread = model.thread(0, i, input_)
                part.extra["process_names"] = [(0, b"")]
                part.extra["thread_names"] = [name for name in names if name[2]]
            else:
                p.column = self._types.index(value_type)
                p.part = len(model.parts) - 1
                p.thread = model.thread(0, i, input_) if alike[value_type] > 1 else 0
                continue
            if key not in parts:
                parts[key] = model.add_part(part)
            p.part = parts[key]

    def _named(self, profile: Any) -> re.Match[str] | None:
        """What the name says, if it is one that fastprof gave.  Others call a profile as they like."""
        return _NAMED.fullmatch(self.model.string(profile.name).decode("utf-8", "replace")) if self._is_ours else None

    def _value_type(self, profile: Any, name: re.Match[str] | None) -> ValueType:
        unit = self.model.string(profile.unit)
        if unit in _SCALES:
            return ValueType(name[1] if name else "time", "nanoseconds")
        if unit == b"bytes":
            return ValueType(name[1] if name else "size", "bytes")
        return ValueType(name[1], name[2] or "") if name else ValueType("weight", "count")

    def feed(self, in_: Any, batch: Any, err: Any) -> int:
        r = self._r
        n_values = len(self._types)
        if self.view == "stacks" and batch.n_values != n_values and lib.fp_batch_set_values(batch, n_values):
            raise MemoryError("no memory for a batch's values")
        while (status := lib.fp_speedscope_feed(r, in_, batch, err)) == lib.FP_ASK:
            if r.asks == lib.FP_SPEEDSCOPE_SPILL:
                self._spill()
            else:
                self._refill()
        return int(status)

    def _spill(self) -> None:
        if self._r.n_first == lib.FP_SPEEDSCOPE_KEPT:  # the first ones of a profile
            self._file = Spilled()
            self._read = 0
        self._file.append(memoryview(ffi.buffer(self._r.kept, 8 * self._r.n_kept)))
        self._r.n_kept = 0

    def _refill(self) -> None:
        """The next values in the file, which are those of one profile."""
        n = min(8 * lib.FP_SPEEDSCOPE_KEPT, max(8, self._file.nbytes - self._read))
        self._file.read(self._read, memoryview(ffi.buffer(self._r.kept, n)))
        self._read += n
        self._r.n_kept = n // 8

    def finish(self) -> None:
        r, report = self._r, self.report
        report.losses.add("unreadable-events", "events, samples or weights that could not be understood", r.broken)
        report.losses.add("unreadable-rest", "ends of texts that could not be read", r.bad_end)
        report.not_representable.add("other-profiles", "profiles of another kind than the first one", self._others)
        report.not_representable.add("rounded-weights", "weights with a fraction, rounded", r.rounded)
        report.facts["profiles"] = int(r.n_profiles)
