"""Slow, obvious reader of XRay logs, to check the fast one against.

Every error names the first byte of the record it is about. `repairs` counts oddities that the runtime's own healthy
logs contain; `losses` counts the unreadable parts of a damaged file, which are errors unless `lenient`.

Source: compiler-rt/lib/xray (writers) and llvm/lib/XRay (reader) of LLVM 8 to 22.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

BASIC, FDR = 0, 1
HEADER_SIZE = 32
PROFILE_MAGIC = 0x7872617970726F66
U64 = (1 << 64) - 1

ENTER, EXIT, TAIL, ENTER_ARGS = "enter", "exit", "tail", "enter-args"
CUSTOM, TYPED = "custom", "typed"
FUNCTION_OPS = (ENTER, EXIT, TAIL, ENTER_ARGS)

NEW_BUFFER, END_OF_BUFFER, NEW_CPU, TSC_WRAP, WALL_TIME = 0, 1, 2, 3, 4
CUSTOM_EVENT, CALL_ARGUMENT, BUFFER_EXTENTS, TYPED_EVENT, PID = 5, 6, 7, 8, 9
EXTENTS_BYTE = BUFFER_EXTENTS << 1 | 1


class XRayError(Exception):
    def __init__(self, offset: int, message: str) -> None:
        super().__init__(f"at byte {offset}: {message}")
        self.offset = offset
        self.message = message


class Record(NamedTuple):
    """One event of one thread. Custom and typed ones have data and function 0."""

    pid: int
    tid: int
    cpu: int
    tsc: int
    op: str
    function: int
    args: tuple[int, ...] = ()
    data: bytes = b""
    type: int = 0


class Header(NamedTuple):
    order: str  # "<" or ">", as in struct
    version: int
    type: int
    constant_tsc: bool
    nonstop_tsc: bool
    frequency: int
    buffer_size: int


@dataclass
class Buffer:
    """One thread's run of FDR records, with times still relative to `records`' first TSC."""

    offset: int
    pid: int = 0
    tid: int = 0
    wall: tuple[int, int] = (0, 0)
    first_tsc: int = 0
    records: list[Record] = field(default_factory=list)
    raw: bytes = b""


@dataclass
class Log:
    header: Header
    threads: dict[tuple[int, int], list[Record]] = field(default_factory=dict)
    # Number of FDR buffers per thread; basic mode: always 1.
    buffers: Counter[tuple[int, int]] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)

    def records(self) -> Iterator[Record]:
        for records in self.threads.values():
            yield from records


class ProfileRow(NamedTuple):
    """A call path, root first. Ticks include callees and may have wrapped below zero."""

    block: int
    tid: int
    path: tuple[int, ...]
    calls: int
    ticks: int


@dataclass
class Profile:
    order: str
    version: int = 0
    time_ns: int = 0
    pid: int = 0
    rows: list[ProfileRow] = field(default_factory=list)


def read(data: bytes, *, lenient: bool = False, repair: bool = True) -> Log:
    """Read a basic or FDR log. `repair=False` keeps duplicates and backward times, as llvm does."""
    header = read_header(data)
    reader = FdrReader(data, header, lenient) if header.type == FDR else BasicReader(data, header, lenient)
    log = reader.read(repair)
    if repair:
        clamp_times(log)
    return log


def read_header(data: bytes) -> Header:
    if len(data) < HEADER_SIZE:
        raise XRayError(0, f"header is {len(data)} bytes, expected {HEADER_SIZE}")
    for order in "<>":
        version, kind, flags, frequency, buffer_size = struct.unpack_from(order + "HHIQQ", data)
        if kind in (BASIC, FDR) and 1 <= version <= (3, 5)[kind]:
            # Only two flag bits are ever set on purpose; the others are uninitialized memory.
            constant, nonstop = bool(flags & 1), bool(flags & 2)
            return Header(order, version, kind, constant, nonstop, frequency, buffer_size)
    raise XRayError(0, f"not an XRay log: it starts with {data[:4].hex()}")


def is_header(data: bytes, at: int, first: Header) -> bool:
    """Another log of the same version, appended to the first.  No thread id is as large as a frequency."""
    if at + HEADER_SIZE > len(data):
        return False
    version, kind, flags, frequency = struct.unpack_from(first.order + "HHIQ", data, at)
    if (version, kind, bool(flags & 1), bool(flags & 2)) != (*first[1:3], first.constant_tsc, first.nonstop_tsc):
        return False
    if not 1 << 22 < frequency < 1 << 37:
        return False
    if frequency != first.frequency:
        raise XRayError(at, f"a log of another clock: {frequency}, expected {first.frequency}")
    return True


def clamp_times(log: Log) -> None:
    for records in log.threads.values():
        latest = 0
        for i, record in enumerate(records):
            if record.tsc < latest:
                log.repairs["clamped-times"] += 1
                records[i] = record._replace(tsc=latest)
            latest = records[i].tsc


class BasicReader:
    def __init__(self, data: bytes, header: Header, lenient: bool) -> None:
        self.data, self.header, self.lenient = data, header, lenient
        self.log = Log(header)
        self.n_before = 0  # records of the logs before this one in the file

    def read(self, repair: bool) -> Log:
        for record in self.in_file_order():
            thread = self.log.threads.setdefault((record.pid, record.tid), [])
            thread.append(record)
        for key, records in self.log.threads.items():
            self.log.buffers[key] = 1
            if repair:
                self.log.threads[key] = self.without_replays(records)
        return self.log

    def in_file_order(self) -> list[Record]:
        found: list[Record] = []
        for at in range(HEADER_SIZE, len(self.data), 32):
            try:
                self.read_record(at, found)
            except XRayError:
                if not self.lenient:
                    raise
                self.log.losses["damaged-records"] += 1
        return found

    def read_record(self, at: int, found: list[Record]) -> None:
        order, has_pid = self.header.order, self.header.version >= 3
        if at + 32 > len(self.data):
            raise XRayError(at, f"truncated: record is {len(self.data) - at} bytes, expected 32")
        kind = struct.unpack_from(order + "H", self.data, at)[0]
        if kind == 0:
            cpu, op, function, tsc, tid, pid = struct.unpack_from(order + "xxBBIQII", self.data, at)
            if op >= len(FUNCTION_OPS):
                raise XRayError(at, f"function record type is {op}, expected 0..3")
            found.append(Record(pid if has_pid else 0, tid, cpu, tsc, FUNCTION_OPS[op], function))
        elif kind == 1:
            function, tid, pid, value = struct.unpack_from(order + "4xIIIQ", self.data, at)
            last = found[-1] if len(found) > self.n_before else None
            owner = (pid if has_pid else 0, tid, function)
            # When the stack depth limit is exceeded, the runtime drops the call but not its argument.
            if last is None or (last.pid, last.tid, last.function) != owner:
                if is_header(self.data, at, self.header):
                    self.begin_another(found)
                    return
                self.log.repairs["orphan-arguments"] += 1
            else:
                found[-1] = with_argument(last, value, self.log)
        elif is_header(self.data, at, self.header):
            self.begin_another(found)
        else:
            raise XRayError(at, f"record type is {kind}, expected 0 or 1")

    def begin_another(self, found: list[Record]) -> None:
        self.log.repairs["joined-logs"] += 1
        self.n_before = len(found)

    def without_replays(self, records: list[Record]) -> list[Record]:
        """Drop the records that a forked child wrote again from the buffer it inherited."""
        kept: list[Record] = []
        replay = 0  # index in kept of the record expected next; len(kept) outside a replay
        for record in records:
            if replay < len(kept) and kept[replay] == record:
                replay += 1
                self.log.repairs["replayed-records"] += 1
                continue
            # after more than one record, an equal one may be a recursive call within a tick of the clock
            if kept and (record.tsc < kept[-1].tsc or len(kept) == 1) and record in kept:
                replay = kept.index(record) + 1
                self.log.repairs["replayed-records"] += 1
                continue
            kept.append(record)
            replay = len(kept)
        return kept


def with_argument(record: Record, value: int, log: Log) -> Record:
    """llvm turns an exit followed by an argument into an enter; an exit stays an exit here."""
    if record.op in (ENTER, ENTER_ARGS):
        return record._replace(op=ENTER_ARGS, args=(*record.args, value))
    log.repairs["arguments-of-exits"] += 1
    return record


class FdrReader:
    def __init__(self, data: bytes, header: Header, lenient: bool) -> None:
        self.data, self.header, self.lenient = data, header, lenient
        self.log = Log(header)
        self.buffers: list[Buffer] = []

    def read(self, repair: bool) -> Log:
        at = HEADER_SIZE
        while at < len(self.data):
            if self.header.version > 1 and is_header(self.data, at, self.header):
                self.log.repairs["joined-logs"] += 1
                at += HEADER_SIZE
                continue
            at = self.read_buffer_v1(at) if self.header.version == 1 else self.read_buffer(at)
        for buffer in self.buffers:
            self.log.threads.setdefault((buffer.pid, buffer.tid), [])  # threads in the file's order
        in_order = sorted(self.buffers, key=lambda b: (b.wall, b.first_tsc, b.offset))
        seen: set[tuple[int, int, tuple[int, int], bytes]] = set()
        for buffer in in_order:
            identity = (buffer.pid, buffer.tid, buffer.wall, buffer.raw)
            # A thread still blocked when the log is flushed puts its buffer in two queue slots.
            if repair and identity in seen:
                self.log.repairs["duplicate-buffers"] += 1
                continue
            seen.add(identity)
            key = (buffer.pid, buffer.tid)
            self.log.buffers[key] += 1
            self.log.threads[key].extend(buffer.records)
        return self.log

    def lose(self, name: str, count: int, error: XRayError) -> None:
        if not self.lenient:
            raise error
        self.log.losses[name] += count

    def read_buffer_v1(self, start: int) -> int:
        """Buffers are all header.buffer_size long; the bytes after EndOfBuffer are stale."""
        size = self.header.buffer_size or len(self.data)
        end = min(start + size, len(self.data))
        past = self.read_run(start, end, cut_by_file=end == len(self.data))
        end_mark = self.data[past - 16 : past - 15] == bytes([END_OF_BUFFER << 1 | 1])
        return end if end_mark and self.header.buffer_size else past

    def read_buffer(self, start: int) -> int:
        data, version = self.data, self.header.version
        if data[start] != EXTENTS_BYTE:
            # Version 2 readers never relied on extents, so logs without them exist.
            if version == 2 and data[start] == NEW_BUFFER << 1 | 1:
                return self.read_run(start, len(data), cut_by_file=True)
            gap_end = data.find(EXTENTS_BYTE, start)
            gap_end = gap_end if gap_end >= 0 else len(data)
            error = XRayError(start, f"expected a BufferExtents record, found byte {data[start]:#04x}")
            self.lose("gap-bytes", gap_end - start, error)
            return gap_end
        if start + 16 > len(data):
            error = XRayError(start, f"truncated: record is {len(data) - start} bytes, expected 16")
            self.lose("cut-records", 1, error)
            return len(data)
        extents: int = struct.unpack_from(self.header.order + "Q", data, start + 1)[0]
        body, end = start + 16, start + 16 + extents
        cut = end > len(data)
        if cut:
            end = len(data)
            error = XRayError(start, f"truncated: buffer of {extents} bytes, {end - body} left")
            self.lose("cut-buffers", 1, error)
        while body < end:
            body = self.read_run(body, end, cut_by_file=cut)
        return end

    def read_run(self, start: int, end: int, cut_by_file: bool) -> int:
        """Read one NewBuffer run; returns where the next one can start (`end` at the latest)."""
        run = FdrRun(self, start, end, cut_by_file)
        try:
            run.read()
        except XRayError as error:
            self.lose("damaged-buffers", 1, error)
            run.at = end
        run.buffer.raw = self.data[start : run.at]
        self.buffers.append(run.buffer)
        return run.at


class FdrRun:
    """Decodes one buffer: preamble, then records with times relative to the last absolute TSC."""

    def __init__(self, reader: FdrReader, start: int, end: int, cut_by_file: bool) -> None:
        self.data, self.header, self.log = reader.data, reader.header, reader.log
        self.at, self.end, self.cut_by_file = start, end, cut_by_file
        self.buffer = Buffer(start)
        self.state = "start"  # then new, wall, pid, body
        self.has_typed = False
        self.argument_ok = False
        self.cpu = self.tsc = 0

    def unpack(self, layout: str) -> tuple[int, ...]:
        return struct.unpack_from(self.header.order + layout, self.data, self.at + 1)

    def fail(self, message: str) -> XRayError:
        return XRayError(self.at, message)

    def need(self, size: int) -> bool:
        """Whether the record's `size` bytes are there. A cut one is an error, or a known repair."""
        if self.at + size <= self.end:
            return True
        # The runtime leaves typed events' 16-byte heads out of the extents, which cuts the end off.
        if self.has_typed and not self.cut_by_file:
            self.log.repairs["records-cut-by-typed-events"] += 1
            self.at = self.end
            return False
        what = "file" if self.cut_by_file else "buffer"
        raise self.fail(f"truncated: {what} ends {self.end - self.at} bytes into a record of {size}")

    def read(self) -> None:
        while self.at < self.end:
            first = self.data[self.at]
            if first & 1:
                if not self.read_metadata(first >> 1):
                    return
            elif not self.read_function():
                return

    def read_function(self) -> bool:
        if not self.need(8):
            return False
        word, delta = struct.unpack_from(self.header.order + "II", self.data, self.at)
        kind, function = word >> 1 & 7, word >> 4
        if kind >= len(FUNCTION_OPS):
            raise self.fail(f"function record kind is {kind}, expected 0..3")
        self.need_body("function record")
        self.tsc = self.tsc + delta & U64
        self.add(self.cpu, self.tsc, FUNCTION_OPS[kind], function)
        self.at += 8
        self.argument_ok = True
        return True

    def need_body(self, what: str) -> None:
        if self.state != "body":
            raise self.fail(f"{what} before NewCPUId")

    def add(self, cpu: int, tsc: int, op: str, function: int, data: bytes = b"", type: int = 0) -> None:
        b = self.buffer
        b.records.append(Record(b.pid, b.tid, cpu, tsc, op, function, (), data, type))

    def read_metadata(self, kind: int) -> bool:
        """Read one metadata record; False ends this run."""
        if kind > PID:
            raise self.fail(f"metadata kind is {kind}, expected 0..{PID}")
        if kind == NEW_BUFFER and self.state != "start":
            return False
        # llvm's reader treats version 2 extents as mere hints, and so as an end mark.
        if kind == BUFFER_EXTENTS and self.header.version == 2 and self.cut_by_file:
            return False
        if kind == TYPED_EVENT:
            self.has_typed = True
        if not self.need(16):
            return False
        takes_argument, self.argument_ok = self.argument_ok, False
        size = 16
        if self.state == "start" and kind != NEW_BUFFER:
            raise self.fail(f"metadata kind is {kind}, expected NewBuffer (0)")
        if kind == NEW_BUFFER:
            # Signed in the runtime, but every reader shows ids as 32 unsigned bits.
            (self.buffer.tid,) = self.unpack("I")
            self.state = "new"
        elif kind == WALL_TIME:
            self.expect("new", "WallTime")
            seconds, micros = self.unpack("QI")
            self.buffer.wall = (seconds, micros)
            self.state = "wall"
        elif kind == PID:
            self.expect("wall", "Pid")
            (self.buffer.pid,) = self.unpack("I")
            self.state = "pid"
        elif kind == NEW_CPU:
            self.read_cpu()
        elif kind == TSC_WRAP:
            self.need_body("TSCWrap")
            (self.tsc,) = self.unpack("Q")
        elif kind == CALL_ARGUMENT:
            if not takes_argument:
                raise self.fail("CallArgument not after a function record")
            records = self.buffer.records
            records[-1] = with_argument(records[-1], self.unpack("Q")[0], self.log)
            self.argument_ok = True
        elif kind in (CUSTOM_EVENT, TYPED_EVENT):
            self.need_body("event")
            (length,) = self.unpack("i")
            if length < 0:
                raise self.fail(f"event size is {length}")
            size += length
            if not self.need(size):
                return False
            self.read_event(kind, self.data[self.at + 16 : self.at + size])
        elif kind == END_OF_BUFFER and self.header.version == 1:
            if self.state != "body":
                raise self.fail("EndOfBuffer before NewCPUId")
            self.at += size
            return False
        else:
            raise self.fail(f"metadata kind {kind} is not allowed here in version {self.header.version}")
        self.at += size
        return True

    def read_cpu(self) -> None:
        if self.state == "new":
            raise self.fail("NewCPUId before WallTime")
        self.cpu, self.tsc = self.unpack("HQ")
        if self.state != "body":
            self.buffer.first_tsc = self.tsc
        self.state = "body"

    def expect(self, state: str, what: str) -> None:
        if self.state != state:
            raise self.fail(f"{what} is not allowed here")

    def read_event(self, kind: int, payload: bytes) -> None:
        if kind == TYPED_EVENT:
            _, delta, event_type = self.unpack("iiH")
            self.tsc = self.tsc + delta & U64
            self.add(self.cpu, self.tsc, TYPED, 0, payload, event_type)
        elif self.header.version >= 5:
            _, delta = self.unpack("ii")
            self.tsc = self.tsc + delta & U64
            self.add(self.cpu, self.tsc, CUSTOM, 0, payload)
        else:
            # Absolute times, which later deltas do not build on; only version 4 states the CPU.
            _, tsc = self.unpack("iQ")
            cpu = self.unpack("iQH")[2] if self.header.version == 4 else self.cpu
            self.add(cpu, tsc, CUSTOM, 0, payload)


