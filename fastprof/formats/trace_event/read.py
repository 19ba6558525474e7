"""Reads Trace Event JSON (csrc/trace_event/read.h)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import Reader
from fastprof.core.model import Model, Part
from fastprof.core.options import LENIENT, Options
from fastprof.core.owner import owned
from fastprof.core.report import Report
from fastprof.core.source import Source
from fastprof.core.spill import Spilled

_COMPLETE = re.compile(rb'"ph"\s{0,8}:\s{0,8}"X"')
_OVERLAP = 32  # more than the bytes that match
_WINDOW = 1 << 20  # bytes that are looked through at a time
_RUN = 1 << 17  # bytes of each run that are in memory when runs are merged
_NO_ID = (1 << 32) - 1


class TraceEventReader(Reader):
    """A timeline in nanoseconds.  Loses categories; and arguments that are no numbers and events that are neither calls
    nor instants, which are counted."""

    format = "trace-event"
    view = "timeline"

    def __init__(self, source: Source, model: Model, options: Options, report: Report) -> None:
        super().__init__(source, model, options, report)
        self._r: Any = None
        self._input: int | None = None  # its number in the model
        self._processes: dict[int, bytes] = {}
        self._threads: dict[tuple[int, int], bytes] = {}
        self._new_names = False
        self._numbers: dict[tuple[Any, ...], int] = {}  # of ids that are no 32-bit numbers, ours
        self._free = _NO_ID
        self._file = Spilled()
        self._blocks: list[list[int]] = []  # of runs in the file: offset, bytes that are left
        self._windows: list[Any] = []
        ticks = 0 if re.search(rb'"otherData"\s*:\s*\{[^{}]*"unit"\s*:\s*"ticks"', source.head) else 1_000_000_000
        self._part = model.add_part(Part(extra={"ticks_per_second": ticks}))

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        self.source.spool()
        new = lib.fp_trace_read_new(self.model.c, self.options[LENIENT], self._has_complete_events())
        self._r = owned(new, lib.fp_trace_read_free, "the reader of trace events")
        return ((0, None),)

    def _has_complete_events(self) -> bool:
        """Whether events have to be sorted: they may say that they began long before what stands before them."""
        window = bytearray(_OVERLAP + _WINDOW)
        at = n = 0
        while got := self.source.read_into(at, memoryview(window)[n:]):
            at += got
            if _COMPLETE.search(window, 0, n + got):
                return True
            kept = window[max(0, n + got - _OVERLAP) : n + got]
            n = len(kept)
            window[:n] = kept
        return False

    def feed(self, in_: Any, batch: Any, err: Any) -> int:
        batch.part = self._part
        r = self._r
        while (status := lib.fp_trace_feed(r, in_, batch, err)) == lib.FP_ASK:
            if r.asks == lib.FP_TRACE_WHO:
                self._tell_who()
            elif r.asks == lib.FP_TRACE_NAME:
                self._note_name()
            elif r.asks == lib.FP_TRACE_SPILL:
                self._spill()
            elif r.asks == lib.FP_TRACE_MERGE:
                self._merge()
            else:
                self._refill(r.hungry)
        if self._new_names:
            self._say_names()
        return int(status)

    # ---- processes and threads -----------------------------------------------

    def _number(self, id_: Any, *scope: int) -> int:
        """An id as the model holds it.  One that is a text or no 32-bit number gets a number that no other has."""
        if id_.kind != lib.FP_TRACE_TEXT and 0 <= id_.number < _NO_ID:
            return int(id_.number)
        key = (*scope, int(id_.kind), int(id_.number), int(id_.string))
        if key not in self._numbers:
            self._free -= 1
            self._numbers[key] = self._free
        return self._numbers[key]

    def _called(self, id_: Any) -> bytes | None:
        """What an id is really, if the model cannot hold it."""
        if id_.kind == lib.FP_TRACE_TEXT:
            return self.model.string(id_.string)
        return None if 0 <= id_.number < _NO_ID else b"%d" % id_.number

    def _ids(self) -> tuple[int, int]:
        pid = self._number(self._r.pid)
        return pid, self._number(self._r.tid, pid)

    def _tell_who(self) -> None:
        if self._input is None:
            self._input = self.model.input()
        pid, tid = self._ids()
        if (name := self._called(self._r.pid)) and pid not in self._processes:
            self._processes[pid] = name
        if (name := self._called(self._r.tid)) and (pid, tid) not in self._threads:
            self._threads[pid, tid] = b"thread " + name
        if lib.fp_trace_is(self._r, self.model.thread(pid, tid, self._input)):
            raise MemoryError("no memory for the threads of a trace")
        self._new_names = True

    def _note_name(self) -> None:
        pid, tid = self._ids()
        text = self._r.event.text
        name = bytes(ffi.buffer(text.p, text.n))
        if self._r.meta == 1:
            self._processes[pid] = name
        else:
            really = self._called(self._r.tid)
            self._threads[pid, tid] = name + (b" (%s)" % really if really else b"")
        self._r.noted = 1
        self._new_names = True

    def _say_names(self) -> None:
        self._new_names = False
        extra = self.model.parts[self._part].extra
        if self._processes:
            extra["process_names"] = [*self._processes.items()]
        if self._threads:
            extra.pop("thread_names", None)  # so that the order of keys is always the same
            extra["thread_names"] = [(pid, tid, name) for (pid, tid), name in self._threads.items()]

    # ---- records, sorted -----------------------------------------------------

    def _spill(self) -> None:
        r = self._r
        lib.fp_trace_sort(r)
        n = r.n_records * ffi.sizeof("struct fp_trace_record")
        self._blocks.append([self._file.nbytes, n])
        self._file.append(memoryview(ffi.buffer(r.records, n)))
        r.n_records = 0

    def _merge(self) -> None:
        r = self._r
        lib.fp_trace_sort(r)
        n = len(self._blocks)
        self._runs = ffi.new("struct fp_trace_run[]", n + 1)
        self._windows = [None] * n
        last = self._runs[n]
        last.records, last.n, last.eof = r.records, r.n_records, 1
        r.runs, r.n_runs = self._runs, n + 1

    def _refill(self, number: int) -> None:
        run, block, size = self._runs[number], self._blocks[number], ffi.sizeof("struct fp_trace_record")
        wanted = min(_RUN // size * size, block[1])
        self._windows[number] = kept = ffi.new("struct fp_trace_record[]", wanted // size)
        self._file.read(block[0], memoryview(ffi.buffer(kept)))
        block[0] += wanted
        block[1] -= wanted
        run.records, run.n, run.pos = kept, wanted // size, 0
        run.eof = not block[1]

    def finish(self) -> None:
        r, report = self._r, self.report
        for counter, code, text, n in (
            (report.repairs, "open-end", "arrays without an end", r.open_end),
            (report.repairs, "blank-events", "events that say nothing", r.empty),
            (report.repairs, "nameless-ends", "ends without a name, of the innermost call", r.nameless_ends),
            (report.repairs, "orphan-exits", "orphan exits", r.lost_ends),
            (report.repairs, "negative-times", "times below 0, taken for 0", r.below_zero),
            (report.repairs, "cut-calls", "calls that overlap their caller, cut", r.cut),
            (report.losses, "unreadable-events", "events that could not be understood", r.broken),
            (report.losses, "unreadable-rest", "ends of texts that could not be read", r.bad_end),
            (report.not_representable, "other-events", "counters, flows and other events", r.unsaid),
            (report.not_representable, "event-arguments", "events with arguments that are no numbers", r.other_args),
            (report.not_representable, "trace-samples", "tables of samples or their stacks", r.samples),
        ):
            counter.add(code, text, n)
        report.facts["events"] = int(r.events)
