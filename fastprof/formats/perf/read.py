"""Reads perf.data (csrc/perf/read.h)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Reader
from fastprof.core.errors import FormatError
from fastprof.core.log import Log
from fastprof.core.model import MAX_VALUE_TYPES, Model, Part, ValueType
from fastprof.core.options import LENIENT, MAX_MEMORY, Options
from fastprof.core.owner import owned
from fastprof.core.reported import counts_of
from fastprof.core.source import Source
from fastprof.core.spill import MOST_ROUNDS, Spilled
from fastprof.core.words import Message
from fastprof.formats.perf import CPUS
from fastprof.formats.perf.container import (
    HEADER_NBYTES,
    PIPE_HEADER_NBYTES,
    Attr,
    BuildId,
    Header,
    Section,
    attr,
    attr_nbytes,
    build_id,
    build_ids,
    header,
)
from fastprof.formats.perf.dumps import Dumps
from fastprof.formats.perf.features import Features
from fastprof.formats.perf.files import Files
from fastprof.formats.perf.inflate import Inflate
from fastprof.formats.perf.names import BPF_OUTPUT, CONTEXT_SWITCHES, DUMMY, SOFTWARE, TRACEPOINT, name_of
from fastprof.formats.perf.reported import REPORTED
from fastprof.formats.perf.tables import ENDS, MACHINES, Tables

if TYPE_CHECKING:
    from fastprof.core._c import fp_batch, fp_err, fp_in
    from fastprof.formats.perf.tracing import Tracepoint

_ATTR, _EVENT_TYPE, _BUILD_ID, _EVENT_UPDATE, _FEATURE, _TRACING_DATA = 64, 65, 67, 78, 80, 66
_UPDATE_NAME = 2
_MOST_SECTION = 64 << 20
_MOST_NAMES = (MAX_VALUE_TYPES - 1) // 2 - 1  # reserves one for off-CPU time
_OTHERS = "other events"
_OFF_CPU = "off-cpu"
_CONTEXT_SWITCH = 1 << 26  # of the flags: the recording has SWITCH records
_SWITCH_EVENT = "sched:sched_switch"
_OFF_CPU_EVENT = "offcpu-time"  # of perf record --off-cpu
_LEAST_TIMER_NS = 10_000  # perf_swevent_start_hrtimer in kernel/events/core.c

# Fields of samples that are dropped, by the bits of sample_type.
_EXTRAS = {
    "data-addresses": 1 << 3 | 1 << 19,
    "raw-data": 1 << 10,
    "sample-branches": 1 << 11,
    "sample-registers": 1 << 12 | 1 << 18,
    "sample-weights": 1 << 14 | 1 << 15 | 1 << 17 | 1 << 24,
    "sample-traces": 1 << 20,
}


class Event:
    """An event of the recording; `number` is the decoder's."""

    def __init__(self, number: int, attr: Attr, ids: tuple[int, ...]) -> None:
        self.number = number
        self.attr = attr
        self.ids = ids
        self.given = ""  # its name in the file
        self.tracepoint: Tracepoint | None = None  # its fields become labels

    @property
    def name(self) -> str:
        return self.given or (self.tracepoint.name if self.tracepoint else name_of(self.attr))

    @property
    def unit(self) -> str:
        """The unit of its periods.  Software clocks count nanoseconds, unless the fixed period is shorter than the
        kernel's timer allows: `-c 1` samples every 10 us, yet each sample has a period of 1.
        """
        attr = self.attr
        too_fast = not attr.is_frequency and 0 < attr.period < _LEAST_TIMER_NS
        is_clock = attr.type == SOFTWARE and attr.config < 2 and not too_fast
        return "nanoseconds" if is_clock or self.is_off_cpu_time else "count"

    @property
    def is_off_cpu_time(self) -> bool:
        return self.attr.type == SOFTWARE and self.attr.config == BPF_OUTPUT and self.given == _OFF_CPU_EVENT

    @property
    def switched_by(self) -> int:
        """The enum fp_perf_switched if the event reports every thread switch, else 0."""
        attr = self.attr
        if attr.is_frequency or attr.period != 1:
            return 0
        if attr.type == SOFTWARE and attr.config == CONTEXT_SWITCHES:
            return int(lib.FP_PERF_BY_COUNTER)
        is_tracepoint = attr.type == TRACEPOINT and self.name.partition(" ")[0] == _SWITCH_EVENT
        return int(lib.FP_PERF_BY_TRACEPOINT) if is_tracepoint else 0


