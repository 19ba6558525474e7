"""Builds XRay logs for tests: valid ones, odd ones and broken ones.

    log = FdrLog(version=5)
    log.buffer(tid=7, pid=1).cpu(0, 1000).enter(3).exit(3, 25)
    data = log.bytes()

Nothing is checked, so that anything can be written. Bytes which the runtime leaves
uninitialised are 0xaa, as they are in real logs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import groupby

from tests.reference.xray import (
    BASIC,
    CUSTOM,
    ENTER,
    ENTER_ARGS,
    EXIT,
    FDR,
    FUNCTION_OPS,
    PROFILE_MAGIC,
    TAIL,
    TYPED,
    Record,
)

JUNK = 0xAA
U32_MAX = (1 << 32) - 1
I32_MAX = (1 << 31) - 1


def header(
    version: int,
    kind: int,
    *,
    order: str = "<",
    frequency: int = 1_000_000_000,
    buffer_size: int = 0,
    flags: int = 3,
    rest: bytes = bytes(8),
) -> bytes:
    return struct.pack(order + "HHIQQ", version, kind, flags, frequency, buffer_size) + rest


class FdrBuffer:
    """One buffer.  Methods append records and return the buffer; times are relative unless named tsc."""

    def __init__(self, version: int, order: str = "<", junk: int = JUNK) -> None:
        self.version, self.order, self.junk = version, order, junk
        self.body = bytearray()
        self.starts: list[int] = []  # the start of each record in body
        self.typed_events = 0
        # Overrides of what finish() would write.
        self.extents: int | None = None
        self.with_extents = version >= 2
        self.with_end = version == 1
        self.cut_typed = False
        self.fill: bytes | None = None

    def raw(self, data: bytes) -> FdrBuffer:
        self.body += data
        return self

    def metadata(self, kind: int, layout: str = "", *values: int) -> FdrBuffer:
        body = struct.pack(self.order + layout, *values)
        self.starts.append(len(self.body))
        return self.raw(bytes([kind << 1 | 1]) + body + bytes([self.junk]) * (15 - len(body)))

    def new_buffer(self, tid: int) -> FdrBuffer:
        return self.metadata(0, "I", tid)

    def end_of_buffer(self) -> FdrBuffer:
        return self.metadata(1)

    def cpu(self, cpu: int, tsc: int) -> FdrBuffer:
        return self.metadata(2, "HQ", cpu, tsc)

    def wrap(self, tsc: int) -> FdrBuffer:
        return self.metadata(3, "Q", tsc)

    def wall(self, seconds: int, micros: int) -> FdrBuffer:
        return self.metadata(4, "QI", seconds, micros)

    def argument(self, value: int) -> FdrBuffer:
        return self.metadata(6, "Q", value)

    def extents_record(self, size: int) -> FdrBuffer:
        return self.metadata(7, "Q", size)

    def pid(self, pid: int) -> FdrBuffer:
        return self.metadata(9, "I", pid)

    def function(self, kind: int, function: int, delta: int = 0) -> FdrBuffer:
        self.starts.append(len(self.body))
        return self.raw(struct.pack(self.order + "II", function << 4 | kind << 1, delta))

    def enter(self, function: int, delta: int = 0) -> FdrBuffer:
        return self.function(FUNCTION_OPS.index(ENTER), function, delta)

    def exit(self, function: int, delta: int = 0) -> FdrBuffer:
        return self.function(FUNCTION_OPS.index(EXIT), function, delta)

    def tail(self, function: int, delta: int = 0) -> FdrBuffer:
        return self.function(FUNCTION_OPS.index(TAIL), function, delta)

    def enter_args(self, function: int, delta: int, *args: int) -> FdrBuffer:
        self.function(FUNCTION_OPS.index(ENTER_ARGS), function, delta)
        for value in args:
            self.argument(value)
        return self

    def custom(
        self, payload: bytes, delta: int = 0, *, tsc: int = 0, cpu: int = 0, size: int | None = None
    ) -> FdrBuffer:
        """`delta` is written from version 5 on, `tsc` before, `cpu` in version 4 only."""
        size = len(payload) if size is None else size
        if self.version >= 5:
            self.metadata(5, "ii", size, delta)
        elif self.version == 4:
            self.metadata(5, "iQH", size, tsc, cpu)
        else:
            self.metadata(5, "iQ", size, tsc)
        return self.raw(payload)

    def typed(self, event_type: int, payload: bytes, delta: int = 0, *, size: int | None = None) -> FdrBuffer:
        self.typed_events += 1
        self.metadata(8, "iiH", len(payload) if size is None else size, delta, event_type)
        return self.raw(payload)

    # Options for writing the finished buffer.

    def claim(self, extents: int) -> FdrBuffer:
        """Write these extents instead of the true ones."""
        self.extents = extents
        return self

    def without_extents(self) -> FdrBuffer:
        self.with_extents = False
        return self

    def without_end(self) -> FdrBuffer:
        """Leave out the EndOfBuffer of a version 1 buffer."""
        self.with_end = False
        return self

    def forget_typed_heads(self) -> FdrBuffer:
        """Like all runtimes: omit typed events' heads from the extents, and write only that many bytes."""
        self.cut_typed = True
        return self

    def fill_with(self, fill: bytes) -> FdrBuffer:
        """The bytes of a version 1 buffer after its end, instead of junk."""
        self.fill = fill
        return self

    def finish(self, buffer_size: int) -> bytes:
        written = bytes(self.body)
        if self.cut_typed:
            written = written[: len(written) - 16 * self.typed_events]
        if self.with_end:
            written += FdrBuffer(self.version, self.order, self.junk).end_of_buffer().body
        if self.version == 1 and buffer_size:
            room = buffer_size - len(written)
            fill = bytes([self.junk]) * room if self.fill is None else self.fill
            return written + fill[:room]
        if not self.with_extents:
            return written
        size = len(written) if self.extents is None else self.extents
        return bytes(FdrBuffer(self.version, self.order, self.junk).extents_record(size).body) + written


