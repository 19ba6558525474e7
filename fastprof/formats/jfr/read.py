"""Reads flight recordings (csrc/jfr/read.h)."""

from collections.abc import Generator, Iterator
from contextlib import suppress

from fastprof.core._c import lib
from fastprof.core._typing import Any, fp_batch, fp_err, fp_window
from fastprof.core.engine import Summary, decode, read
from fastprof.core.errors import FormatError
from fastprof.core.log import Log
from fastprof.core.messages import counted
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import MAX_MEMORY
from fastprof.core.reported import counts_of
from fastprof.core.spill import MOST_ROUNDS, Spilled
from fastprof.formats.jfr import CLASS_FRAMES, EVENTS, JOIN_CLASSES, KINDS, SIGNATURES, TRUNCATED_ROOTS
from fastprof.formats.jfr.chunk import (
    COLUMNS,
    HEADER_NBYTES,
    PREFERRED,
    Chunk,
    Sampling,
    header,
    metric_of,
    sampling,
    settings_of,
    times,
)
from fastprof.formats.jfr.reported import REPORTED
from fastprof.formats.jfr.survey import READ_CONSTANTS, READ_EVENTS, READ_METADATA, READ_ROWS, WALK_OPEN, Survey

_SKIPPED = 1 << 18  # bytes of a checkpoint's rest that are not read on the way to the next record
_TIMES = frozenset({"time_ns", "duration_ns", "period", "period_type"})  # fields of parts

_OF_ROWS = ("overlapping-events", "shortened-events", "missing-constants", "damaged-records")  # counted with each view


