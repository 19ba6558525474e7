"""Reads Trace Event JSON (csrc/trace_event/read.h)."""

from collections.abc import Iterable

from fastprof.chrome.samples import SamplesReader, count_ends
from fastprof.chrome.threads import ThreadNames
from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_batch, fp_err, fp_trace_event_read, fp_trace_event_record, fp_window
from fastprof.core.c_memory import owned
from fastprof.core.engine import Reader
from fastprof.core.log import Log
from fastprof.core.model import Model, Part
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, Options
from fastprof.core.source import Source
from fastprof.core.spill import Spilled
from fastprof.formats.trace_event import SAMPLES, begins_with_event
from fastprof.formats.trace_event.reported import REPORTED

_CALLS = re.compile(rb'"ph"\s{0,8}:\s{0,8}"[BEXbS]"')
_SAMPLED = re.compile(rb'"ph"\s{0,8}:\s{0,8}"P"|"samples"\s{0,8}:\s{0,8}\[\s{0,80}[^\s\]]')
_LONGEST = 128  # maximum length of a match in bytes
_RUN = 1 << 17  # bytes of each run kept in memory during a merge


class TraceEventReader(NativeReader):
    """A timeline in nanoseconds; objects are categories.  Loses arguments that are no numbers, and events that are
    neither calls nor instants, which are counted."""

    format = "trace-event"
    view = "timeline"
    decode = lib.fp_trace_event_feed

    def start(self) -> None:
        self._r: fp_trace_event_read = ffi.NULL
        self._threads = ThreadNames(self.model)
        self._file = Spilled()
        self._blocks: list[list[int]] = []  # of runs in the file: offset, bytes left
        self._merged, self._left = self._file, self._blocks  # file and blocks of the runs being merged
        self._windows: list[fp_trace_event_record] = []
        ticks = 0 if re.search(rb'"otherData"\s*:\s*\{[^{}]*"unit"\s*:\s*"ticks"', self.source.head) else 1_000_000_000
        self._ticks = ticks
        self._numbers: list[int] = []  # of parts, by document
        self._parts: list[list[Part]] = []  # these
        self._add_parts(1)

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        self.source.spool()  # out-of-order events require a second pass
        self._begin(by_time=False)
        yield 0, None
        if self._r.out_of_order:
            self._threads.again()
            self._begin(by_time=True)
            yield 0, None

    def _add_parts(self, n_documents: int) -> None:
        while len(self._numbers) < n_documents:
            self._parts.append([Part(extra={"ticks_per_second": self._ticks})])
            self._numbers.append(self.model.add_part(self._parts[-1][0]))

    def _begin(self, *, by_time: bool) -> None:
        new = lib.fp_trace_event_read_new(self.model.c, self.options[LENIENT], by_time)
        self._r = owned(new, "the reader of trace events")
        self._r.lines = begins_with_event(self.source.head)
        self._file, self._blocks = Spilled(), []

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        batch.part = self._numbers[0]
        status = super().feed(in_, batch, err)
        self._threads.add_names(self._parts)
        return status

    def _set_lane(self, _: fp_batch) -> None:
        r = self._r
        lib.fp_trace_event_set_lane(r, self._threads.lane(r.lane_of, r.lane))

    def _set_track(self, _: fp_batch) -> None:
        r = self._r
        lib.fp_trace_event_set_track(r, self._threads.lane(r.lane_of, r.lane) if r.lane else self._track())

    answers = {  # noqa: RUF012
        lib.FP_TRACE_EVENT_THREAD: lambda self, _: self._threads.set_thread(self._r.thread_ids),
        lib.FP_TRACE_EVENT_NAME: lambda self, _: self._threads.note(self._r.thread_ids, self._r.event.text),
        lib.FP_TRACE_EVENT_SPILL: lambda self, _: self._spill(),
        lib.FP_TRACE_EVENT_MERGE: lambda self, _: self._merge(),
        lib.FP_TRACE_EVENT_REFILL: lambda self, _: self._refill(self._r.run),
        lib.FP_TRACE_EVENT_LANE: _set_lane,
        lib.FP_TRACE_EVENT_TRACK: _set_track,
    }

    def _track(self) -> int:
        """The thread of asynchronous calls of a process and category."""
        return self._threads.track(self._r.thread_ids, self.model.string(self._r.category))

    # ---- records, sorted -----------------------------------------------------

    def _spill(self) -> None:
        r = self._r
        lib.fp_trace_event_sort(r)
        n = r.n_records * ffi.sizeof("struct fp_trace_event_record")
        self._blocks.append([self._file.nbytes, n])
        self._file.append(memoryview(ffi.buffer(r.records, n)))
        r.n_records = 0

    def _merge(self) -> None:
        r = self._r
        if r.pairing:
            self._spill()  # paired calls need the memory of the records
        lib.fp_trace_event_sort(r)
        self._merged, self._left = self._file, self._blocks
        self._file, self._blocks = Spilled(), []
        n = len(self._left)
        self._runs = ffi.new("struct fp_trace_event_run[]", n + 1)
        self._windows = [ffi.NULL] * n
        last = self._runs[n]
        last.records, last.n, last.eof = r.records, r.n_records, 1
        r.runs, r.n_runs = self._runs, n + 1
        if r.thread_ids.document:
            self._add_parts(int(r.thread_ids.document) + 1)
            self._part_of = ffi.new("uint32_t[]", self._numbers)
            r.parts = self._part_of

    def _refill(self, number: int) -> None:
        run, block, size = self._runs[number], self._left[number], ffi.sizeof("struct fp_trace_event_record")
        wanted = min(_RUN // size * size, block[1])
        self._windows[number] = kept = ffi.new("struct fp_trace_event_record[]", wanted // size)
        self._merged.read(block[0], memoryview(ffi.buffer(kept)))
        block[0] += wanted
        block[1] -= wanted
        run.records, run.n, run.pos = kept, wanted // size, 0
        run.eof = not block[1]

    def finish(self) -> None:
        r, log = self._r, self.log
        self._threads.add_names(self._parts, at_end=True)
        count_ends(log, r.json, is_cut=bool(r.counts.killed))
        log.count_all(REPORTED, r.counts)
        log.facts["events"] = int(r.counts.events)
        if r.thread_ids.document:
            log.facts["documents"] = int(r.thread_ids.document) + 1
        texts = [text.decode("utf-8", "replace") for text in bytes(r.stated[0 : r.n_stated]).split(b"\0")[:-1]]
        if texts:
            self.stated = {"metadata": dict(zip(texts[::2], texts[1::2], strict=True))}


class TraceSamplesReader(SamplesReader):
    """Samples of a trace."""

    format = "trace-event"


class CpuProfileReader(SamplesReader):
    """Samples of a file that is a single V8 profile."""

    format = "cpuprofile"


def reader(source: Source, model: Model, options: Options, log: Log) -> Reader:
    """The reader of a trace's calls, or of its samples if the options select them or it has nothing else."""
    source.spool()
    samples = options[SAMPLES] or (not source.search(_CALLS, _LONGEST) and source.search(_SAMPLED, _LONGEST))
    return (TraceSamplesReader if samples else TraceEventReader)(source, model, options, log)