class FdrLog:
    """An FDR log; `pieces` may be reordered, repeated or interspersed with raw bytes."""

    def __init__(
        self,
        version: int = 5,
        *,
        order: str = "<",
        frequency: int = 1_000_000_000,
        buffer_size: int = 4096,
        flags: int = 3,
        junk: int = JUNK,
    ) -> None:
        self.version, self.order, self.buffer_size, self.junk = version, order, buffer_size, junk
        self.frequency, self.flags = frequency, flags
        self.pieces: list[FdrBuffer | bytes] = []

    def bare(self) -> FdrBuffer:
        """Add a buffer without preamble."""
        buffer = FdrBuffer(self.version, self.order, self.junk)
        self.pieces.append(buffer)
        return buffer

    def buffer(
        self,
        tid: int = 1,
        pid: int = 1,
        seconds: int = 0,
        micros: int = 0,
        *,
        missing: Iterable[str] = (),
    ) -> FdrBuffer:
        """Add a buffer with this version's preamble, without the `missing` ones of new, wall and pid."""
        buffer, missing = self.bare(), set(missing)
        if "new" not in missing:
            buffer.new_buffer(tid)
        if "wall" not in missing:
            buffer.wall(seconds, micros)
        if self.version >= 3 and "pid" not in missing:
            buffer.pid(pid)
        return buffer

    def gap(self, data: bytes) -> FdrLog:
        self.pieces.append(data)
        return self

    def repeat(self, index: int) -> FdrLog:
        """Add a piece again: the same buffer from two queue slots."""
        self.pieces.append(self.pieces[index])
        return self

    def rotate(self, count: int) -> FdrLog:
        """Begin the file with a later buffer, like a circular queue that has wrapped around."""
        self.pieces = self.pieces[count:] + self.pieces[:count]
        return self

    def bytes(self) -> bytes:
        head = header(
            self.version,
            FDR,
            order=self.order,
            frequency=self.frequency,
            buffer_size=self.buffer_size,
            flags=self.flags,
        )
        return head + b"".join(
            piece if isinstance(piece, bytes) else piece.finish(self.buffer_size) for piece in self.pieces
        )


class BasicLog:
    def __init__(
        self,
        version: int = 3,
        *,
        order: str = "<",
        frequency: int = 1_000_000_000,
        flags: int = 3,
        junk: int = JUNK,
    ) -> None:
        self.version, self.order, self.junk = version, order, bytes([junk])
        self.data = bytearray(
            header(
                version,
                BASIC,
                order=order,
                frequency=frequency,
                buffer_size=int.from_bytes(self.junk * 8, "little"),
                flags=flags,
                rest=self.junk * 8,
            )
        )

    def raw(self, data: bytes) -> BasicLog:
        self.data += data
        return self

    def function(
        self,
        kind: int,
        function: int,
        tsc: int,
        tid: int = 1,
        pid: int = 1,
        cpu: int = 0,
        *,
        record_type: int = 0,
    ) -> BasicLog:
        fields = (record_type, cpu, kind, function, tsc, tid)
        return self.raw(struct.pack(self.order + "HBBIQI", *fields) + self.process(pid) + self.junk * 8)

    def payload(self, function: int, value: int, tid: int = 1, pid: int = 1) -> BasicLog:
        head = struct.pack(self.order + "H", 1) + self.junk * 2
        # Unlike in function records, the runtime sets the process here in every version.
        return self.raw(head + struct.pack(self.order + "IIIQ", function, tid, pid, value) + self.junk * 8)

    def process(self, pid: int) -> bytes:
        return struct.pack(self.order + "I", pid) if self.version >= 3 else self.junk * 4

    def enter(self, function: int, tsc: int, tid: int = 1, pid: int = 1, cpu: int = 0) -> BasicLog:
        return self.function(0, function, tsc, tid, pid, cpu)

    def exit(self, function: int, tsc: int, tid: int = 1, pid: int = 1, cpu: int = 0) -> BasicLog:
        return self.function(1, function, tsc, tid, pid, cpu)

    def tail(self, function: int, tsc: int, tid: int = 1, pid: int = 1, cpu: int = 0) -> BasicLog:
        return self.function(2, function, tsc, tid, pid, cpu)

    def add(self, records: Iterable[Record]) -> BasicLog:
        for r in records:
            self.function(FUNCTION_OPS.index(r.op), r.function, r.tsc, r.tid, r.pid, r.cpu)
            for value in r.args:
                self.payload(r.function, value, r.tid, r.pid)
        return self

    def bytes(self) -> bytes:
        return bytes(self.data)


