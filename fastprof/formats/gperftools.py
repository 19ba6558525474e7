"""gperftools CPU profiles: the door to csrc/fp_gperf.h, and the text of mapped objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fastprof._core import ffi, lib
from fastprof._typing import Any, NamedTuple
from fastprof.engine import Format, Options, Reader, Report, Writer
from fastprof.errors import FormatError, UsageError, check
from fastprof.io import Sink, Source
from fastprof.model import Batch, Model, Part, ValueType

_SYMBOLIZED = b"--- symbol"
_SWAP = ffi.new("int *")
# Frames that pprof prunes from reports of CPU profiles, by name: the profiler's own.
SIGNAL_FUNCTIONS = (
    b"ProfileData::Add|ProfileData::prof_handler|CpuProfiler::prof_handler|__pthread_sighandler|__restore"
)
_NANOSECONDS = {"nanoseconds": 1, "microseconds": 1000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}
_VALUE_TYPES = [ValueType("samples", "count"), ValueType("cpu", "nanoseconds")]


def sniff(head: bytes) -> bool:
    return bool(lib.fp_gperf_sniff(head, len(head), _SWAP)) or head.startswith(_SYMBOLIZED)


# ---- the text of mapped objects -----------------------------------------

_HEX = rb"(?:0x)?([0-9a-fA-F]+)"
_RANGE = rb"\s*" + _HEX + rb"[\s-]\s*" + _HEX + rb":?"
# Patterns of formats are compiled when they are first used: recognizing any input imports this module.
# 08048000-08049000 r-xp 00001000 08:01 4711   /path with blanks
_MAPS_LINE = _RANGE + rb"\s+([-rwxps]{3,5})\s+([0-9a-fA-F]+)\s+\S+:\S+\s+\d+(?:\s+(.*))?$"
# 0x8048000-0x8049000: r-xp /path (@1000) 1a2b3c
_BRIEF_LINE = _RANGE + rb"(?:\s+([-rwxps]{3,5}))?\s+(.+?)(?:\s+\(@([0-9a-fA-F]+)\))?(?:\s+([0-9a-fA-F]{8,}))?$"
_BUILD = rb"\s*build=(.*)$"
_LOG_PREFIX = rb"^.*?\S+:\d+\] "
_SHARED_OBJECT = rb"\.so$|\.so[._][0-9]+"
_LIMIT = 1 << 64


class MappedObject(NamedTuple):
    """[start, limit) shows `path` from byte `offset` on; `executable` as the line says."""

    start: int
    limit: int
    offset: int
    path: bytes
    build_id: bytes = b""
    executable: bool = True


class MapsText:
    """Reads the lines of the text of mapped objects.  `unknown` counts lines that are none."""

    def __init__(self) -> None:
        self.objects: list[MappedObject] = []
        self.unknown = 0
        self._build = b""

    def line(self, line: bytes) -> None:
        line = line.rstrip(b"\r\n")
        if not line.strip():
            return
        if assigned := re.match(_BUILD, line):
            self._build = assigned[1].strip()
            return
        # the path is what follows the last line that set it; $builder is not $build
        build = self._build
        line = re.sub(rb"\$build(?!\w)", lambda _: build, line)
        found = self._parse(line)
        if found is None and (bare := re.sub(_LOG_PREFIX, b"", line)) != line:
            found = self._parse(bare)
        if found is None:
            self.unknown += 1
        else:
            self.objects.append(found)

    @staticmethod
    def _parse(line: bytes) -> MappedObject | None:
        if m := re.match(_MAPS_LINE, line):
            start, limit, permissions, offset, path = m.groups()
            build_id = None
        elif m := re.match(_BRIEF_LINE, line):
            start, limit, permissions, path, offset, build_id = m.groups()
        else:
            return None
        numbers = int(start, 16), int(limit, 16), int(offset or b"0", 16)
        if max(numbers) >= _LIMIT or numbers[0] >= numbers[1]:
            return None
        path = (path or b"").strip().removesuffix(b" (deleted)")
        return MappedObject(*numbers, path, build_id or b"", permissions is None or b"x" in permissions)


def arrange(objects: Iterable[MappedObject]) -> list[MappedObject]:
    """The executable objects as pprof wants them: neighbours joined, the program itself first.

    A program linked to 0x400000 whose headers lie in a segment before its code
    is widened to begin there, so that run-time and link-time addresses agree.
    """
    joined: list[MappedObject] = []
    for m in objects:
        if not m.executable:
            continue
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.path, last.build_id, last.limit) == (m.path, m.build_id, m.start)
            and (not last.offset or not m.offset or last.offset + last.limit - last.start == m.offset)
        ):
            joined[-1] = last._replace(limit=m.limit)
        else:
            joined.append(m)
    for i, m in enumerate(joined):
        if m.path and not m.path.startswith(b"[") and not re.search(_SHARED_OBJECT, m.path):
            joined[0], joined[i] = joined[i], joined[0]
            break
    if joined and joined[0].offset and joined[0].start - joined[0].offset == 0x400000:
        joined[0] = joined[0]._replace(start=0x400000, offset=0)
    return joined


# ---- symbols inside the profile -----------------------------------------

_SYMBOL_LINE = rb"\s*0x([0-9a-fA-F]{1,16})\s+(.*)$"
_JAVA_FILE_LINE = rb"(.*)\s+\((.+):(-?\d+)\)$"
_JAVA_FILE = rb"(.*)\s+\((.*)\)$"


def split_inlined(names: bytes) -> list[bytes]:
    """`inner--outer` as google-pprof joins inlined functions, innermost first; `operator--` is one name."""
    parts: list[bytes] = []
    for piece in names.split(b"--"):
        if parts and parts[-1].endswith(b"operator"):
            parts[-1] += b"--" + piece
        else:
            parts.append(piece)
    return [p for p in parts if p] or [b""]


# ---- reading ------------------------------------------------------------


class GperftoolsReader(Reader):
    """One CPU profile, also in google-pprof's symbolized form (`--- symbol` ... `--- profile`)."""

    format = "gperftools"
    view = "stacks"

    def __init__(self, source: Source, model: Model, options: Options, report: Report) -> None:
        super().__init__(source, model, options, report)
        g = lib.fp_gperf_new(model.c, options.lenient)
        if not g:
            raise MemoryError("no memory for the gperftools decoder")
        self._g = g = ffi.gc(g, lib.fp_gperf_free)
        g.keep_signal_frames = options.keep_signal_frames
        self._maps = MapsText()
        self._binary = b""
        self._part: Part | None = None
        self._part_index = 0
        self._symbolized = source.head.startswith(_SYMBOLIZED)
        g.exact_callers = self._symbolized  # google-pprof has already moved them into their calls
        self._step = self._symbol_text if self._symbolized else self._records

    def feed(self, in_: Any, batch: Any, err: Any) -> int:
        batch.part = self._part_index
        return self._step(in_, batch, err)

    def _symbol_text(self, in_: Any, batch: Any, err: Any) -> int:
        for line in self._text_lines(in_):
            line = line.rstrip(b"\r\n")
            if line.startswith(b"--- profile"):
                self._step = self._records
                return self._records(in_, batch, err)
            if line.startswith(b"binary="):
                self._binary = line[7:]
            elif line.startswith(b"--- ") and line != _SYMBOLIZED:
                detail = f"section {line[4:]!r} holds no CPU profile"
                raise FormatError(self.source.name, self.format, detail, offset=in_.base + in_.pos)
            elif m := re.match(_SYMBOL_LINE, line):
                self._name(int(m[1], 16), [(name, b"", 0) for name in split_inlined(m[2])])
        if in_.eof:
            raise FormatError(
                self.source.name,
                self.format,
                "the file ends before its profile",
                offset=in_.base + in_.n,
                code=lib.FP_E_TRUNCATED,
            )
        return int(lib.FP_MORE)

    @staticmethod
    def _text_lines(in_: Any) -> Iterator[bytes]:
        """The whole lines of the window, consumed as they are taken; at the end of the input also the last."""
        window = ffi.buffer(in_.p + in_.pos, in_.n - in_.pos)[:]
        at = 0
        while at < len(window):
            end = window.find(b"\n", at) + 1
            if not end:
                if not in_.eof:
                    return
                end = len(window)
            in_.pos += end - at
            yield window[at:end]
            at = end

    def _records(self, in_: Any, batch: Any, err: Any) -> int:
        g = self._g
        while (status := int(lib.fp_gperf_feed(g, in_, err))) == lib.FP_ASK and g.line_n:
            line = ffi.buffer(in_.p + in_.pos, g.line_n)[:]
            in_.pos += g.line_n
            if g.java and (m := re.match(_SYMBOL_LINE, line.rstrip())):
                self._name(int(m[1], 16), [_java_frame(m[2])])
            else:
                self._maps.line(line)
        if status != lib.FP_ASK:
            return status
        self._describe()
        self._step = self._rows
        batch.part = self._part_index
        return self._rows(in_, batch, err)

    def _rows(self, in_: Any, batch: Any, err: Any) -> int:
        return int(lib.fp_gperf_rows(self._g, batch, err))

    def _name(self, address: int, frames: list[tuple[bytes, bytes, int]]) -> None:
        """Give an address its functions: (name, file, line), innermost first."""
        model = self.model
        object_id = model.object(self._binary) if self._binary else 0
        chain = 0
        for name, file, line in reversed(frames):
            chain = lib.fp_model_line(model.c, model.function(name, file, object_id), line, 0, chain)
        if chain == lib.FP_NO_ID or lib.fp_gperf_name(self._g, address, chain):
            raise MemoryError("no memory for symbols")

    def _describe(self) -> None:
        """The header and the mapped objects are known: enter them into the model."""
        g, model = self._g, self.model
        for m in arrange(dict.fromkeys(self._maps.objects)):
            object_id = model.object(m.path, m.build_id) if m.path or m.build_id else 0
            mapping = lib.fp_model_mapping(model.c, object_id, m.start, m.limit, m.offset, 0)
            if mapping == lib.FP_NO_ID or lib.fp_gperf_map(g, m.start, m.limit, mapping):
                raise MemoryError("no memory for mappings")
        if self.options.period_us is not None:
            g.period_us = self.options.period_us
        elif g.period_us == 0:
            self.report.warn(f"{self.source.name}: the period is 0, so is all CPU time; use --period")
        elif g.period_us == 1 and self._symbolized:
            self.report.warn(f"{self.source.name}: symbolized profiles do not keep the period; use --period")
        part = Part(value_types=list(_VALUE_TYPES))
        part.extra["period"] = int(g.period_us) * 1000
        part.extra["period_type"] = ("cpu", "nanoseconds")
        if not self.options.keep_signal_frames:
            part.extra["drop_frames"] = SIGNAL_FUNCTIONS
        self._part = part
        self._part_index = model.add_part(part)

    def finish(self) -> None:
        g, report = self._g, self.report
        stats = g.stats
        for name, n in (
            ("signal frames removed", stats.signal_frames),
            ("duplicated leaves removed", stats.duplicate_leaves),
            ("files without trailer", not g.trailer),
            ("profiles by forked processes in the file", stats.forks),
        ):
            if n:
                report.repairs[name] += int(n)
        for name, n in (("damaged records", stats.bad_records), ("bytes passed over", stats.lost_bytes)):
            if n:
                report.losses[name] += int(n)
        if stats.forks_in_pieces:
            report.warn(
                f"{self.source.name}: forked processes have written into the profile: samples from before they were "
                "forked may be counted more than once"
            )
        if stats.cut_ticks:
            report.warn(
                f"{self.source.name}: {stats.cut_ticks} of {stats.ticks} samples have stacks cut by the profiler at "
                "254 frames: their callers are missing"
            )
        if self._maps.unknown:
            report.repairs["lines that name no mapped object"] += self._maps.unknown
        facts = report.facts
        facts["word size"] = int(g.word)
        facts["byte order"] = "big-endian" if g.swap else "little-endian"
        facts["period microseconds"] = int(g.period_us)
        facts["records in file"] = int(stats.records)
        facts["samples"] = int(stats.ticks)
        facts["distinct chains"] = int(stats.chains)
        facts["samples cut at 254 frames"] = int(stats.cut_ticks)
        facts["addresses in no mapped object"] = int(stats.unmapped)


