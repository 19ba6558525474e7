"""Reads perf.data (csrc/perf/read.h)."""

import struct
from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_batch, fp_perf_reader
from fastprof.core.branches import BRANCHES, apart, most, none
from fastprof.core.c_memory import enough, owned
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT, MAX_MEMORY
from fastprof.core.spill import MOST_ROUNDS, Spilled
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
from fastprof.formats.perf.events import Columns, Events
from fastprof.formats.perf.features import Features
from fastprof.formats.perf.files import Files
from fastprof.formats.perf.inflate import Inflate
from fastprof.formats.perf.reported import REPORTED
from fastprof.formats.perf.tables import MACHINES, Tables
from fastprof.formats.perf.totals import log_totals

_ATTR, _EVENT_TYPE, _BUILD_ID, _EVENT_UPDATE, _FEATURE, _TRACING_DATA = 64, 65, 67, 78, 80, 66
_UPDATE_NAME = 2
_MOST_SECTION = 64 << 20


class PerfReader(NativeReader):
    """Samples of all events; each event has a value type for its samples and one for the sum of its periods.

    Not represented, and counted: data addresses, weights, branches, registers, raw data other than fields of
    tracepoints, records that are not samples.
    """

    format = "perf"
    view = "stacks"
    decode = lib.fp_perf_feed
    addresses = True
    renews_stacks = True
    remarks = frozenset({"side-records"})
    _r: fp_perf_reader

    def start(self) -> None:
        self._r = r = owned(lib.fp_perf_reader_new(self.model.c), "the perf.data decoder")
        r.lenient = self.options[LENIENT]
        r.cpu_labels = self.options[CPUS]
        r.input = self.model.input()
        r.rounds.most = min(self.options[MAX_MEMORY], MOST_ROUNDS)
        self._header = Header("<", True)
        self._events = events = Events(r, self.model)
        self._columns = Columns(r, events)
        self._features = Features("<")
        self._inflate = Inflate()
        self._spilled = Spilled()
        self._files = files = Files(self.options)
        self._tables, self._dumps = Tables(files), Dumps(files, self.log)
        self._own_kernel: tuple[int, int] | None = None  # its name and this machine's build id, both strings

    # ---- the container

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        source, r = self.source, self._r
        wants = lib.FP_PERF_ONLY_BRANCHES if self.options[BRANCHES] else self.branches
        lib.fp_perf_set_branches(r, wants, apart(self.options), most(self.options))
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
            raise self.damaged("the header is cut short", start, lib.FP_E_TRUNCATED)
        self._header = found
        self._r.swap = found.order == ">"
        self._features = Features(found.order)
        return found

    def _read_header(self, start: int, end: int | None) -> tuple[int, int | None]:
        """Read attributes and features of a file from `start` to `end`.  Returns the range of its records."""
        found = self._head(start)
        assert end is not None
        if not found.attr_nbytes:
            raise self.damaged("the size of an attribute is 0: perf record did not finish the file", start + 16)
        self._read_attrs(start, end)
        offset, nbytes = start + found.data.offset, found.data.nbytes
        if offset > end:
            raise self.damaged("the records start past the end of the file", start + 40, lib.FP_E_TRUNCATED)
        if not nbytes:
            self.log.count(REPORTED["unfinished-files"])
            return offset, end - offset
        if nbytes > end - offset:
            if not self.options[LENIENT]:
                detail = f"the records have {nbytes} bytes, but only {end - offset} follow"
                raise self.damaged(detail, start + 48, lib.FP_E_TRUNCATED)
            self.log.count(REPORTED["shortened-recordings"])
            return offset, end - offset
        self._read_features(start, end)
        return offset, nbytes

    def _read_attrs(self, start: int, end: int) -> None:
        at, nbytes = start + self._header.attrs.offset, self._header.attrs.nbytes
        if nbytes > end - at:
            raise self.damaged("the attributes extend past the end of the file", start + 24, lib.FP_E_TRUNCATED)
        data = self.source.read_at(at, min(nbytes, _MOST_SECTION))
        order, pos = self._header.order, 0
        while pos + 64 <= len(data):
            n = attr_nbytes(data[pos:], order)
            if n < 64 or pos + n + 16 > len(data):
                raise self.damaged(f"the size of an attribute is {n}", at + pos + 4)
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
        if not self._events.add(found, ids):
            raise self.damaged("the events store the event id of a sample at different offsets", offset)
        self._events.describe(self._features)

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
        self._events.describe(self._features)

    def _build_id(self, found: BuildId) -> None:
        for name in _names_of(found):
            enough(lib.fp_perf_build_id(self._r, self.model.intern(name), self.model.intern(found.id)))

    def _use_own_kernel(self, text: int) -> None:
        """The kernel has no build id: `perf record -z` and pipes record none.  If its host and release are this
        machine's, and its `_text` is at the same address, which is random at each boot, it has this kernel's."""
        build_id = self._files.own_kernel(self._features.host, self._features.release, text)
        if build_id:
            self._own_kernel = self._r.requested_name, self.model.intern(build_id.encode())
            enough(lib.fp_perf_build_id(self._r, *self._own_kernel))

    # ---- records

    @property
    def _by_branches(self) -> bool:
        """Whether rows are branches."""
        r = self._r
        return bool(r.wants_branches == lib.FP_PERF_ONLY_BRANCHES or (r.wants_branches and r.has_branches))

    def _use_columns(self, batch: fp_batch) -> int | None:
        """Have columns for all events, including new ones, and for off-CPU time."""
        if batch.n:
            return int(lib.FP_FULL)
        if self._by_branches:
            self.part = self.model.add_part(self._columns.part_of_branches(self._features))
            return None
        number = self._r.requested_event
        event = self._events[number] if number != lib.FP_NO_ID else None
        if self._columns.lack(event):
            self._columns.add(event)
            self.part = self.model.add_part(self._columns.part(self._features))
        self._columns.tell()
        return None

    def _find_table(self, _: fp_batch) -> None:
        r, string = self._r, self.model.string
        found = self._tables.find(string(r.requested_name), string(r.requested_build_id))
        lib.fp_perf_set_table(r, *found)

    def _give_dump(self, _: fp_batch) -> None:
        self._dumps.give(self._r, self._requested().tobytes(), self._events[0].attr.clock)

    def _requested(self) -> memoryview:
        """The record that the decoder asks about."""
        return memoryview(ffi.buffer(self._r.record, self._r.record_n))

    answers = {  # noqa: RUF012
        lib.FP_PERF_COLUMNS: _use_columns,
        lib.FP_PERF_SPILL: lambda self, _: self._spilled.answer(self._r.rounds),
        lib.FP_PERF_TABLE: _find_table,
        lib.FP_PERF_KERNEL: lambda self, _: self._use_own_kernel(self._r.requested_address),
        lib.FP_PERF_DUMP: _give_dump,
        lib.FP_PERF_RECORD: lambda self, _: self._record(self._requested().tobytes()),
        lib.FP_PERF_COMPRESSED: lambda self, _: self._decompress(self._requested()[self._r.record_skip :]),
    }

    def _decompress(self, data: memoryview) -> None:
        r = self._r
        for part in self._inflate.parts(data):
            enough(lib.fp_perf_give(r, part, len(part)))
        if self._inflate.error:
            if not self.options[LENIENT]:
                raise self.damaged(self._inflate.error, r.record_at)
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
                event = self._events.of(id_)
                if kind == _UPDATE_NAME and event is not None:
                    event.given = _text(body[16:])
                    self._events.describe_switches()
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
            raise self.damaged(f"the size of an attribute is {n}", self._r.record_at + 12)
        ids = struct.unpack(f"{order}{(len(body) - n) // 8}Q", body[n : n + (len(body) - n) // 8 * 8])
        self._add_event(attr(body[:n], order), ids, self._r.record_at)

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
        if self.part >= 0:
            comms = {row: name for row, name in named.items() if row[1] in pids}
            model.names.put_comms(model.parts[self.part], comms)

    def finish(self) -> None:
        r, facts = self._r, self.log.facts
        if self._by_branches and not r.has_branches:
            raise none(self.source.name, self.options)
        self._name_threads()
        facts |= self._features.facts
        facts["byte_order"] = "big-endian" if r.swap else "little-endian"
        facts["mode"] = "directory" if self.source.folder else "pipe" if self._header.pipe else "file"
        objects = (self.model.row("objects", i) for i in range(1, self.model.count("objects")))
        own_kernel = self._own_kernel is not None and any(tuple(found[:2]) == self._own_kernel for found in objects)
        log_totals(self.log, r, self._events, self.source.name, own_kernel=own_kernel, by_branches=self._by_branches)


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
