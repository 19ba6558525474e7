"""Chunks of a recording: their headers, and the results of a survey of their records."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache

from fastprof.core._c import lib
from fastprof.core._typing import Any, NamedTuple

HEADER_NBYTES = 68
MAGIC = b"FLR\0"
_FIELDS = struct.Struct(">4sHHqqqqqqqI")


class Header(NamedTuple):
    major: int
    minor: int
    nbytes: int
    constants: int  # offset in the chunk of the last checkpoint
    metadata: int
    start_ns: int
    duration_ns: int
    start_ticks: int
    ticks_per_second: int
    state: int  # 0: finished; 255: the header is being written; else the number of the last flush
    compressed: bool

    @property
    def finished(self) -> bool:
        return bool(self.nbytes and not self.state and self.constants and self.metadata)

    @property
    def flushed(self) -> int:
        """Of a chunk that is not finished: bytes that the JVM had written at its last flush.  More may follow."""
        return self.nbytes if 0 < self.state < 255 else 0

    @property
    def is_whole(self) -> bool:
        """Whether the size of the chunk is known."""
        return self.finished and self.nbytes >= HEADER_NBYTES


def header(data: bytes) -> Header | None:
    """Parse the header of a chunk; None if `data` is not a header."""
    if len(data) < HEADER_NBYTES or not data.startswith(MAGIC):
        return None
    _, major, minor, nbytes, constants, metadata, start, duration, ticks, rate, flags = _FIELDS.unpack(data)
    state, compressed = flags >> 24, bool(flags & 1)
    return Header(major, minor, nbytes, constants, metadata, start, duration, ticks, rate, state, compressed)


class Place(NamedTuple):
    """A record of metadata or constants, in the input."""

    at: int
    nbytes: int
    delta: int  # of a checkpoint: distance to the previous one


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Parse a varint.  Returns its value and its end.  Errors: IndexError."""
    found = 0
    for shift in range(0, 56, 7):
        byte = data[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
    return found | data[at] << 56, at + 1


def checkpoint(data: bytes, at: int, *, compressed: bool) -> Place | None:
    """The checkpoint that begins with `data`, at byte `at` of the input.  None if there is none."""
    numbers, position = [], 0  # size, type, start, duration, delta
    try:
        for width in (4, 8, 8, 8, 8):
            if compressed:
                number, position = _varint(data, position)
            else:
                number, position = int.from_bytes(data[position : position + width], "big"), position + width
            numbers.append(number)
    except IndexError:
        return None
    size, type_, _, _, delta = numbers
    return Place(at, size, delta - (delta >> 63 << 64)) if type_ == 1 and position <= len(data) else None


CHECKPOINT_NBYTES = 45  # an upper bound of the numbers above


class Chunk:
    """A chunk to read.  `end`: the end of its last record; `following`: where the next chunk may begin."""

    def __init__(self, at: int, found: Header) -> None:
        self.at = at
        self.header = found
        self.end = self.following = at + HEADER_NBYTES
        self.metadata: Place | None = None
        self.checkpoints: list[Place] = []
        self.settings: dict[tuple[str, str], str] = {}  # by (type, name)
        self.pid = 0
        self.counts: Mapping[str, int] = {}  # events by type

    @property
    def records(self) -> int:
        return self.at + HEADER_NBYTES


# ---- periods

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3600_000_000_000}
_MOST_NS = 1 << 62


def _duration(text: str) -> int:
    """Nanoseconds of "20 ms", or 0 for other texts."""
    number, _, unit = text.partition(" ")
    ns = int(number) * _UNITS.get(unit, 0) if number.isdecimal() and len(number) < 19 else 0
    return ns if ns < _MOST_NS else 0


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else 0


_DEFAULT_NS = 10_000_000  # async-profiler's DEFAULT_INTERVAL in arguments.h
_DEFAULT_WALL_NS = 50_000_000  # async-profiler's, five times as long for the many threads
_CLOCKS = frozenset({"cpu", "itimer", "ctimer"})


class Sampling(NamedTuple):
    """How a chunk's execution was sampled."""

    event: str = "cpu"  # async-profiler's event: cpu, wall, or a hardware counter
    period: int = 0  # of jdk.ExecutionSample; 0: unknown
    wall_period: int = 0

    @property
    def is_wall(self) -> bool:
        return self.event == "wall"

    @property
    def is_time(self) -> bool:
        return self.event in _CLOCKS