class JfrReader(Survey):
    """Samples of all kinds, each with its own value types; or a timeline of events with durations.

    All chunks are surveyed before the first is read, to find value types, periods and JVMs.  If rows are added up, an
    input that cannot seek is read chunk by chunk: a value type that begins in a later chunk begins a part there.
    """

    other_view = "timeline"
    has_tracks = True
    renews_stacks = True
    remarks = frozenset({"instant-events", "side-events", "timed-events", "undescribed-events"})

    def start(self) -> None:
        super().start()
        r = self._r
        self.view = "timeline" if self.options[EVENTS] else "stacks"
        r.rounds.most = min(self.options[MAX_MEMORY], MOST_ROUNDS)
        self._spilled = Spilled()
        named = r.options
        named.kinds, named.signatures, named.join = (
            self.options[KINDS],
            self.options[SIGNATURES],
            self.options[JOIN_CLASSES],
        )
        named.class_leaf, named.cut_root = self.options[CLASS_FRAMES], self.options[TRUNCATED_ROOTS]
        r.input, r.virtual_input = self.model.input(), self.model.input()
        self._is_pipe = not self.source.seekable
        self._has_only_spans: bool | None = None  # None: not probed
        self._sampling: list[Sampling] = []  # of each chunk
        # The counter that ExecutionSample samples; "": time; None: not known yet.  The first chunk with a period
        # decides, so that a pipe and a file give the same.
        self._counter: str | None = None
        self._n_bad_records = 0  # those that the survey found
        self._types: list[ValueType] = []
        self._metrics: list[int] = []  # metrics that have columns

    def prefers_other_view(self) -> bool:
        if self.view == "timeline":
            return False
        if self._has_only_spans is None:
            self._has_only_spans = JfrReader(self.source, Model(), self.options, Log())._probe()
        return self._has_only_spans

    def _probe(self) -> bool:
        """Whether the recording has events with durations, but no samples.  A damaged one counts as if it had some."""
        r, batch = self._r, Batch("stacks", 1)
        r.is_probe = True
        with suppress(FormatError):
            for offset, length in self._probed():
                for _ in decode(self, batch, offset, length):
                    pass
                if r.walked.has_samples:
                    return False
            return bool(r.counts.timed)
        return False

    def _probed(self) -> Iterator[tuple[int, int | None]]:
        """Survey all chunks.  Of a pipe, what was read is kept."""
        source, self._is_stream, at = self.source, self._is_pipe, 0
        while True:
            if self._is_pipe:
                end = source.spool_part(0, at + HEADER_NBYTES)
                found = header(source.read_at(at, HEADER_NBYTES)) if at < end else None
                end = source.spool_part(0, at + found.nbytes if found and found.is_whole else None)
            else:
                end = source.size or 0
            if at >= end:
                return
            at = yield from self._survey(at, end)

    # ---- ranges

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        self._r.timeline, self._r.is_summed = self.view == "timeline", self.summed
        self._survey_log = Log() if self.is_second else self.log
        try:
            yield from self._all()
        finally:
            lib.fp_jfr_abandon(self._r)

    def _all(self) -> Iterator[tuple[int, int | None]]:
        is_timeline = self.view == "timeline"
        self._is_stream = self._is_pipe and (self.summed or is_timeline) and not self.reads_second_view
        end = yield from self._stream() if self._is_stream else self._file()
        if is_timeline:
            extra = {"ticks_per_second": 1_000_000_000} | self._times()
            self.part = self.model.add_part(Part(extra=extra))
        elif self.part < 0:
            self._use_columns()
        if is_timeline or self.summed:
            yield self._range(READ_ROWS, end, end)

    def _file(self) -> Generator[tuple[int, int | None], None, int]:
        """Survey all chunks, then read them.  Returns the size of the input."""
        source = self.source
        source.spool()
        size = source.size if source.size is not None else source.spool_part(0, None)  # of a pipe that was probed
        at = 0
        while at < size:
            at = yield from self._survey(at, size)
        self._n_bad_records = int(self._r.counts.bad_records)
        yield from self._read_from(0)
        return size

    def _stream(self) -> Generator[tuple[int, int | None], None, int]:
        """Survey and read chunk by chunk.  Returns the size of the input."""
        source, at = self.source, 0
        while (end := source.spool_part(at, HEADER_NBYTES)) > at:
            found = header(source.read_at(at, HEADER_NBYTES))
            end = source.spool_part(at, found.nbytes if found and found.is_whole else None)
            first = len(self._chunks)
            at = yield from self._survey(at, end)
            yield from self._read_from(first)
            if self.part >= 0:
                part = self.model.parts[self.part]
                part.extra = {key: value for key, value in part.extra.items() if key not in _TIMES} | times(
                    self._chunks, self._sampling, is_cpu=lib.FP_JFR_CPU in self._metrics
                )
        return at

    def _read_from(self, first: int) -> Iterator[tuple[int, int | None]]:
        """Read the chunks surveyed from this one on."""
        self._choose_columns(first)
        for chunk, how in zip(self._chunks[first:], self._sampling[first:], strict=True):
            yield from self._read(chunk, how)

    # ---- columns

    def _choose_columns(self, first: int) -> None:
        """Choose value types for all samples that the survey counted, in the chunks from `first` on and before."""
        chunks = self._chunks[first:]
        self._sampling += map(sampling, chunks)
        found = {*self._metrics}
        for chunk, how in zip(chunks, self._sampling[first:], strict=True):
            for name in chunk.counts:
                if not (metric := metric_of(name)):
                    continue
                metric -= 1
                if metric == lib.FP_JFR_CPU:
                    metric = lib.FP_JFR_WALL if how.is_wall else metric
                    if how.period and self._counter is None:
                        self._counter = "" if how.is_time else how.event
                found.add(metric)
        self._metrics = [metric for metric in COLUMNS if metric in found]
        if self.view == "stacks" and self._metrics:
            self._use_columns()

    def _use_columns(self) -> None:
        """Begin a part with columns for all metrics, unless the present one has them."""
        types: list[ValueType] = []
        r, defaults = self._r, {}
        for metric in self._metrics:
            count, second, unit = COLUMNS[metric]
            r.column[metric] = len(types)
            types.append(ValueType(count, "count"))
            if metric == lib.FP_JFR_CPU:
                if not any(how.period for how in self._sampling):
                    second = ""
                elif self._counter:
                    second, unit = self._counter, "count"
            elif metric == lib.FP_JFR_WALL and not any(how.wall_period for how in self._sampling):
                second = ""
            r.has_value[metric] = bool(second)
            if second:
                types.append(ValueType(second, unit))
            defaults[metric] = types[-1].name
        types = types or [ValueType("samples", "count")]
        if types == self._types:
            return
        part = Part(types)
        part.extra |= self._times()
        preferred = next((metric for metric in PREFERRED if metric in defaults), None)
        shown = defaults[preferred] if preferred is not None else types[len(types) > 1].name
        if shown != types[-1].name:
            part.extra["default_sample_type"] = shown
        before, self.part = self.part, self.model.add_part(part)
        if before >= 0:
            self.model.continued[self.part] = before
        self.model.open_parts.add(self.part)  # events may turn out to be of more value types
        self._types = types

    def _times(self) -> dict[str, Any]:
        return times(self._chunks, self._sampling, is_cpu=lib.FP_JFR_CPU in self._metrics)

    # ---- rows

    def _read(self, chunk: Chunk, how: Sampling) -> Iterator[tuple[int, int | None]]:
        r = self._r
        self._chunk = chunk
        self._begin(chunk)
        r.chunk.is_wall = how.is_wall
        r.chunk.period[lib.FP_JFR_CPU] = how.period if how.is_time == (not self._counter) else 0
        r.chunk.period[lib.FP_JFR_WALL] = how.wall_period
        place = chunk.metadata
        assert place is not None
        yield self._range(READ_METADATA, place.at, place.at + place.nbytes)
        for place in chunk.checkpoints:
            yield self._range(READ_CONSTANTS, place.at, place.at + place.nbytes)
        yield self._range(READ_EVENTS, chunk.records, chunk.end)

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        r = self._r
        status = super().feed(in_, batch, err)
        if status == lib.FP_MORE and r.skip > _SKIPPED and self.source.seekable:
            at = int(in_.base + in_.pos + r.skip)
            r.skip = 0
            self.source.select(at, int(r.chunk.stop) - at)
        return status

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        r, phase = self._r, self._phase
        is_timeline = self.view == "timeline"
        if phase == READ_ROWS:
            return lib.fp_jfr_pull(r, batch, err) if is_timeline else lib.fp_jfr_release(r, batch, err)
        if phase == READ_EVENTS:
            return lib.fp_jfr_spans(r, in_, err) if is_timeline else lib.fp_jfr_feed(r, in_, batch, err)
        if phase == READ_METADATA:
            status = lib.fp_jfr_metadata(r, in_, err)
            if status < 0 and self._lenient and status != lib.FP_E_NOMEM:
                self._survey_log.count(REPORTED["damaged-chunks"])
                self._failed = True
                return int(lib.FP_DONE)
            return status
        if phase == READ_CONSTANTS:
            return lib.fp_jfr_constants(r, in_, err)
        return lib.fp_jfr_walk(r, phase == WALK_OPEN, in_, err)

    def _want_columns(self, batch: fp_batch) -> int | None:
        if batch.n:
            return int(lib.FP_FULL)
        wanted = {*self._metrics, int(self._r.requested_metric)}
        self._metrics = [metric for metric in COLUMNS if metric in wanted]
        self._use_columns()
        return None

    answers = {  # noqa: RUF012
        lib.FP_JFR_COLUMNS: _want_columns,
        lib.FP_JFR_FACT: lambda self, _: self.take_fact(),
        lib.FP_JFR_PROBED: lambda self, _: int(lib.FP_DONE),
        lib.FP_JFR_SPILL: lambda self, _: self._spilled.answer(self._r.rounds),
    }

    def has_other_rows(self) -> bool:
        return bool(self._r.counts.timed or self._r.walked.has_lasting)

    def summary(self) -> Summary | None:
        """The totals of rows that are sums of samples."""
        if self.view != "stacks":
            return None
        self.summed = True
        summary = Summary()
        for _ in summary.seen(read(self), self.model):
            pass
        counts = self._r.counts
        summary.c.first_time = min(summary.c.first_time, counts.first_time)
        summary.c.last_time = max(summary.c.last_time, counts.last_time)
        return summary

    # ---- the end

    def finish(self) -> None:
        counts, log = self._r.counts, self.log
        is_timeline = self.view == "timeline"
        not_samples = sum(n for name, n in self._counts.items() if not metric_of(name))
        self._name_threads()
        found = counts_of(counts)
        if self.is_second:
            found["damaged-records"] -= self._n_bad_records
            log.count_all(REPORTED, {code: found[code] for code in _OF_ROWS})
            return
        if is_timeline:
            found["instant-events"] = sum(self._counts.values()) - int(counts.taken)
        else:
            shown = int(counts.instants) if self.reads_second_view and self.has_other_rows() else 0
            found["side-events"] = not_samples - int(counts.timed) - shown
        if is_timeline or self.reads_second_view:
            found["timed-events"] = 0
        log.count_all(REPORTED, found)
        file = self.source.name
        if counts.truncated:
            log.warn(REPORTED["truncated-stacks"], file=file, samples=counted(int(counts.truncated), "sample"))
        if self._lost_samples:
            log.warn(REPORTED["lost-samples"], file=file, lost=self._lost_samples)
        if self._lost_nbytes:
            log.warn(REPORTED["lost-data"], file=file, lost=self._lost_nbytes)
        facts = log.facts
        facts |= self._stated
        if len(self._pids) == 1:
            facts["pid"] = next(iter(self._pids))
        facts["chunks"] = len(self._chunks)
        if self._chunks:
            last = self._chunks[-1].header
            facts["version"] = f"{last.major}.{last.minor}"
        facts["deepest_stack"] = int(counts.depth)
        if settings := settings_of(self._chunks, self._counts):
            facts["settings"] = settings
        facts["events"] = dict(sorted(self._counts.items(), key=lambda one: (-one[1], one[0])))

    def _name_threads(self) -> None:
        """Set the names of threads, for formats that store them outside labels."""
        if self.part < 0:
            return
        names = dict[tuple[int, int], bytes]()
        for thread in range(1, self.model.count("threads")):
            if name := lib.fp_jfr_thread_name(self._r, thread):
                input_, pid, tid = self.model.row("threads", thread)
                self.model.names.threads[input_, pid, tid] = names[pid, tid] = self.model.string(name)
        self.model.names.put(self.model.parts[self.part], None, {}, names, {})
