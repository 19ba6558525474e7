"""Reads flight recordings (csrc/jfr/read.h)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Reader, Summary, decode, read
from fastprof.core.errors import FormatError, hexdump
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.options import LENIENT, MAX_MEMORY, Options
from fastprof.core.owner import owned
from fastprof.core.reported import counts_of
from fastprof.core.source import Source
from fastprof.core.spill import MOST_ROUNDS, Spilled
from fastprof.core.words import counted
from fastprof.formats.jfr import CLASS_FRAMES, EVENTS, JOIN_CLASSES, KINDS, SIGNATURES, TRUNCATED_ROOTS
from fastprof.formats.jfr.chunk import (
    CHECKPOINT_NBYTES,
    COLUMNS,
    HEADER_NBYTES,
    MAGIC,
    PREFERRED,
    Chunk,
    Place,
    Sampling,
    checkpoint,
    header,
    metric_of,
    sampling,
    settings_of,
    times,
)
from fastprof.formats.jfr.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.core._c import fp_batch, fp_err, fp_in

_NEXT = re.compile(rb"FLR\0\0[\1\2]")
_SEARCHED = 1 << 20  # bytes at a time
_SKIPPED = 1 << 18  # bytes of a checkpoint's rest that are not read on the way to the next record
_TIMES = frozenset({"time_ns", "duration_ns", "period", "period_type"})  # fields of parts
_MOST_SETTINGS = 20_000  # of a chunk; JDK 25 has 500

_OF_ROWS = ("overlapping-events", "shortened-events", "missing-constants", "damaged-records")  # counted with each view

# What `feed` does with the current range.
_WALK, _WALK_OPEN, _METADATA, _CONSTANTS, _EVENTS, _ROWS = range(6)


class JfrReader(Reader):
    """Samples of all kinds, each with its own value types; or a timeline of events with durations.

    All chunks are surveyed before the first is read, to find value types, periods and JVMs.  If rows are added up, an
    input that cannot seek is read chunk by chunk: a value type that begins in a later chunk begins a part there.
    """

    format = "jfr"
    other_view = "timeline"
    renews_stacks = True
    remarks = frozenset({"instant-events", "side-events", "timed-events", "undescribed-events"})

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        self._r = r = owned(lib.fp_jfr_reader_new(model.c), lib.fp_jfr_reader_free, "the JFR decoder")
        self.view = "timeline" if options[EVENTS] else "stacks"
        r.rounds.most = min(options[MAX_MEMORY], MOST_ROUNDS)
        self._spilled = Spilled()
        self._lenient = r.lenient = options[LENIENT]
        self._survey_log = log
        r.kinds, r.signatures, r.join = options[KINDS], options[SIGNATURES], options[JOIN_CLASSES]
        r.class_leaf, r.cut_root = options[CLASS_FRAMES], options[TRUNCATED_ROOTS]
        r.input, r.virtual_input = model.input(), model.input()
        self._phase = _WALK
        self._failed = False  # lenient: the range is damaged
        self._is_pipe = not source.seekable
        self._is_stream = False  # the input is read chunk by chunk
        self._has_only_spans: bool | None = None  # None: not probed
        self._chunk: Chunk | None = None
        self._chunks: list[Chunk] = []
        self._counts: Counter[str] = Counter()  # events by type
        self._stated: dict[str, Any] = {}  # for `info`
        self._pids: dict[int, None] = {}
        self._sampling: list[Sampling] = []  # of each chunk
        # The counter that ExecutionSample samples; "": time; None: not known yet.  The first chunk with a period
        # decides, so that a pipe and a file give the same.
        self._counter: str | None = None
        self._n_bad_records = 0  # those that the survey found
        self._lost_samples = self._lost_nbytes = 0
        self._types: list[ValueType] = []
        self._metrics: list[int] = []  # metrics that have columns
        self._part = -1

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
                if r.has_samples:
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

    # ---- the survey

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        self._r.timeline, self._r.is_summed = self.view == "timeline", self.summed
        self._survey_log = Log() if self.is_second else self.log
        try:
            yield from self._all()
        finally:
            lib.fp_jfr_abandon(self._r)

    def _all(self) -> Iterator[tuple[int, int | None]]:
        is_timeline = self.view == "timeline"
        self._is_stream = self._is_pipe and (self.summed or is_timeline) and not self.both
        end = yield from self._stream() if self._is_stream else self._file()
        if is_timeline:
            self._part = self.model.add_part(
                Part(
                    extra={
                        "ticks_per_second": 1_000_000_000,
                        **self._times(),
                    }
                )
            )
        elif self._part < 0:
            self._use_columns()
        if is_timeline or self.summed:
            yield self._range(_ROWS, end, end)

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
            if self._part >= 0:
                part = self.model.parts[self._part]
                part.extra = {key: value for key, value in part.extra.items() if key not in _TIMES} | times(
                    self._chunks, self._sampling, is_cpu=lib.FP_JFR_CPU in self._metrics
                )
        return at

    def _read_from(self, first: int) -> Iterator[tuple[int, int | None]]:
        """Read the chunks surveyed from this one on."""
        self._choose_columns(first)
        for chunk, how in zip(self._chunks[first:], self._sampling[first:], strict=True):
            yield from self._read(chunk, how)

    def _range(self, phase: int, at: int, end: int) -> tuple[int, int]:
        self._phase, self._failed, self._r.stop = phase, False, end
        return at, end - at

    def _damaged(self, detail: str, offset: int, code: int = lib.FP_E_MALFORMED) -> FormatError:
        return FormatError(self.source.name, self.format, detail, offset=offset, code=code)

    def _lose(self, code: str, detail: str, offset: int, kind: int = lib.FP_E_MALFORMED) -> None:
        """Report damage.  Errors: FormatError, unless lenient."""
        if not self._lenient:
            raise self._damaged(detail, offset, kind)
        self._survey_log.count(REPORTED[code])

    def _survey(self, at: int, size: int) -> Generator[tuple[int, int | None], None, int]:
        """Survey the chunk at byte `at` of the first `size`.  Returns where the next one may begin."""
        data = self.source.read_at(at, HEADER_NBYTES)
        found = header(data)
        if found is None:
            return self._no_chunk(at, data, size)
        if found.major not in (1, 2):
            whose = "; version 0 is another format, of JRockit and Oracle's JDK 7 and 8" if not found.major else ""
            detail = f"the version is {found.major}.{found.minor}, expected 1.0 to 2.x{whose}"
            raise self._damaged(detail, at + 4, lib.FP_E_VERSION)
        chunk = Chunk(at, found)
        yield from self._survey_chunk(chunk, size)
        return chunk.following

    def _no_chunk(self, at: int, data: bytes, size: int) -> int:
        """Skip bytes that are no chunk.  Returns the next chunk's offset.  Errors: FormatError, unless lenient."""
        if data[: len(MAGIC)] == MAGIC[: len(data)]:
            detail, code = f"the head of a chunk has {len(data)} bytes, expected {HEADER_NBYTES}", lib.FP_E_TRUNCATED
        else:
            detail, code = f"a chunk begins with {hexdump(data[:4])}, expected {hexdump(MAGIC)}", lib.FP_E_MALFORMED
        if not self._lenient:
            raise self._damaged(detail, at, code)
        then = self._next_chunk(at + 1, size)
        self._survey_log.count(REPORTED["skipped-bytes"], then - at)
        return then

    def _next_chunk(self, at: int, size: int) -> int:
        """The offset of the next header from `at` on; `size` if there is none."""
        while at < size:
            data = self.source.read_at(at, _SEARCHED)
            if match := _NEXT.search(data):
                return at + match.start()
            at += max(1, len(data) - 5)
        return size

    def _trusted(self, chunk: Chunk, size: int) -> bool:
        """Check the header of a finished chunk.  Errors: FormatError if it is wrong, unless lenient."""
        found, at = chunk.header, chunk.at
        if found.nbytes < HEADER_NBYTES:
            self._lose(
                "damaged-chunks", f"the size of a chunk is {found.nbytes}, expected {HEADER_NBYTES} or more", at + 8
            )
        elif found.nbytes > size - at:
            detail = f"a chunk has {found.nbytes} bytes, but only {size - at} follow"
            self._lose("damaged-chunks", detail, at + 8, lib.FP_E_TRUNCATED)
        elif not HEADER_NBYTES <= found.metadata < found.nbytes:
            self._lose("damaged-chunks", f"the offset of the metadata is {found.metadata}", at + 24)
        elif not HEADER_NBYTES <= found.constants < found.nbytes:
            self._lose("damaged-chunks", f"the offset of the last checkpoint is {found.constants}", at + 16)
        else:
            return True
        return False

    def _survey_chunk(self, chunk: Chunk, size: int) -> Iterator[tuple[int, int | None]]:
        found = chunk.header
        self._chunk = chunk
        self._begin(chunk)
        self._survey_log.count(REPORTED["unfinished-chunks"], not found.finished)
        if found.finished and self._trusted(chunk, size):
            end = chunk.at + found.nbytes
            yield self._range(_METADATA, chunk.at + found.metadata, end)
            if not self._failed:
                yield self._range(_WALK, chunk.records, end)
                self._end_walk(chunk, end)
                self._check_chain(chunk)
                if chunk.end < end:
                    self._add_after_damage(chunk, end)
                chunk.following = end
                self._chunks.append(chunk)
                return
        if self._is_stream:
            size = self.source.spool_part(chunk.at, None)  # lenient: the size of a damaged chunk is not known
        yield self._range(_WALK_OPEN, chunk.records, size)
        self._end_walk(chunk, size)
        if found.flushed > chunk.end - chunk.at:
            detail = f"a chunk has {found.flushed} bytes or more, but only {chunk.end - chunk.at} follow"
            self._lose("damaged-chunks", detail, chunk.at + 8, lib.FP_E_TRUNCATED)
        if chunk.metadata is None:
            if chunk.end > chunk.records:
                self._lose("damaged-chunks", "a chunk has no metadata", chunk.at)
            return
        end = chunk.end
        yield self._range(_METADATA, chunk.metadata.at, chunk.metadata.at + chunk.metadata.nbytes)
        if not self._failed:
            self._r.n_places = 0
            yield self._range(_WALK, chunk.records, end)
            self._end_walk(chunk, end)
            self._chunks.append(chunk)

    def _begin(self, chunk: Chunk) -> None:
        """Begin a chunk in the decoder."""
        r, found = self._r, chunk.header
        lib.fp_jfr_begin(r)
        r.compressed = found.compressed
        r.start_ns, r.start_ticks = found.start_ns, found.start_ticks
        r.ticks_per_second = found.ticks_per_second if found.ticks_per_second > 0 else 1_000_000_000
        r.pid = chunk.pid

    def _end_walk(self, chunk: Chunk, limit: int) -> None:
        """Take over the results of the walk up to `limit`."""
        r = self._r
        chunk.end = chunk.following = int(r.end)
        places = [r.places[i] for i in range(r.n_places)]
        chunk.checkpoints = [Place(int(one.at), int(one.size), int(one.delta)) for one in places if one.is_checkpoint]
        metadata = [Place(int(one.at), int(one.size), 0) for one in places if not one.is_checkpoint]
        chunk.metadata = metadata[-1] if metadata else None
        if chunk.end < limit and not r.is_next:  # lenient
            chunk.following = self._next_chunk(chunk.end + 1, limit)
            self._survey_log.count(REPORTED["skipped-bytes"], chunk.following - chunk.end)
        now = Counter({self._name(i): int(lib.fp_jfr_counted(r, i)) for i in range(1, r.counted.n)})
        chunk.counts = now - self._counts
        self._counts = now

    def _name(self, i: int) -> str:
        """The name of an event type that was counted."""
        strings = self._r.counted
        return bytes(strings.bytes[strings.start[i] : strings.start[i + 1]]).decode("utf-8", "replace")

    def _check_chain(self, chunk: Chunk) -> None:
        """Check that the header leads to the metadata and the last checkpoint, and each checkpoint to the previous one.

        Errors: FormatError if not, unless lenient.
        """
        if chunk.end < chunk.at + chunk.header.nbytes:
            return  # lenient: the walk did not reach the end
        at = chunk.at + chunk.header.metadata
        if chunk.metadata is None or chunk.metadata.at != at:
            self._lose("damaged-chunks", f"the head leads to metadata at byte {at}, where none is", chunk.at + 24)
        deltas = {one.at: one.delta for one in chunk.checkpoints}
        at, leads = chunk.at + chunk.header.constants, chunk.at + 16
        while True:
            if at not in deltas:
                self._lose("damaged-chunks", f"a checkpoint is expected at byte {at}, where none is", leads)
                return
            delta = deltas[at]
            if delta > 0:
                self._lose("damaged-chunks", "a checkpoint leads to a later one", at)
                return
            if not delta:
                return
            at, leads = at + delta, at

    def _add_after_damage(self, chunk: Chunk, end: int) -> None:
        """Add metadata and checkpoints after the damaged record that ended the walk; the header leads to them."""
        found = chunk.header
        chunk.metadata = Place(chunk.at + found.metadata, end - chunk.at - found.metadata, 0)
        at, more = chunk.at + found.constants, list[Place]()
        known = {one.at for one in chunk.checkpoints}
        while chunk.records <= at < end and at not in known:
            one = checkpoint(self.source.read_at(at, CHECKPOINT_NBYTES), at, compressed=found.compressed)
            if one is None or one.nbytes > end - at:
                break
            more.append(one)
            if one.delta >= 0:
                break
            at += one.delta
        chunk.checkpoints += reversed(more)

    def _fact(self) -> None:
        """Record an event that describes the recording."""
        r, chunk = self._r, self._chunk
        assert chunk is not None
        numbers = [int(r.fact[i].number) for i in range(3)]
        texts = [self._text(i) for i in range(3)]
        if r.requested_kind == lib.FP_JFR_SETTING:
            type_, name, value = texts
            if len(chunk.settings) < _MOST_SETTINGS:
                chunk.settings[type_, name] = value
        elif r.requested_kind == lib.FP_JFR_JVM:
            self._stated["jvm"], self._stated["jvm_version"] = texts[0], texts[1]
            chunk.pid = numbers[2] & 0xFFFFFFFF
            self._pids[chunk.pid] = None
        elif r.requested_kind == lib.FP_JFR_OS:
            self._stated["os"] = " ".join(texts[0].split())
        elif r.requested_kind == lib.FP_JFR_LOST_SAMPLES:
            self._lost_samples += max(0, numbers[0])
        else:
            self._lost_nbytes += max(0, numbers[0])

    def _text(self, i: int) -> str:
        fact = self._r.fact[i]
        return bytes(ffi.buffer(self._r.text.p + fact.text, fact.n)).decode("utf-8", "replace") if fact.n else ""

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
        before, self._part = self._part, self.model.add_part(part)
        if before >= 0:
            self.model.continued[self._part] = before
        self.model.open_parts.add(self._part)  # events may turn out to be of more value types
        self._types = types

    def _times(self) -> dict[str, Any]:
        return times(self._chunks, self._sampling, is_cpu=lib.FP_JFR_CPU in self._metrics)

    # ---- rows

    def _read(self, chunk: Chunk, how: Sampling) -> Iterator[tuple[int, int | None]]:
        r = self._r
        self._chunk = chunk
        self._begin(chunk)
        r.is_wall = how.is_wall
        r.period[lib.FP_JFR_CPU] = how.period if how.is_time == (not self._counter) else 0
        r.period[lib.FP_JFR_WALL] = how.wall_period
        place = chunk.metadata
        assert place is not None
        yield self._range(_METADATA, place.at, place.at + place.nbytes)
        for place in chunk.checkpoints:
            yield self._range(_CONSTANTS, place.at, place.at + place.nbytes)
        yield self._range(_EVENTS, chunk.records, chunk.end)

    def feed(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        r = self._r
        status = self._feed(in_, batch, err)
        if status == lib.FP_MORE and r.skip > _SKIPPED and self.source.seekable:
            at = int(in_.base + in_.pos + r.skip)
            r.skip = 0
            self.source.select(at, int(r.stop) - at)
        return status

    def _feed(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        r, phase = self._r, self._phase
        if phase >= _EVENTS:
            feed = self._feed_events if self.view == "stacks" else self._feed_spans
            return feed(in_, batch, err)
        if phase == _METADATA:
            status = int(lib.fp_jfr_metadata(r, in_, err))
            if status < 0 and self._lenient and status != lib.FP_E_NOMEM:
                self._survey_log.count(REPORTED["damaged-chunks"])
                self._failed = True
                return int(lib.FP_DONE)
            return status
        if phase == _CONSTANTS:
            return int(lib.fp_jfr_constants(r, in_, err))
        while (status := int(lib.fp_jfr_walk(r, phase == _WALK_OPEN, in_, err))) == lib.FP_ASK:
            if r.has_samples:
                return int(lib.FP_DONE)
            self._fact()
        return status

    def _feed_events(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        r = self._r
        if batch.n and batch.part != self._part:
            return int(lib.FP_FULL)
        while True:
            if batch.n_values != len(self._types) and lib.fp_batch_set_values(batch, len(self._types)):
                raise MemoryError("no memory for a batch's values")
            batch.part = max(self._part, 0)
            if self._phase == _ROWS:
                status = int(lib.fp_jfr_release(r, batch, err))
            else:
                status = int(lib.fp_jfr_feed(r, in_, batch, err))
            if status != lib.FP_ASK:
                return status
            if batch.n:
                return int(lib.FP_FULL)
            wanted = {*self._metrics, int(r.requested_metric)}
            self._metrics = [metric for metric in COLUMNS if metric in wanted]
            self._use_columns()

    def _feed_spans(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        r = self._r
        if self._phase == _ROWS:
            batch.part = self._part
        while True:
            status = int(lib.fp_jfr_spans(r, in_, err) if self._phase == _EVENTS else lib.fp_jfr_pull(r, batch, err))
            if status != lib.FP_ASK:
                return status
            self._spilled.answer(r.rounds)

    def has_other_rows(self) -> bool:
        return bool(self._r.counts.timed or self._r.has_lasting)

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
            found["instant-events"] = sum(self._counts.values()) - int(counts.rows)
        else:
            found["side-events"] = not_samples - int(counts.timed)
        if is_timeline or self.both:
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
        if self._part < 0:
            return
        names = dict[tuple[int, int], bytes]()
        for thread in range(1, self.model.count("threads")):
            if name := lib.fp_jfr_thread_name(self._r, thread):
                input_, pid, tid = self.model.row("threads", thread)
                self.model.names.threads[input_, pid, tid] = names[pid, tid] = self.model.string(name)
        self.model.names.put(self.model.parts[self._part], None, {}, names, {})
