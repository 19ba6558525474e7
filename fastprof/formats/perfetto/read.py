"""Reads Perfetto traces (csrc/perfetto/read.h)."""

from collections.abc import Iterable, Iterator
from json import dumps

from fastprof.chrome.samples import SamplesReader
from fastprof.core import lazy_re as re
from fastprof.core._c import lib
from fastprof.core._typing import fp_batch, fp_err, fp_window
from fastprof.core.allocators import NAMES
from fastprof.core.counted import COUNTED
from fastprof.core.engine import Reader, read_other
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import MAX_MEMORY, Options
from fastprof.core.source import Source
from fastprof.core.spill import Spilled
from fastprof.formats.perfetto import DATA
from fastprof.formats.perfetto.reported import REPORTED
from fastprof.formats.perfetto.threads import PlaceThreads
from fastprof.formats.perfetto.trace import FORMAT, Trace

_NUMBERS = {
    "calls": lib.FP_PERFETTO_CALLS,
    "samples": lib.FP_PERFETTO_SAMPLES,
    "allocations": lib.FP_PERFETTO_HEAP,
    "objects": lib.FP_PERFETTO_OBJECTS,
    "states": lib.FP_PERFETTO_STATES,
    "off-cpu": lib.FP_PERFETTO_OFF_CPU,
}
_READ = {  # counts of data that become rows
    "calls": ("trace-calls", "trace-instants"),
    "samples": ("trace-samples",),
    "allocations": ("heap-samples",),
    "objects": ("heap-objects",),
    "states": ("sched-switches",),
    "off-cpu": ("sched-switches", "trace-calls"),
    "v8": ("v8-chunks",),
}
_PACKET = re.compile(rb'\n\{"packet":(\d{1,19}),')  # the beginning of an event in the text of V8's samples
_LONGEST = 32  # bytes of that
_BLOCK = 1 << 20
_HEAP_TYPES = [
    ValueType(f"{what}_{name}", unit)
    for what in ("alloc", "freed", "inuse")
    for name, unit in (("objects", "count"), ("space", "bytes"))
]


