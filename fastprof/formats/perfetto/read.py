"""Reads Perfetto traces (csrc/perfetto/read.h)."""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.engine import Reader
from fastprof.core.errors import FormatError, check
from fastprof.core.log import Log
from fastprof.core.model import Model, Part, ValueType
from fastprof.core.options import LENIENT, MAX_MEMORY, Options
from fastprof.core.owner import owned
from fastprof.core.source import Source
from fastprof.core.spill import Spilled
from fastprof.formats.perfetto import DATA
from fastprof.formats.perfetto.inflate import Inflate
from fastprof.formats.perfetto.reported import REPORTED
from fastprof.formats.perfetto.threads import PlaceThreads

if TYPE_CHECKING:
    from fastprof.core._c import fp_batch, fp_err, fp_in

_MOST_ROUNDS = 1 << 34  # bytes of records in memory: the limit of the C code's counters
_NUMBERS = {
    "calls": lib.FP_PERFETTO_CALLS,
    "samples": lib.FP_PERFETTO_SAMPLES,
    "allocations": lib.FP_PERFETTO_HEAP,
    "objects": lib.FP_PERFETTO_OBJECTS,
    "states": lib.FP_PERFETTO_STATES,
    "off-cpu": lib.FP_PERFETTO_OFF_CPU,
}
_COUNTED = {
    "orphan-exits": lib.FP_PERFETTO_N_ORPHANS,
    "unwound-frames": lib.FP_PERFETTO_N_UNWOUND,
    "overlapping-calls": lib.FP_PERFETTO_N_LANES,
    "cut-calls": lib.FP_PERFETTO_N_CUT,
    "samples-without-stack": lib.FP_PERFETTO_N_EMPTY_STACKS,
    "negative-times": lib.FP_PERFETTO_N_NEGATIVE,
    "damaged-packets": lib.FP_PERFETTO_N_BAD_PACKETS,
    "skipped-bytes": lib.FP_PERFETTO_N_BAD_BYTES,
    "damaged-switches": lib.FP_PERFETTO_N_BAD_COMPACT,
    "zstd-packets": lib.FP_PERFETTO_N_ZSTD,
    "trace-calls": lib.FP_PERFETTO_N_CALLS,
    "trace-instants": lib.FP_PERFETTO_N_INSTANTS,
    "counter-values": lib.FP_PERFETTO_N_COUNTERS,
    "flows": lib.FP_PERFETTO_N_FLOWS,
    "event-arguments": lib.FP_PERFETTO_N_ANNOTATED,
    "event-stacks": lib.FP_PERFETTO_N_EVENT_STACKS,
    "track-states": lib.FP_PERFETTO_N_TRACK_STATES,
    "other-events": lib.FP_PERFETTO_N_OTHER_EVENTS,
    "trace-samples": lib.FP_PERFETTO_N_SAMPLES,
    "v8-chunks": lib.FP_PERFETTO_N_V8_CHUNKS,
    "heap-samples": lib.FP_PERFETTO_N_HEAP_SAMPLES,
    "heap-objects": lib.FP_PERFETTO_N_OBJECTS,
    "long-paths": lib.FP_PERFETTO_N_LONG_PATHS,
    "sched-switches": lib.FP_PERFETTO_N_SWITCHES,
    "unended-waits": lib.FP_PERFETTO_N_WAITS,
    "kernel-events": lib.FP_PERFETTO_N_KERNEL,
    "prints": lib.FP_PERFETTO_N_PRINTS,
    "other-packets": lib.FP_PERFETTO_N_OTHER,
}
_READ = {  # counts of data that become rows
    "calls": ("trace-calls", "trace-instants"),
    "samples": ("trace-samples",),
    "allocations": ("heap-samples",),
    "objects": ("heap-objects",),
    "states": ("sched-switches",),
    "off-cpu": ("sched-switches", "trace-calls"),
}
_LOST = {
    "dropped-packets": lib.FP_PERFETTO_N_DROPPED,
    "no-state": lib.FP_PERFETTO_N_STATELESS,
    "no-sequence": lib.FP_PERFETTO_N_NO_SEQUENCE,
    "no-time": lib.FP_PERFETTO_N_NO_TIME,
    "no-stacks": lib.FP_PERFETTO_N_NO_STACK,
    "lost-samples": lib.FP_PERFETTO_N_LOST_SAMPLES,
    "incomplete-stacks": lib.FP_PERFETTO_N_BAD_UNWINDS,
    "event-buffers-lost": lib.FP_PERFETTO_N_LOST_EVENTS,
    "lost-chunks": lib.FP_PERFETTO_N_LOST_CHUNKS,
    "incomplete-heap-dumps": lib.FP_PERFETTO_N_HEAP_PROBLEMS,
    "unknown-names": lib.FP_PERFETTO_N_NAMELESS,
}
_HEAP_TYPES = [
    ValueType(f"{what}_{name}", unit)
    for what in ("alloc", "freed", "inuse")
    for name, unit in (("objects", "count"), ("space", "bytes"))
]


