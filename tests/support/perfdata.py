"""Writes perf.data: what tests need, in either byte order."""

from __future__ import annotations

import struct

IP, TID, TIME, CALLCHAIN, ID, PERIOD, RAW = 1, 2, 4, 32, 64, 256, 1024
SAMPLE_ID_ALL, EXCLUDE_GUEST, USE_CLOCK = 1 << 18, 1 << 20, 1 << 25
CPU_CLOCK = (1, 0)  # type and config
USER, KERNEL = (1 << 64) - 512, (1 << 64) - 128


class PerfData:
    """A recording of one event, as a pipe has it: `bytes` may be taken at any time.  `clock` is a clockid_t."""

    def __init__(
        self,
        sample_type: int = IP | TID | TIME | CALLCHAIN | PERIOD,
        order: str = "<",
        clock: int | None = None,
        period: int = 250_000,
        event: tuple[int, int] = CPU_CLOCK,
    ) -> None:
        self.sample_type = sample_type
        self.order = order
        flags = (SAMPLE_ID_ALL | EXCLUDE_GUEST | (0 if clock is None else USE_CLOCK)).to_bytes(8, "little")
        if order == ">":
            flags = bytes(int(f"{byte:08b}"[::-1], 2) for byte in flags)
        type_, config = event
        nbytes = 64 if clock is None else 96
        attr = self.pack("IIQQQQ", type_, nbytes, config, period, sample_type, 0) + flags + bytes(16)
        attr += b"" if clock is None else bytes(28) + self.pack("i", clock)
        self._parts = [(b"PERFILE2" if order == "<" else b"2ELIFREP") + self.pack("Q", 16)]
        self.record(64, 0, attr + self.pack("Q", 1))

    def pack(self, kinds: str, *values: int) -> bytes:
        return struct.pack(self.order + kinds, *values)

    def bytes(self) -> bytes:
        return b"".join(self._parts)

    def record(self, type_: int, misc: int, body: bytes) -> PerfData:
        self._parts.append(self.pack("IHH", type_, misc, 8 + len(body)) + body)
        return self

    def _trailer(self, pid: int, tid: int, time: int) -> bytes:
        found = self.pack("II", pid, tid) if self.sample_type & TID else b""
        return found + (self.pack("Q", time) if self.sample_type & TIME else b"")

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
        self, pid: int, chain: list[int], time: int, period: int = 250_000, tid: int = 0, raw: bytes = b""
    ) -> PerfData:
        """In user mode; its fields are those of `sample_type`."""
        body = self.pack("Q", chain[0]) if self.sample_type & IP else b""
        body += self.pack("II", pid, tid or pid) if self.sample_type & TID else b""
        body += self.pack("Q", time) if self.sample_type & TIME else b""
        body += self.pack("Q", period) if self.sample_type & PERIOD else b""
        if self.sample_type & CALLCHAIN:
            body += self.pack(f"QQ{len(chain)}Q", len(chain) + 1, USER, *chain)
        if self.sample_type & RAW:
            raw += bytes(-(len(raw) + 4) % 8)
            body += self.pack("I", len(raw)) + raw
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
        return self

    def round(self) -> PerfData:
        return self.record(68, 0, b"")