def _java_frame(text: bytes) -> tuple[bytes, bytes, int]:
    if m := re.match(_JAVA_FILE_LINE, text):
        line = int(m[3])
        return m[1], m[2], line if 0 < line < 1 << 32 else 0
    if m := re.match(_JAVA_FILE, text):
        return m[1], m[2], 0
    return text.strip(), b"", 0


# ---- writing ------------------------------------------------------------


class GperftoolsWriter(Writer):
    """A profile of 64-bit little-endian words, which google-pprof and go tool pprof read."""

    format = "gperftools"
    view = "stacks"
    names = False

    def __init__(self, model: Model, sink: Sink, options: Options, report: Report) -> None:
        super().__init__(model, sink, options, report)
        self._w = ffi.new("struct fp_gperf_writer *")
        self._w.model = model.c
        self._err = ffi.new("struct fp_err *")
        self._columns: dict[int, tuple[int, int]] = {}
        self._begun = False

    def _begin(self, part: Part | None) -> None:
        extra = part.extra if part else {}
        unit = extra.get("period_type", ("cpu", "nanoseconds"))[1]
        period_us = extra.get("period", 0) * _NANOSECONDS.get(unit, 0) // 1000
        if not 0 < period_us < 1 << 32:
            period_us = 10_000
        if self.options.period_us:
            period_us = self.options.period_us
        self._w.period_ns = period_us * 1000
        self.text(b"".join(n.to_bytes(8, "little") for n in (0, 3, 0, period_us, 0)))
        self._begun = True

    def _column(self, part: Part) -> tuple[int, int]:
        """(value column, nanoseconds that 1 stands for in it if it is a time to be divided by the period)."""
        types = part.value_types
        for k, t in enumerate(types):
            if t.name == "samples" and t.unit == "count":
                return k, 0
        for k, t in enumerate(types):
            if t.unit in _NANOSECONDS:
                return k, _NANOSECONDS[t.unit]
        for k, t in enumerate(types):
            if t.unit in ("count", ""):  # the events of a call graph have no unit
                return k, 0
        raise UsageError("gperftools profiles count samples: none of the values is a count or a time")

    def put(self, batch: Batch) -> None:
        part = self.model.parts[batch.part]
        if not self._begun:
            self._begin(part)
        if batch.part not in self._columns:
            self._columns[batch.part] = self._column(part)
        column, self._w.unit_ns = self._columns[batch.part]
        status = lib.fp_gperf_put(self._w, batch.c, column, self.out, self._err)
        check(status, self._err, "output", self.format)

    def end(self) -> None:
        if not self._begun:
            self._begin(self.model.parts[0] if self.model.parts else None)
        self.text(b"".join(n.to_bytes(8, "little") for n in (0, 1, 0)))
        build_ids = 0
        for i in range(1, self.model.count("mappings")):
            row = self.model.row("mappings", i)
            start, limit, offset = (row[k] | row[k + 1] << 32 for k in (1, 3, 5))
            path, build_id = (self.model.string(s) for s in self.model.row("objects", row[0]))
            build_ids += bool(build_id)
            line = f"{start:08x}-{limit:08x} r-xp {offset:08x} 00:00 0          ".encode()
            self.text(line + path.replace(b"\n", b"?") + b"\n")
        w, unsaid = self._w, self.report.unsaid
        for name, n in (
            ("frames without address", w.no_address),
            ("samples without addresses", w.no_stack),
            ("samples of negative value", w.negative),
            ("labels, threads and times of samples", w.labels),
            ("times rounded to whole ticks", w.rounded),
            ("build ids", build_ids),
        ):
            if n:
                unsaid[name] += int(n)
        self.report.rows["samples written"] += int(w.rows)


FORMAT = Format(
    name="gperftools",
    view="stacks",
    title="gperftools CPU profile: 32/64 bit, both byte orders, symbolized form",
    suffixes=(".prof",),
    sniff=sniff,
    reader=GperftoolsReader,
    writer=GperftoolsWriter,
    reads=("period_us", "keep_signal_frames"),
    writes=("period_us",),
)