def sampling(chunk: Chunk) -> Sampling:
    settings = chunk.settings

    def of(name: str, type_: str = "jdk.ExecutionSample") -> str | None:
        return settings.get((type_, name), settings.get((f"com.oracle.{type_}", name)))

    interval = of("interval")
    if interval is None:  # of a JVM
        return Sampling(period=_duration(of("period") or ""))
    event, wall = of("event", "jdk.ActiveRecording") or "cpu", of("wall")
    if event == "wall":
        return Sampling(event, 0, _number(interval) or _DEFAULT_WALL_NS)
    wall_ns = 0 if wall is None or wall.startswith("-") else _number(wall) or _DEFAULT_WALL_NS
    return Sampling(event, _number(interval) or (_DEFAULT_NS if event in _CLOCKS else 0), wall_ns)


# ---- value types


@cache
def metric_of(name: str) -> int:
    """The metric + 1 of events of this name, or 0 if they are not samples."""
    data = name.encode()
    return int(lib.fp_jfr_metric_of(data, len(data)))


# By metric: the names of its columns, and the unit of the second one.  If no event has a value for the second column,
# it is computed from the period.
COLUMNS: dict[int, tuple[str, str, str]] = {
    lib.FP_JFR_CPU: ("samples", "cpu", "nanoseconds"),
    lib.FP_JFR_CPU_TIME: ("cpu_time_samples", "cpu_time", "nanoseconds"),
    lib.FP_JFR_DATADOG_CPU: ("datadog_cpu_samples", "", ""),
    lib.FP_JFR_WALL: ("wall_samples", "wall", "nanoseconds"),
    lib.FP_JFR_DATADOG_WALL: ("datadog_wall_samples", "", ""),
    lib.FP_JFR_METHOD_TRACE: ("method_calls", "method_time", "nanoseconds"),
    lib.FP_JFR_NATIVE: ("native_samples", "", ""),
    lib.FP_JFR_IN_TLAB: ("alloc_in_new_tlab_objects", "alloc_in_new_tlab_bytes", "bytes"),
    lib.FP_JFR_OUTSIDE_TLAB: ("alloc_outside_tlab_objects", "alloc_outside_tlab_bytes", "bytes"),
    lib.FP_JFR_ALLOC_SAMPLE: ("alloc_sample_objects", "alloc_sample_bytes", "bytes"),
    lib.FP_JFR_DATADOG_ALLOC: ("datadog_alloc_objects", "datadog_alloc_bytes", "bytes"),
    lib.FP_JFR_LIVE: ("inuse_objects", "inuse_space", "bytes"),
    lib.FP_JFR_MALLOC: ("malloc_objects", "malloc_bytes", "bytes"),
    lib.FP_JFR_MONITOR: ("contentions", "delay", "nanoseconds"),
    lib.FP_JFR_NATIVE_LOCK: ("native_contentions", "native_delay", "nanoseconds"),
    lib.FP_JFR_PARK: ("parks", "park_delay", "nanoseconds"),
    lib.FP_JFR_WAIT: ("waits", "wait_delay", "nanoseconds"),
    lib.FP_JFR_SLEEP: ("sleeps", "sleep_delay", "nanoseconds"),
    lib.FP_JFR_EXCEPTION: ("exceptions", "", ""),
}
# The first metric that occurs has the default value type.
PREFERRED = (
    lib.FP_JFR_CPU_TIME,
    lib.FP_JFR_CPU,
    lib.FP_JFR_DATADOG_CPU,
    lib.FP_JFR_WALL,
    lib.FP_JFR_DATADOG_WALL,
    lib.FP_JFR_IN_TLAB,
    lib.FP_JFR_OUTSIDE_TLAB,
    lib.FP_JFR_ALLOC_SAMPLE,
    lib.FP_JFR_DATADOG_ALLOC,
)


def times(chunks: list[Chunk], samplings: list[Sampling], *, is_cpu: bool) -> dict[str, Any]:
    """The start, duration and period of the chunks, as fields of a part.  `is_cpu`: it has CPU times."""
    extra: dict[str, Any] = {}
    if not chunks:
        return extra
    first = min(chunk.header.start_ns for chunk in chunks)
    last = max(chunk.header.start_ns + chunk.header.duration_ns for chunk in chunks)
    if first > 0:
        extra["time_ns"] = first
    if 0 < last - first < 1 << 63:
        extra["duration_ns"] = last - first
    periods = {how.period for how in samplings if how.period and how.is_time}
    if len(periods) == 1 and is_cpu:
        extra["period"], extra["period_type"] = periods.pop(), ("cpu", "nanoseconds")
    return extra


def settings_of(chunks: list[Chunk], counts: Mapping[str, int]) -> dict[str, str]:
    """The settings of sample events that occur; of several values the last wins, as in the JVM."""
    return {
        f"{type_}.{name}": value
        for chunk in chunks
        for (type_, name), value in chunk.settings.items()
        if (metric_of(type_) and type_ in counts) or (type_, name) == ("jdk.ActiveRecording", "event")
    }