def is_profile(data: bytes) -> bool:
    """Whether this is a profile as the runtime writes it (the header-less layout has no mark)."""
    return data[:8] in (struct.pack("<Q", PROFILE_MAGIC), struct.pack(">Q", PROFILE_MAGIC))


def read_profile(data: bytes, order: str = "<") -> Profile:
    """Read a profile; `order` is used only for the header-less layout."""
    if not is_profile(data):
        return read_headerless_profile(data, order)
    profile = Profile("<" if data[0] == PROFILE_MAGIC & 0xFF else ">")
    if len(data) < HEADER_SIZE:
        raise XRayError(0, f"header is {len(data)} bytes, expected {HEADER_SIZE}")
    header = struct.unpack_from(profile.order + "QQQ", data, 8)
    profile.version, profile.time_ns, profile.pid = header
    at = HEADER_SIZE
    while at < len(data):
        size, number, tid = read_block_header(data, at, profile.order)
        end = at + size
        if size < 16 or end > len(data):
            raise XRayError(at, f"block size is {size}, expected 16..{len(data) - at}")
        at += 16
        while at < end:
            at, row = read_profile_row(data, at, end, profile.order, number, tid)
            profile.rows.append(row)
    return profile


def read_headerless_profile(data: bytes, order: str) -> Profile:
    """The layout of llvm's own profile library: a block head, its size unused, before every row."""
    profile = Profile(order)
    at = 0
    while at < len(data):
        _, number, tid = read_block_header(data, at, order)
        at, row = read_profile_row(data, at + 16, len(data), order, number, tid)
        profile.rows.append(row)
    return profile


def read_block_header(data: bytes, at: int, order: str) -> tuple[int, int, int]:
    if at + 16 > len(data):
        raise XRayError(at, f"truncated: block header is {len(data) - at} bytes, expected 16")
    size, number, tid = struct.unpack_from(order + "IIQ", data, at)
    return size, number, tid


def read_profile_row(data: bytes, start: int, end: int, order: str, block: int, tid: int) -> tuple[int, ProfileRow]:
    leaf_first: list[int] = []
    at = start
    while at + 4 <= end:
        (function,) = struct.unpack_from(order + "I", data, at)
        at += 4
        if function == 0:
            break
        leaf_first.append(function)
    else:
        raise XRayError(start, "truncated: call path without end")
    if at + 16 > end:
        raise XRayError(start, "truncated: call path without its values")
    calls, ticks = struct.unpack_from(order + "Qq", data, at)
    return at + 16, ProfileRow(block, tid, tuple(reversed(leaf_first)), calls, ticks)


def clamped(records: list[Record]) -> list[Record]:
    """The records of a thread as shown by a reader whose time never goes back."""
    last, result = 0, []
    for record in records:
        last = max(last, record.tsc)
        result.append(record._replace(tsc=last))
    return result
