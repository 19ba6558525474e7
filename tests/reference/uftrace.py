"""Writes data directories of uftrace, as tars, and adds up calls slowly."""

from __future__ import annotations

import io
import struct
import tarfile
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

BASE, STEP = 0x55550000, 0x100  # of the program; functions f0, f1 ... are that far apart
ENTRY, EXIT, LOST, EVENT = range(4)


class Record(NamedTuple):
    time: int
    kind: int
    depth: int
    function: int  # of LOST: how many
    more: bytes = b""


class Switch(NamedTuple):
    time: int
    tid: int
    kind: str  # "in", "out", "preempted" or "exit"


def data(records: Sequence[Record]) -> bytes:
    out = []
    for one in records:
        address = one.function if one.kind == LOST else BASE + STEP * one.function
        word = one.kind | bool(one.more) << 2 | 5 << 3 | one.depth << 6 | address << 16
        out.append(struct.pack("<QQ", one.time, word) + one.more + bytes(-len(one.more) % 8))
    return b"".join(out)


def perf(switches: Sequence[Switch]) -> bytes:
    out = []
    for one in switches:
        if one.kind == "exit":
            out.append(struct.pack("<IHHIIIIQ", 4, 0, 32, 1, 1, one.tid, 1, one.time))
        else:
            misc = {"in": 0, "out": 0x2000, "preempted": 0x6000}[one.kind]
            out.append(struct.pack("<IHHIIQ", 14, misc, 24, 1, one.tid, one.time))
    return b"".join(out)


def write(
    threads: Mapping[int, bytes],
    switches: bytes = b"",
    n_functions: int = 8,
    specs: str = "",
    sessions: bytes = b"",
    debug: str = "",
) -> bytes:
    """A tar of the directory of one process; a thread is the bytes of its file."""
    info = b"Ftrace!\0" + struct.pack("<IHBBQQHHI", 4, 40, 1, 2, 0x363, 0, 1024, 0, 0)
    info += f"exename:/srv/a\n{specs}".encode()
    symbols = "".join(f"{STEP * i:016x} T f{i}\n" for i in range(n_functions))
    files = {
        "info": info,
        "task.txt": b'SESS timestamp=0.000000001 pid=1 sid=ab exename="/srv/a"\n'
        + b"".join(b"TASK timestamp=0.000000002 tid=%d pid=1\n" % tid for tid in threads)
        + sessions,
        "sid-ab.map": b"%x-%x r-xp 00000000 00:00 0    /srv/a\n" % (BASE, BASE + STEP * n_functions),
        "a.sym": f"{symbols}{STEP * n_functions:016x} ? __sym_end\n".encode(),
        "a.dbg": f"# path name: /srv/a\n{debug}".encode(),
        "perf-cpu0.dat": switches,
        **{f"{tid}.dat": content for tid, content in threads.items()},
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"d/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


class Thread:
    """A thread that is replayed, and what is added up of it."""

    def __init__(self) -> None:
        self.own, self.calls = Counter[str](), Counter[str]()
        self.stack: list[tuple[str, float]] = []  # name and level
        self.last = 0

    def path(self) -> str:
        return ";".join(name for name, _ in self.stack)

    def pass_to(self, time: int) -> None:
        self.own[self.path()] += max(time, self.last) - self.last
        self.last = max(time, self.last)

    def call(self, name: str, level: float) -> None:
        self.stack.append((name, level))
        self.calls[self.path()] += 1

    def switch(self, one: Switch) -> None:
        is_off = bool(self.stack) and self.stack[-1][0].startswith("linux:")
        self.pass_to(one.time)
        if one.kind == "in" and is_off:
            self.stack.pop()
        elif one.kind != "in" and self.stack and not is_off:
            name = "linux:schedule" if one.kind == "out" else "linux:schedule (pre-empted)"
            self.call(name, self.stack[-1][1] + 0.5)

    def record(self, one: Record) -> None:
        self.pass_to(one.time)
        if one.kind == ENTRY:
            while self.stack and (self.stack[-1][1] >= one.depth or self.stack[-1][1] % 1):
                self.stack.pop()
            self.call(f"f{one.function}", one.depth)
        elif one.kind == EXIT:
            while self.stack and self.stack[-1][1] > one.depth:
                self.stack.pop()
            if not self.stack or self.stack[-1][1] != one.depth:
                self.call(f"f{one.function}", one.depth)
            self.stack.pop()


def sums(threads: Mapping[int, Sequence[Record]], switches: Sequence[Switch]) -> tuple[Counter[str], Counter[str]]:
    """Nanoseconds of their own and calls by stack, `f0;f1`, of all threads."""
    own, calls = Counter[str](), Counter[str]()
    for tid, records in threads.items():
        thread = Thread()
        events = sorted((one for one in switches if one.tid == tid), key=lambda one: one.time)
        for record in records:
            while events and events[0].time < max(record.time, thread.last):
                thread.switch(events.pop(0))
            thread.record(record)
        for event in events:
            thread.switch(event)
        own.update(thread.own)
        calls.update(thread.calls)
    own.pop("", None)
    return +own, calls
