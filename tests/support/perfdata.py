"""Write perf.data files for tests, in either byte order."""

from __future__ import annotations

import struct
from collections.abc import Sequence

IP, TID, TIME, CALLCHAIN, ID, CPU, PERIOD, RAW, BRANCH = 1, 2, 4, 32, 64, 128, 256, 1024, 2048
ANY_BRANCH, CALL_STACK = 8, 2048  # of branch_sample_type
SAMPLE_ID_ALL, EXCLUDE_GUEST, USE_CLOCK, CONTEXT_SWITCH = 1 << 18, 1 << 20, 1 << 25, 1 << 26
CPU_CLOCK, CONTEXT_SWITCHES, BPF_OUTPUT = (1, 0), (1, 3), (1, 10)  # type and config
USER, KERNEL = (1 << 64) - 512, (1 << 64) - 128


class PerfData:
    """A recording of one event, in the form of a pipe: `bytes` may be taken at any time.  `clock` is a clockid_t."""

    def __init__(
        self,
        sample_type: int = IP | TID | TIME | CALLCHAIN | PERIOD,
        order: str = "<",
        clock: int | None = None,
        period: int = 250_000,
        event: tuple[int, int] = CPU_CLOCK,
        flags: int = 0,
        branch_type: int = 0,
    ) -> None:
        self.sample_type = sample_type
        self.order = order
        flags |= SAMPLE_ID_ALL | EXCLUDE_GUEST | (0 if clock is None else USE_CLOCK)
        bits = flags.to_bytes(8, "little")
        if order == ">":
            bits = bytes(int(f"{byte:08b}"[::-1], 2) for byte in bits)
        type_, config = event
        nbytes = (80 if branch_type else 64) if clock is None else 96
        attr = self.pack("IIQQQQ", type_, nbytes, config, period, sample_type, 0) + bits + bytes(16)
        if branch_type or clock is not None:
            attr += bytes(8) + self.pack("Q", branch_type)
        attr += b"" if clock is None else bytes(12) + self.pack("i", clock)
        self._attr, self._tracing = attr, b""
        self._parts = [(b"PERFILE2" if order == "<" else b"2ELIFREP") + self.pack("Q", 16)]
        self.record(64, 0, attr + self.pack("Q", 1))

    def pack(self, kinds: str, *values: int) -> bytes:
        return struct.pack(self.order + kinds, *values)

    def bytes(self) -> bytes:
        return b"".join(self._parts)

    def file(self) -> bytes:
        """The same as a file, whose header has the attribute and the formats of tracepoints."""
        records = b"".join(self._parts[4 if self._tracing else 2 :])
        at, ids = 104 + len(self._attr) + 16, 104 + len(self._attr) + 16 + len(records) + 16
        found = self._parts[0][:8] + self.pack("QQQQQQQQ", 104, len(self._attr) + 16, 104, len(self._attr) + 16, at,
                                               len(records), 0, 0)  # fmt: skip
        found += self.pack("4Q", bool(self._tracing) << 1, 0, 0, 0) + self._attr + self.pack("QQ", ids, 8) + records
        return found + self.pack("QQQ", ids + 8, len(self._tracing), 1) + self._tracing

    def record(self, type_: int, misc: int, body: bytes) -> PerfData:
        self._parts.append(self.pack("IHH", type_, misc, 8 + len(body)) + body)
        return self

    def _trailer(self, pid: int, tid: int, time: int) -> bytes:
        found = self.pack("II", pid, tid) if self.sample_type & TID else b""
        found += self.pack("Q", time) if self.sample_type & TIME else b""
        return found + (bytes(8) if self.sample_type & CPU else b"")

    @staticmethod
    def _padded(name: bytes) -> bytes:
        return name + bytes(8 - len(name) % 8)

    def comm(self, pid: int, tid: int, name: bytes, time: int = 0) -> PerfData:
        return self.record(3, 0, self.pack("II", pid, tid) + self._padded(name) + self._trailer(pid, tid, time))

    def fork(self, pid: int, parent: int, time: int = 0) -> PerfData:
        return self.record(7, 0, self.pack("IIIIQ", pid, parent, pid, parent, time) + self._trailer(pid, pid, time))

    def mmap(self, pid: int, start: int, nbytes: int, name: bytes, offset: int = 0, time: int = 0) -> PerfData:
        body = self.pack("IIQQQ", pid, pid, start, nbytes, offset) + self._padded(name)
        return self.record(1, 2, body + self._trailer(pid, pid, time))

    def sample(
        self,
        pid: int,
        chain: list[int],
        time: int,
        period: int = 250_000,
        tid: int = 0,
        raw: bytes = b"",
        cpu: int = 0,
        branches: Sequence[tuple[int, int, int]] = (),
    ) -> PerfData:
        """A sample in user mode; its fields are those of `sample_type`.  `branches`: from, to and flags."""
        body = self.pack("Q", chain[0]) if self.sample_type & IP else b""
        body += self.pack("II", pid, tid or pid) if self.sample_type & TID else b""
        body += self.pack("Q", time) if self.sample_type & TIME else b""
        body += self.pack("II", cpu, 0) if self.sample_type & CPU else b""
        body += self.pack("Q", period) if self.sample_type & PERIOD else b""
        if self.sample_type & CALLCHAIN:
            body += self.pack(f"QQ{len(chain)}Q", len(chain) + 1, USER, *chain)
        if self.sample_type & RAW:
            raw += bytes(-(len(raw) + 4) % 8)
            body += self.pack("I", len(raw)) + raw
        if self.sample_type & BRANCH:
            body += self.pack("Q", len(branches)) + b"".join(self.pack("QQQ", *one) for one in branches)
        return self.record(9, 2, body)

    def tracing(self, system: bytes, formats: list[bytes]) -> PerfData:
        """The formats of tracepoints, which follow their record."""
        data = b"\x17\x08\x44tracing0.6\0" + bytes([self.order == ">", 8]) + self.pack("I", 4096)
        data += b"header_page\0" + self.pack("Q", 1) + b"x" + b"header_event\0" + self.pack("QII", 0, 0, 1)
        data += system + b"\0" + self.pack("I", len(formats))
        for text in formats:
            data += self.pack("Q", len(text)) + text
        self.record(66, 0, self.pack("I", len(data)))
        self._parts.append(data + bytes(-len(data) % 8))
        self._tracing = data
        return self

    def switch(self, pid: int, tid: int, time: int, *, out: bool) -> PerfData:
        return self.record(14, 0x2000 if out else 0, self._trailer(pid, tid, time))

    def exit(self, pid: int, tid: int, time: int) -> PerfData:
        return self.record(4, 0, self.pack("IIIIQ", pid, pid, tid, pid, time) + self._trailer(pid, tid, time))

    def build_id(self, name: bytes, build_id: bytes) -> PerfData:
        return self.record(67, 0x8002, self.pack("i20sB3x", -1, build_id, len(build_id)) + self._padded(name))

    def named(self, name: bytes) -> PerfData:
        """The event's name."""
        return self.record(78, 0, self.pack("QQ", 2, 0) + self._padded(name))

    def round(self) -> PerfData:
        return self.record(68, 0, b"")


SWITCH_FORMAT = b"""name: sched_switch
ID: 372
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: "prev_pid=%d next_pid=%d", REC->prev_pid, REC->next_pid
"""


class Switches(PerfData):
    """A recording of sched:sched_switch."""

    def __init__(self, order: str = "<", flags: int = 0) -> None:
        kinds = IP | TID | TIME | CALLCHAIN | CPU | PERIOD | RAW
        super().__init__(kinds, order, period=1, event=(2, 372), flags=flags)
        self.tracing(b"sched", [SWITCH_FORMAT])

    def switched(self, prev: int, next_: int, time: int, chain: list[int] | None = None, cpu: int = 0) -> PerfData:
        """Each thread is a process."""
        raw = self.pack("HBBi16siiq16sii", 372, 0, 0, prev, b"app", prev, 120, 1, b"app", next_, 120)
        return self.sample(prev, chain or [0x1000], time, 1, raw=raw, cpu=cpu)
