"""Writes sample profiles for LLVM's compilers."""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.engine import Writer
from fastprof.core.errors import FastprofError, check_sums
from fastprof.core.log import Log, percent
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.owner import owned
from fastprof.core.sink import Sink
from fastprof.core.words import Message, counted
from fastprof.formats.pgo import ENCODING, NEST
from fastprof.formats.pgo.binary import binary, extbinary
from fastprof.formats.pgo.gcov import gcov
from fastprof.formats.pgo.join import Join
from fastprof.formats.pgo.nest import SMALL, nest
from fastprof.formats.pgo.reported import REPORTED
from fastprof.formats.pgo.text import text

if TYPE_CHECKING:
    from fastprof.formats.pgo.levels import Profile

_LOW = 0.7  # optimized code has no lines for up to a quarter of its instructions
_FEW = 1_000_000  # samples
_ENCODERS = {"text": text, "binary": binary, "extbinary": extbinary}


class PgoWriter(Writer):
    """Adds up counts by address, and joins them with lines at the end."""

    view = "graph"
    advice = Message(
        "profiles for compilers need instruction addresses (valgrind --tool=callgrind --dump-instr=yes, perf, pprof) "
        "and the program with its debug information ({--symbols})"
    )

    def __init__(self, model: Model, sink: Sink, options: Options, log: Log) -> None:
        super().__init__(model, sink, options, log)
        self._c = owned(lib.fp_pgo_counts_new(model.c), lib.fp_pgo_counts_free, "counts of instructions")
        self._err = ffi.new("struct fp_err *")
        self._is_graph = True

    def put(self, batch: Batch) -> None:
        self._is_graph = batch.view == "graph"
        check_sums(lib.fp_pgo_put(self._c, batch.c, self._err), self._err, self.model, self.format)
        self.log.rows["rows_written"] += len(batch)

    def end(self) -> None:
        join = Join(self.model, self.options, self._is_graph)
        join.add(self._c)
        if join.total and not join.profile.functions:
            raise FastprofError("no function has debug information with lines (clang -g -fdebug-info-for-profiling)")
        self._report(join)
        if self._is_graph and (most := self.nested_bytes(join.profile)):
            nest(join.profile, join.sites, join.sizes, most)
        for piece in self.encoded(join.profile):
            self.text(piece)
        self.written = len(join.profile.functions)

    def nested_bytes(self, profile: Profile) -> int:
        """The most bytes of code of callees that are nested in their callers' levels; 0: none are."""
        return 0 if profile.has_nested else SMALL

    def encoded(self, profile: Profile) -> Iterator[bytes]:
        raise NotImplementedError

    def _report(self, join: Join) -> None:
        c, log = self._c, self.log
        log.facts["functions"] = len(join.profile.functions)
        log.facts["coverage"] = round(join.placed, 4)
        log.count_all(
            REPORTED,
            {
                "calls-elsewhere": join.n_jumps,
                "instructions-elsewhere": join.n_elsewhere,
                "jumps": c.jumps,
                "negative-counts": c.negative,
                "rows-without-address": c.without_address,
                "unplaced-instructions": join.n_unplaced,
                "unsymbolized-instructions": join.n_unknown,
            },
        )
        if join.total and join.placed < _LOW:
            log.warn(REPORTED["low-coverage"], placed=percent(join.placed))
        if not self._is_graph and 0 < join.total < _FEW:
            log.warn(REPORTED["few-samples"], samples=counted(join.total, "sample"))


class LlvmWriter(PgoWriter):
    format = "llvm-profile"

    def nested_bytes(self, profile: Profile) -> int:
        most: int | None = self.options[NEST]
        return super().nested_bytes(profile) if most is None else most

    def encoded(self, profile: Profile) -> Iterator[bytes]:
        return _ENCODERS[self.options[ENCODING]](profile)


class GcovWriter(PgoWriter):
    format = "gcov-profile"

    def encoded(self, profile: Profile) -> Iterator[bytes]:
        return gcov(profile)
