"""Reads pprof's profile.proto (csrc/pprof/read.h)."""

from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_batch, fp_err, fp_window
from fastprof.core.c_memory import owned
from fastprof.core.errors import check
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.formats.pprof.reported import REPORTED


class PprofReader(NativeReader):
    """One profile, read twice: tables may follow the samples that refer to them.

    A pipe or a compressed file is spooled to a temporary file first.
    """

    format = "pprof"
    view = "stacks"
    allocator = True
    addresses = True
    renews_stacks = True
    remarks = frozenset({"unknown-fields", "label-sets", "wide-line-numbers", "negative-line-numbers"})  # of tables

    def start(self) -> None:
        self._r = owned(lib.fp_pprof_reader_new(self.model.c, self.options[LENIENT]), "the pprof decoder")
        self._err = ffi.new("struct fp_err *")

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        self.source.spool()
        yield 0, None
        check(lib.fp_pprof_resolve(self._r, self._err), self._err, self.source.name, self.format)
        self.part = self.model.add_part(self._describe())
        yield 0, None

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        is_first = self.part < 0
        return lib.fp_pprof_tables(self._r, in_, err) if is_first else lib.fp_pprof_feed(self._r, in_, batch, err)

    def _describe(self) -> Part:
        r = self._r

        def text(string_id: int) -> bytes:
            return self.model.string(string_id)

        def name(string_id: int) -> str:
            return text(string_id).decode("utf-8", "surrogateescape")

        part = Part(comments=[text(r.comments[i]) for i in range(r.n_comments)])
        part.value_types = [ValueType(name(r.types[2 * i]), name(r.types[2 * i + 1])) for i in range(r.n_types)]
        extra = part.extra
        if r.has_period_type and r.period:  # without a period the type is meaningless, and often invented
            extra["period_type"] = (name(r.period_type), name(r.period_unit))
        for key in ("period", "time_ns", "duration_ns"):
            if value := int(getattr(r, key)):
                extra[key] = value
        for key in ("drop_frames", "keep_frames", "doc_url", "program"):
            if value := getattr(r, key):
                extra[key] = text(value)
        if r.default_sample_type:
            extra["default_sample_type"] = name(r.default_sample_type)
        return part

    def finish(self) -> None:
        stats, log = self._r.stats, self.log
        log.count_all(REPORTED, stats)
        extra = self.model.parts[self.part].extra
        facts = log.facts
        facts["sample_types"] = [f"{t.name}/{t.unit}" for t in self.model.parts[self.part].value_types]
        for key in ("period", "time_ns", "duration_ns"):
            if key in extra:
                facts[key] = extra[key]