class PerfReader(Reader):
    """Samples of all events; each event has a value type for its samples and one for the sum of its periods.

    Not represented, and counted: data addresses, weights, branches, registers, raw data other than fields of
    tracepoints, records that are not samples.
    """

    format = "perf"
    view = "stacks"
    addresses = True
    renews_stacks = True
    remarks = frozenset({"side-records"})

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        super().__init__(source, model, options, log)
        self._r = r = owned(lib.fp_perf_reader_new(model.c), lib.fp_perf_reader_free, "the perf.data decoder")
        r.lenient = options[LENIENT]
        r.cpu_labels = options[CPUS]
        r.input = model.input()
        r.rounds.most = min(options[MAX_MEMORY], MOST_ROUNDS)
        self._header = Header("<", True)
        self._events: list[Event] = []
        self._features = Features("<")
        self._inflate = Inflate()
        self._spilled = Spilled()
        self._files = files = Files(options)
        self._tables, self._dumps = Tables(files), Dumps(files, log)
        self._own_kernel: tuple[int, int] | None = None  # its name and this machine's build id, both strings
        self._types: list[ValueType] = []
        self._columns: dict[str, int] = {}  # by name of an event
        self._off_cpu: int | None = None  # the column of off-CPU time
        r.off_column = lib.FP_PERF_NO_COLUMN
        self._part = -1

    # ---- the container

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        source, r = self.source, self._r
        files = sorted(source.folder.files, key=_number) if source.folder else []
        files = [file for file in files if _number(file)[0] < 2]
        start = files[0].start if files else 0
        end = files[0].start + files[0].size if files else None
        if not files and self._head(start).pipe:
            r.keep_marks = r.last = True
            lib.fp_perf_begin(r)
            yield PIPE_HEADER_NBYTES, None
            return
        source.spool()
        data = self._read_header(start, source.size if end is None else end)
        r.keep_marks, r.last = not files, len(files) < 2
        lib.fp_perf_begin(r)
        yield data
        for k, file in enumerate(files[1:], 2):
            self._inflate.restart()
            lib.fp_perf_begin(r)
            r.last = k == len(files)
            yield file.start, file.size

    def _head(self, start: int) -> Header:
        """Read the header.  Errors: FormatError if it is cut off."""
        source = self.source
        head = source.head if source.folder is None else source.read_at(start, HEADER_NBYTES)
        found = header(head)
        if found is None:
            raise self._damaged("the header is cut short", start, lib.FP_E_TRUNCATED)
        self._header = found
        self._r.swap = found.order == ">"
        self._features = Features(found.order)
        return found

    def _damaged(self, detail: str | Message, offset: int, code: int = lib.FP_E_MALFORMED) -> FormatError:
        return FormatError(self.source.name, self.format, detail, offset=offset, code=code)

    def _read_header(self, start: int, end: int | None) -> tuple[int, int | None]:
        """Read attributes and features of a file from `start` to `end`.  Returns the range of its records."""
        found = self._head(start)
        assert end is not None
        if not found.attr_nbytes:
            raise self._damaged("the size of an attribute is 0: perf record did not finish the file", start + 16)
        self._read_attrs(start, end)
        offset, nbytes = start + found.data.offset, found.data.nbytes
        if offset > end:
            raise self._damaged("the records start past the end of the file", start + 40, lib.FP_E_TRUNCATED)
        if not nbytes:
            self.log.count(REPORTED["unfinished-files"])
            return offset, end - offset
        if nbytes > end - offset:
            if not self.options[LENIENT]:
                detail = f"the records have {nbytes} bytes, but only {end - offset} follow"
                raise self._damaged(detail, start + 48, lib.FP_E_TRUNCATED)
            self.log.count(REPORTED["shortened-recordings"])
            return offset, end - offset
        self._read_features(start, end)
        return offset, nbytes

    def _read_attrs(self, start: int, end: int) -> None:
        at, nbytes = start + self._header.attrs.offset, self._header.attrs.nbytes
        if nbytes > end - at:
            raise self._damaged("the attributes extend past the end of the file", start + 24, lib.FP_E_TRUNCATED)
        data = self.source.read_at(at, min(nbytes, _MOST_SECTION))
        order, pos = self._header.order, 0
        while pos + 64 <= len(data):
            n = attr_nbytes(data[pos:], order)
            if n < 64 or pos + n + 16 > len(data):
                raise self._damaged(f"the size of an attribute is {n}", at + pos + 4)
            ids = Section(*struct.unpack_from(order + "QQ", data, pos + n))
            self._add_event(attr(data[pos : pos + n], order), self._read_ids(start, end, ids), at + pos)
            pos += n + 16

    def _read_ids(self, start: int, end: int, section: Section) -> tuple[int, ...]:
        """The ids of an attribute, as far as the file has them."""
        n = min(section.nbytes, max(end - start - section.offset, 0), _MOST_SECTION)
        if n < section.nbytes:
            self.log.count(REPORTED["damaged-features"])
        data = self.source.read_at(start + section.offset, n) if n else b""
        return struct.unpack(f"{self._header.order}{len(data) // 8}Q", data[: len(data) & ~7])

    def _add_event(self, found: Attr, ids: tuple[int, ...], offset: int) -> None:
        event = Event(len(self._events), found, ids)
        fields = {
            "sample_type": found.sample_type,
            "read_format": found.read_format,
            "branch_type": found.branch_type,
            "regs_user": found.regs_user,
            "regs_intr": found.regs_intr,
            "period": found.period,
            "flags": found.flags,
        }
        status = lib.fp_perf_add_event(self._r, ffi.new("struct fp_perf_attr *", fields))
        if status == lib.FP_E_MALFORMED:
            raise self._damaged("the events store the event id of a sample at different offsets", offset)
        if status or lib.fp_perf_add_ids(self._r, event.number, ids, len(ids)):
            raise MemoryError("no memory for events")
        self._events.append(event)
        self._describe_events()

    def _describe_events(self) -> None:
        self._name_events()
        self._describe_tracepoints()
        self._describe_switches()

    def _name_events(self) -> None:
        """Name events from the EVENT_DESC feature: by their ids or, without ids, by their order."""
        for k, description in enumerate(self._features.descriptions):
            for event in self._events:
                if description.name and not event.given:
                    is_it = event.ids[0] in description.ids if event.ids and description.ids else event.number == k
                    event.given = description.name if is_it else ""

    def _describe_tracepoints(self) -> None:
        for event in self._events:
            found = self._features.tracepoints.get(event.attr.config)
            if event.attr.type != TRACEPOINT or event.tracepoint or not found:
                continue
            event.tracepoint = found
            for name, *numbers in found.fields:
                field = ffi.new("struct fp_perf_field *", (self.model.intern(name), *numbers))
                if lib.fp_perf_add_field(self._r, event.number, field):
                    raise MemoryError("no memory for fields of tracepoints")

    def _describe_switches(self) -> None:
        """Tell the decoder which events and records report thread switches."""
        r = self._r
        for event in self._events:
            if event.is_off_cpu_time:
                lib.fp_perf_set_off_cpu_time(r, event.number)
            if event.attr.flags & _CONTEXT_SWITCH:
                r.off_cpu = True
            if event.switched_by:
                r.off_cpu = True
                fields = event.tracepoint.fields if event.tracepoint else ()
                places = {field.name: field.offset for field in fields if field.nbytes == 4}
                prev, next_ = places.get(b"prev_pid", 0), places.get(b"next_pid", 0)
                lib.fp_perf_set_switched(r, event.number, event.switched_by, prev, next_)

    def _read_features(self, start: int, end: int) -> None:
        """Read the sections after the records.  A damaged section does not stop the others."""
        found = self._header
        table = start + found.data.offset + found.data.nbytes
        entries = self.source.read_at(table, 16 * len(found.features))
        for k, number in enumerate(found.features):
            if 16 * k + 16 > len(entries):
                self.log.count(REPORTED["damaged-features"], len(found.features) - k)
                break
            offset, nbytes = struct.unpack_from(found.order + "QQ", entries, 16 * k)
            if not self._features.wants(number) or not nbytes:
                continue
            if offset > end - start or nbytes > end - start - offset or nbytes > _MOST_SECTION:
                self.log.count(REPORTED["damaged-features"])
                continue
            self._feature(number, self.source.read_at(start + offset, nbytes))

    def _feature(self, number: int, data: bytes) -> None:
        self.log.count(REPORTED["damaged-features"], not self._features.read(number, data))
        for found in build_ids(data, self._header.order) if number == Features.BUILD_ID else ():
            self._build_id(found)
        if self._features.mmap_nbytes:
            self._inflate.mmap_nbytes = self._features.mmap_nbytes
        self._r.machine = MACHINES.get(self._features.arch, 0)
        self._describe_events()

    def _build_id(self, found: BuildId) -> None:
        for name in _names_of(found):
            if lib.fp_perf_build_id(self._r, self.model.intern(name), self.model.intern(found.id)):
                raise MemoryError("no memory for build ids")

    def _use_own_kernel(self, text: int) -> None:
        """The kernel has no build id: `perf record -z` and pipes record none.  If its host and release are this
        machine's, and its `_text` is at the same address, which is random at each boot, it has this kernel's."""
        build_id = self._files.own_kernel(self._features.host, self._features.release, text)
        if build_id:
            self._own_kernel = self._r.requested_name, self.model.intern(build_id.encode())
            if lib.fp_perf_build_id(self._r, *self._own_kernel):
                raise MemoryError("no memory for build ids")

    # ---- records

    def feed(self, in_: fp_in, batch: fp_batch, err: fp_err) -> int:
        r = self._r
        if self._part >= 0:
            batch.part = self._part
        while (status := int(lib.fp_perf_feed(r, in_, batch, err))) == lib.FP_ASK:
            if r.request == lib.FP_PERF_COLUMNS:
                if batch.n:
                    return int(lib.FP_FULL)
                self._use_columns(batch, self._events[r.requested_event] if r.requested_event != lib.FP_NO_ID else None)
            elif r.request == lib.FP_PERF_SPILL:
                self._spilled.answer(r.rounds)
            elif r.request == lib.FP_PERF_TABLE:
                name, build_id = self.model.string(r.requested_name), self.model.string(r.requested_build_id)
                lib.fp_perf_set_table(r, *self._tables.find(name, build_id))
            elif r.request == lib.FP_PERF_KERNEL:
                self._use_own_kernel(r.requested_address)
            elif r.request == lib.FP_PERF_DUMP:
                self._dumps.give(r, ffi.buffer(r.record, r.record_n)[:], self._events[0].attr.clock)
            else:
                record = ffi.buffer(r.record, r.record_n)
                if r.request == lib.FP_PERF_RECORD:
                    self._record(record[:])
                else:
                    self._decompress(memoryview(record)[r.record_skip :])
        return status

    def _decompress(self, data: memoryview) -> None:
        r = self._r
        for part in self._inflate.parts(data):
            if lib.fp_perf_give(r, part, len(part)):
                raise MemoryError("no memory for compressed records")
        if self._inflate.error:
            if not self.options[LENIENT]:
                raise self._damaged(self._inflate.error, r.record_at)
            r.counts.bad_records += 1
            r.counts.lost_bytes += len(data)

    def _record(self, record: bytes) -> None:
        """Handle a rare record.  Damaged ones are counted and do not stop the others."""
        order = self._header.order
        type_, misc, _ = struct.unpack_from(order + "IHH", record)
        body = record[8:]
        try:
            if type_ == _ATTR:
                self._attr_record(body)
            elif type_ == _BUILD_ID:
                if (found := build_id(misc, body)) is not None:
                    self._build_id(found)
            elif type_ == _EVENT_UPDATE:
                kind, id_ = struct.unpack_from(order + "QQ", body)
                event = self._event_of(id_)
                if kind == _UPDATE_NAME and event is not None:
                    event.given = _text(body[16:])
                    self._describe_switches()
            elif type_ == _EVENT_TYPE:
                (config,) = struct.unpack_from(order + "Q", body)
                for event in self._events:
                    if event.attr.config == config and not event.given:
                        event.given = _text(body[8:72])
            elif type_ == _TRACING_DATA:
                nbytes, (n,) = struct.unpack_from(order + "H", record, 6)[0], struct.unpack_from(order + "I", body)
                self._feature(Features.TRACING, record[nbytes : nbytes + n])
            elif type_ == _FEATURE:
                (number,) = struct.unpack_from(order + "Q", body)
                if self._features.wants(number) and len(body) > 8:
                    self._feature(number, body[8:])
        except struct.error:
            self.log.count(REPORTED["damaged-features"])

    def _attr_record(self, body: bytes) -> None:
        order = self._header.order
        n = attr_nbytes(body, order)
        if n < 64 or n > len(body):
            raise self._damaged(f"the size of an attribute is {n}", self._r.record_at + 12)
        ids = struct.unpack(f"{order}{(len(body) - n) // 8}Q", body[n : n + (len(body) - n) // 8 * 8])
        self._add_event(attr(body[:n], order), ids, self._r.record_at)

    def _event_of(self, id_: int) -> Event | None:
        if len(self._events) == 1:
            return self._events[0]
        number = lib.fp_perf_event_of(self._r, id_)
        return self._events[number] if number != lib.FP_NO_ID else None

    # ---- parts

    def _use_columns(self, batch: fp_batch, event: Event | None) -> None:
        """Give the batch columns for all events, including new ones, and for off-CPU time."""
        if self._lacks(event):
            types = [*self._types]
            for other in self._events:
                is_dummy = other.attr.type == SOFTWARE and other.attr.config == DUMMY
                name = self._name(other)
                if name not in self._columns and (other is event or not is_dummy):
                    self._columns[name] = len(types)
                    types.append(ValueType(f"{name}_samples", "count"))
                    types.append(ValueType(name, other.unit))
            if self._r.off_cpu and self._off_cpu is None:
                self._off_cpu = len(types)
                types.append(ValueType(_OFF_CPU, "nanoseconds"))
            self._types = types
            self._part = self.model.add_part(self._new_part())
        for other in self._events:
            lib.fp_perf_set_column(self._r, other.number, self._columns.get(self._name(other), lib.FP_PERF_NO_COLUMN))
        if self._off_cpu is not None:
            self._r.off_column = self._off_cpu
        if lib.fp_batch_set_values(batch, len(self._types)):
            raise MemoryError("no memory for a batch's values")
        batch.part = self._part

    def _lacks(self, event: Event | None) -> bool:
        """Is there no column yet for this event, or for off-CPU time?"""
        return self._off_cpu is None if event is None else self._name(event) not in self._columns

    def _name(self, event: Event) -> str:
        """The name of its column."""
        return event.name if event.name in self._columns or len(self._columns) < _MOST_NAMES else _OTHERS

    def _new_part(self) -> Part:
        features, first = self._features, self._events[0]
        extra: dict[str, Any] = {}
        if self._columns and len(self._types) > 2:  # perf shows the first event first
            extra["default_sample_type"] = self._types[1].name
        is_periodic = first.attr.period and not first.attr.is_frequency and not first.is_off_cpu_time
        if len(self._events) == 1 and is_periodic:
            what = ("cpu", first.unit) if first.unit == "nanoseconds" else (first.name, first.unit)
            extra["period"], extra["period_type"] = first.attr.period, what
        if features.duration_ns:
            extra["duration_ns"] = features.duration_ns
        if features.start_ns:
            extra["time_ns"] = features.start_ns
        return Part(self._types, command=features.command, extra=extra)

    # ---- the end

    def _name_threads(self) -> None:
        """Name the threads that have samples, and main threads, which name their processes."""
        r, model, found, i = self._r, self.model, dict[tuple[int, ...], tuple[int, int]](), 1
        pid, tid, has_samples = ffi.new("uint32_t *"), ffi.new("uint32_t *"), ffi.new("int *")
        while (comm := lib.fp_perf_comm(r, i, pid, tid, has_samples)) != lib.FP_NO_ID:
            if comm:
                found[r.input, pid[0], tid[0]] = comm, has_samples[0]
            i += 1
        pids = {row[1] for row, (_, sampled) in found.items() if sampled}
        named = {row: model.string(comm) for row, (comm, sampled) in found.items() if sampled or row[1] == row[2]}
        if self._part >= 0:
            comms = {row: name for row, name in named.items() if row[1] in pids}
            model.names.put_comms(model.parts[self._part], comms)

    def finish(self) -> None:
        r, log = self._r, self.log
        self._name_threads()
        counts = r.counts
        log.count_all(
            REPORTED,
            counts_of(counts)
            | {
                "late-records": r.rounds.n_late,
                "side-records": sum(counts.skipped[k] for k in range(lib.FP_PERF_TYPES)),
                "unended-waits": counts.without_return + lib.fp_perf_waiting(r),
            },
        )
        n_samples = [int(lib.fp_perf_samples(r, event.number)) for event in self._events]
        for code, bits in _EXTRAS.items():
            of_events = zip(self._events, n_samples, strict=True)
            described = code == "raw-data"
            left_out = sum(
                n for event, n in of_events if event.attr.sample_type & bits and not (described and event.tracepoint)
            )
            log.count(REPORTED[code], left_out + (int(counts.without_fields) if described else 0))
        dropped = (n * e.tracepoint.n_dropped for e, n in zip(self._events, n_samples, strict=True) if e.tracepoint)
        log.count(REPORTED["tracepoint-fields"], sum(dropped))
        if counts.lost or counts.lost_samples:
            lost = int(counts.lost + counts.lost_samples)
            log.warn(REPORTED["lost-records"], file=self.source.name, lost=lost)
        objects = (self.model.row("objects", i) for i in range(1, self.model.count("objects")))
        if self._own_kernel and any(tuple(found[:2]) == self._own_kernel for found in objects):
            log.warn(REPORTED["own-kernel"], file=self.source.name)
        if counts.without_return:
            switches, missed = int(counts.switches), int(counts.without_return)
            log.warn(REPORTED["missed-returns"], file=self.source.name, missed=missed, switches=switches)
        facts = log.facts
        facts |= self._features.facts
        facts["byte_order"] = "big-endian" if r.swap else "little-endian"
        facts["mode"] = "directory" if self.source.folder else "pipe" if self._header.pipe else "file"
        facts["events"] = by_name = dict.fromkeys([event.name for event in self._events], 0)
        for event, n in zip(self._events, n_samples, strict=True):
            by_name[event.name] += n
        ends = {words: int(counts.unwound[end]) for end, words in ENDS.items() if counts.unwound[end]}
        if ends:
            facts["unwound_stacks"] = ends
        early = ", ".join(f"{n:,} end {words}" for words, n in ends.items() if words != ENDS[lib.FP_UNWIND_COMPLETE])
        if early:
            log.warn(REPORTED["stacks-that-end-early"], file=self.source.name, ends=early)
        facts["lost_records"], facts["lost_samples"] = int(counts.lost), int(counts.lost_samples)


def _number(file: Any) -> tuple[int, int]:
    """The sort key of a file in a directory: `data`, then `data.0`, `data.1` ..., then others."""
    stem, dot, number = file.name.partition(".")
    if stem != "data" or (dot and not number.isdecimal()):
        return 2, 0
    return (1, int(number)) if dot else (0, 0)


def _names_of(found: BuildId) -> Iterator[bytes]:
    """The names of an object with this build id: two for a kernel module."""
    name = found.name
    if name.startswith(b"[kernel.kallsyms]"):
        yield b"[kernel.kallsyms]"
        return
    yield name
    base = name.rpartition(b"/")[2]
    for suffix in (b".gz", b".xz", b".zst"):
        base = base.removesuffix(suffix)
    if name.startswith(b"/") and base.endswith(b".ko"):
        yield b"[" + base[:-3].replace(b"-", b"_") + b"]"


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "replace")