class PerfettoReader(NativeReader):
    """Reads one kind of a trace's data; other kinds, counters, flows and arguments are only counted."""

    format = FORMAT
    decode = lib.fp_perfetto_feed

    def __init__(self, trace: Trace, data: str, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        self._trace, self._r = trace, trace.c
        self.view = "timeline" if data in ("calls", "states") else "stacks"
        self.addresses = self.renews_stacks = data in ("samples", "allocations")
        self.allocator = data == "allocations"
        self.has_tracks = data in ("calls", "samples")
        self._data = data
        self._r.data = _NUMBERS[data]
        self._threads = PlaceThreads(trace)

    def turn(self) -> None:
        """The states of threads."""
        self.view, self.addresses, self._data, self._r.data = "timeline", False, "states", _NUMBERS["states"]

    def has_other_rows(self) -> bool:
        return self.has_tracks and bool(self._r.counts[lib.FP_PERFETTO_N_SWITCHES])

    def other_rows(self, capacity: int | None = None) -> Iterator[Batch]:
        if self.has_other_rows():
            yield from read_other(reader(self.source, self.model, self.options, self.log), capacity)

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        r = self._r
        if self.addresses or self._data == "objects":
            self._trace.keep_stacks(self.options[MAX_MEMORY])
        if self.addresses:  # symbols may come last
            self._trace.survey(until_call=False)
            self._trace.restart()
        self.part = self.model.add_part(self._new_part())
        yield 0, None
        if r.again:
            self._trace.restart()
            yield 0, None

    def _new_part(self) -> Part:
        r, extra = self._r, {}
        if self.view == "timeline":
            return Part(extra={"ticks_per_second": 1_000_000_000})
        if self._data == "off-cpu":
            return Part([ValueType("off-cpu", "nanoseconds")])
        if self._data == "allocations":
            return Part([*_HEAP_TYPES], extra={"default_sample_type": "inuse_space", "drop_frames": NAMES})
        if self._data == "objects":
            types = [ValueType("objects", "count"), ValueType("space", "bytes")]
            return Part(types, extra={"default_sample_type": "space"})
        if r.period and r.period_name:
            extra = {
                "period": int(r.period),
                "period_type": (self.model.string(r.period_name).decode("utf-8", "replace"), "count"),
            }
        return Part([ValueType("samples", "count")], extra=extra)

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        status = super().feed(in_, batch, err)
        self._trace.rest()
        self._threads.add_names(self.model.parts[self.part])
        return status

    def answer(self, batch: fp_batch) -> None:
        if self._r.asks == lib.FP_PERFETTO_THREAD:
            self._threads.answer()
        else:
            self._trace.answer()

    def finish(self) -> None:
        self._threads.add_names(self.model.parts[self.part], at_end=True)
        if not self.is_second:
            count(self.log, self._trace, self._data, ("sched-switches",) if self.reads_second_view else ())


class V8Reader(SamplesReader):
    """Reads V8's samples, whose JSON is in events of the trace: a Chrome trace of them is made first."""

    format = FORMAT

    def __init__(self, trace: Trace, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        self._trace = trace
        self._text = Spilled()

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        trace, text, source = self._trace, self._text, self.source
        trace.survey(until_call=False)  # tracks may be described after their events
        trace.restart()
        text.append(memoryview(b"["))
        trace.extract(text)
        text.append(memoryview(b"".join(self._names())))
        text.append(memoryview(b"]"))
        try:
            with Source(text.file(), source.name, temporary=True) as self.source:
                yield from super().ranges()
        finally:
            self.source = source

    def _names(self) -> Iterable[bytes]:
        """The names of processes and threads, as events."""
        for (pid, tid), name in self._trace.names().items():
            kind = "process_name" if tid < 0 else "thread_name"
            event = {"ph": "M", "pid": pid, "tid": max(tid, 0), "name": kind, "args": {"name": name}}
            yield b"\n" + dumps(event).encode() + b","

    def locate(self, err: fp_err) -> None:
        """Set the offset to that of the packet: the last one before it in the text, which may be long."""
        at = int(err.offset)
        err.offset, end = 0, min(at + _LONGEST, self._text.nbytes)
        while end > 0 and not err.offset:
            first = max(0, end - _BLOCK)
            text = bytearray(end - first)
            self._text.read(first, memoryview(text))
            begun = [int(found[1]) for found in _PACKET.finditer(text) if first + found.start() <= at]
            err.offset = begun[-1] if begun else 0
            end = first and first + _LONGEST  # the blocks overlap

    def finish(self) -> None:
        super().finish()
        count(self.log, self._trace, "v8")


def count(log: Log, trace: Trace, data: str, also: tuple[str, ...] = ()) -> None:
    """Add counts and warnings of a trace to the log.  `also`: counts of what becomes rows, too."""
    r, rows = trace.c, (*_READ[data], *also)
    for code, (index, *_) in COUNTED["fp_perfetto_counts"].items():
        n, entry = int(r.counts[getattr(lib, index)]), REPORTED[code]
        if n and entry.kind == "warnings":
            log.warn(entry, file=trace.source.name, n=n)
        elif code not in rows:
            log.count(entry, n)
    log.facts["packets"] = int(r.counts[lib.FP_PERFETTO_N_PACKETS])


def reader(source: Source, model: Model, options: Options, log: Log) -> Reader:
    """The reader of a kind of the trace's data.  Names in events are not of the model if those of V8 are read."""
    data = options[DATA]
    trace = Trace(source, Model() if data == "v8" else model, options)
    data = data or trace.choose()
    if data == "v8":
        return V8Reader(trace, source, model, options, log)
    return PerfettoReader(trace, data, source, model, options, log)