class ProfilingLog:
    """A profile as the runtime writes it, or (`bare`) in the layout of llvm's profile library."""

    def __init__(
        self, pid: int = 1, *, order: str = "<", time_ns: int = 0, version: int = 0x20180424, bare: bool = False
    ) -> None:
        self.order, self.bare = order, bare
        self.head = b"" if bare else struct.pack(order + "QQQQ", PROFILE_MAGIC, version, time_ns, pid)
        self.blocks: list[tuple[int, list[bytes]]] = []

    def block(self, tid: int) -> ProfilingLog:
        self.blocks.append((tid, []))
        return self

    def row(self, path: Iterable[int], calls: int, ticks: int) -> ProfilingLog:
        """A call path, root first, in the latest block."""
        ids = (*reversed(tuple(path)), 0)
        row = struct.pack(f"{self.order}{len(ids)}IQq", *ids, calls, ticks)
        self.blocks[-1][1].append(row)
        return self

    def bytes(self) -> bytes:
        data = self.head
        for number, (tid, rows) in enumerate(self.blocks):
            for body in rows if self.bare else [b"".join(rows)]:
                data += struct.pack(self.order + "IIQ", 16 + len(body), number, tid) + body
        return data


def write_thread(log: FdrLog, records: list[Record], per_buffer: int = 1000, wall: tuple[int, int] = (1, 0)) -> None:
    """Append one thread's records like the runtime, with a microsecond of wall time per buffer."""
    for i in range(0, len(records), per_buffer):
        run = records[i : i + per_buffer]
        buffer = log.buffer(run[0].tid, run[0].pid, wall[0], wall[1] + i // per_buffer)
        write_records(buffer, run)


def write_records(buffer: FdrBuffer, records: list[Record]) -> None:
    """Append NewCPUId, TSCWrap and the like, like the runtime."""
    cpu, tsc = -1, 0
    for r in records:
        absolute = r.op == CUSTOM and buffer.version < 5
        # Only a version 4 custom event has its own CPU.
        if cpu < 0 or (r.cpu != cpu and not (absolute and buffer.version == 4)):
            cpu, tsc = r.cpu, r.tsc
            buffer.cpu(cpu, tsc)
        if absolute:
            buffer.custom(r.data, tsc=r.tsc, cpu=r.cpu)
            continue
        limit = I32_MAX if r.op in (CUSTOM, TYPED) else U32_MAX
        if not 0 <= r.tsc - tsc <= limit:
            tsc = r.tsc
            buffer.wrap(tsc)
        delta, tsc = r.tsc - tsc, r.tsc
        if r.op == CUSTOM:
            buffer.custom(r.data, delta)
        elif r.op == TYPED:
            buffer.typed(r.type, r.data, delta)
        else:
            buffer.function(FUNCTION_OPS.index(r.op), r.function, delta)
            for value in r.args:
                buffer.argument(value)


def fdr_log(records: Iterable[Record], version: int = 5, *, order: str = "<", per_buffer: int = 1000) -> FdrLog:
    """A log of these records, thread after thread; a thread's records stay in order."""
    log = FdrLog(version, order=order)
    by_thread = sorted(records, key=lambda r: (r.pid, r.tid))
    for _, thread in groupby(by_thread, key=lambda r: (r.pid, r.tid)):
        write_thread(log, list(thread), per_buffer)
    # Version 1 buffers all have one size: room for the longest, its end and some fill.
    bodies = [len(piece.body) for piece in log.pieces if isinstance(piece, FdrBuffer)]
    log.buffer_size = max(bodies, default=0) + 64
    return log


def basic_log(records: Iterable[Record], version: int = 3, *, order: str = "<") -> BasicLog:
    return BasicLog(version, order=order).add(records)