class PerfettoReader(Reader):
    """Reads one kind of a trace's data; other kinds, counters, flows and arguments are only counted."""

    format = "perfetto"

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        new = lib.fp_perfetto_read_new(model.c, options[LENIENT])
        self._r = owned(new, lib.fp_perfetto_read_free, "the Perfetto decoder")
        self._err = ffi.new("struct fp_err *")
        self._inflate = Inflate()
        self._spilled = Spilled()
        self._r.rounds.most = min(options[MAX_MEMORY], _MOST_ROUNDS)
        self._surveying = False
        data = options[DATA] or self._choose()
        self.view = "timeline" if data in ("calls", "states") else "stacks"
        self.addresses = data in ("samples", "allocations")
        self._data = data
        self._r.data = _NUMBERS[data]
        self._threads = PlaceThreads(model, self._r)
        self._part = -1

    def _choose(self) -> str:
        """Choose the kind of data: calls, else samples, else heap dumps, else Java heaps, else states of threads."""
        self._survey(until_call=True)
        counts = self._r.counts
        found = "calls"
        if not counts[lib.FP_PERFETTO_N_CALLS]:
            if counts[lib.FP_PERFETTO_N_SAMPLES]:
                found = "samples"
            elif counts[lib.FP_PERFETTO_N_HEAP_SAMPLES]:
                found = "allocations"
            elif counts[lib.FP_PERFETTO_N_OBJECTS]:
                found = "objects"
            elif counts[lib.FP_PERFETTO_N_SWITCHES]:
                found = "states"
        self._restart()
        return found

    def _restart(self) -> None:
        """Read the trace again from its beginning."""
        self._spilled = Spilled()
        if lib.fp_perfetto_restart(self._r):
            raise MemoryError("no memory for the Perfetto decoder")

    def _survey(self, *, until_call: bool) -> None:
        """Read the whole trace once, without rows."""
        source, r = self.source, self._r
        source.spool()
        source.select(0)
        status = lib.FP_MORE
        while status in (lib.FP_MORE, lib.FP_ASK):
            if status == lib.FP_MORE:
                source.refill()
            else:
                self._answer()
            status = lib.fp_perfetto_survey(r, source.in_, until_call, self._err)
        check(status, self._err, source.name, self.format)
        source.select(0)

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        r = self._r
        if (self.addresses or self._data == "objects") and lib.fp_perfetto_keep_stacks(r):
            raise MemoryError("no memory for stacks")
        if self.addresses:  # symbols may come last
            self._survey(until_call=False)
            self._restart()
        self._part = self.model.add_part(self._new_part())
        yield 0, None
        if r.again:
            self._restart()
            yield 0, None

    def _new_part(self) -> Part:
        r, extra = self._r, {}
        if self.view == "timeline":
            return Part(extra={"ticks_per_second": 1_000_000_000})
        if self._data == "off-cpu":
            return Part([ValueType("off-cpu", "nanoseconds")])
        if self._data == "allocations":
            return Part([*_HEAP_TYPES], extra={"default_sample_type": "inuse_space"})
        if self._data == "objects":
            types = [ValueType("objects", "count"), ValueType("space", "bytes")]
            return Part(types, extra={"default_sample_type": "space"})
        if r.period and r.period_name:
            extra = {
                "period": int(r.period),
                "period_type": (self.model.string(r.period_name).decode("utf-8", "replace"), "count"),
            }
        return Part([ValueType("samples", "count")], extra=extra)

    def feed(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        r, part = self._r, self.model.parts[self._part]
        batch.part = self._part
        if part.value_types and lib.fp_batch_set_values(batch, len(part.value_types)):
            raise MemoryError("no memory for a batch's values")
        while (status := int(lib.fp_perfetto_feed(r, in_, batch, err))) == lib.FP_ASK:
            self._answer()
        self._threads.add_names(part)
        return status

    def _answer(self) -> None:
        r = self._r
        if r.asks == lib.FP_PERFETTO_THREAD:
            self._threads.answer()
        elif r.asks == lib.FP_PERFETTO_INFLATE:
            self._decompress()
        else:
            there = memoryview(ffi.buffer(r.rounds.bytes, r.rounds.n_bytes))
            if r.rounds.asks == lib.FP_ROUNDS_WRITE:
                self._spilled.append(there)
            else:
                self._spilled.read(r.rounds.offset, there)

    def _decompress(self) -> None:
        r = self._r
        piece, last = self._inflate.next(int(r.compressed_at), ffi.buffer(r.compressed, r.n_compressed)[:])
        if self._inflate.error:
            if not self.options[LENIENT]:
                detail = f"a compressed packet: {self._inflate.error}"
                raise FormatError(
                    self.source.name, self.format, detail, offset=int(r.compressed_at), code=lib.FP_E_MALFORMED
                )
            r.counts[lib.FP_PERFETTO_N_BAD_PACKETS] += 1
        if lib.fp_perfetto_give(r, piece, len(piece), last):
            raise MemoryError("no memory for compressed packets")

    def finish(self) -> None:
        r, log = self._r, self.log
        self._threads.add_names(self.model.parts[self._part], at_end=True)
        rows = _READ[self._data]
        log.count_all(REPORTED, {code: r.counts[index] for code, index in _COUNTED.items() if code not in rows})
        for code, index in _LOST.items():
            if n := int(r.counts[index]):
                log.warn(REPORTED[code], file=self.source.name, n=n)
        log.facts["packets"] = int(r.counts[lib.FP_PERFETTO_N_PACKETS])
