"""Reads gperftools CPU profiles (csrc/gperftools/read.h)."""

from collections.abc import Iterator

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_batch, fp_err, fp_window
from fastprof.core.c_memory import enough, owned
from fastprof.core.engine import Reader
from fastprof.core.messages import Message, counted
from fastprof.core.model import Part, ValueType
from fastprof.core.options import LENIENT, MAX_MEMORY
from fastprof.core.reported import counts_of
from fastprof.core.spill import KeptKeys
from fastprof.formats.gperftools import KEEP_SIGNAL_FRAMES, PERIOD, SYMBOLIZED
from fastprof.formats.gperftools.reported import REPORTED
from fastprof.symbols.listed import SYMBOL_LINE, java_frame
from fastprof.symbols.maps import MapsText, arrange

# Frames that pprof prunes from reports of CPU profiles, by name: the profiler's own.
SIGNAL_FUNCTIONS = (
    b"ProfileData::Add|ProfileData::prof_handler|CpuProfiler::prof_handler|__pthread_sighandler|__restore"
)
_LINES = 16 << 10  # bytes of lines to read at once
_VALUE_TYPES = [ValueType("samples", "count"), ValueType("cpu", "nanoseconds")]


# ---- symbols inside the profile -----------------------------------------


def split_inlined(names: bytes) -> list[bytes]:
    """`inner--outer` as google-pprof joins inlined functions, innermost first; `operator--` is one name."""
    parts: list[list[bytes]] = []
    for piece in names.split(b"--"):
        if parts and parts[-1][-1].endswith(b"operator"):
            parts[-1].append(piece)
        else:
            parts.append([piece])
    return [name for part in parts if (name := b"--".join(part))] or [b""]


# ---- reading ------------------------------------------------------------


class GperftoolsReader(Reader):
    """One CPU profile, also in google-pprof's symbolized form (`--- symbol` ... `--- profile`)."""

    format = "gperftools"
    view = "stacks"
    addresses = True
    renews_stacks = True

    def start(self) -> None:
        g = lib.fp_gperftools_reader_new(self.model.c, self.options[LENIENT])
        self._g = g = owned(g, "the gperftools decoder")
        self._kept = KeptKeys(ffi.addressof(g.known), self.options[MAX_MEMORY])
        g.keep_signal_frames = self.options[KEEP_SIGNAL_FRAMES]
        self._maps = MapsText()
        self._binary = b""
        self._cut_text = False  # whether the text after the samples ends inside a line
        self._part: Part | None = None
        self._part_index = 0
        self._symbolized = self.source.head.startswith(SYMBOLIZED)
        g.exact_callers = self._symbolized  # google-pprof has already moved them into their calls
        # functions: methods would refer to this reader, which then keeps its model until the next garbage collection
        self._step = GperftoolsReader._symbol_text if self._symbolized else GperftoolsReader._records

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        batch.part = self._part_index
        status = self._step(self, in_, batch, err)
        self._kept.rest()
        return status

    def _symbol_text(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        for line in self._text_lines(in_):
            line = line.rstrip(b"\r\n")
            if line.startswith(b"--- profile"):
                self._step = GperftoolsReader._records
                return self._records(in_, batch, err)
            if line.startswith(b"binary="):
                self._binary = line[7:]
            elif line.startswith(b"--- ") and line != SYMBOLIZED:
                section = repr(line[4:].decode("utf-8", "replace"))[:80]
                detail = Message("section {section} is not a CPU profile; for heaps use {--from=}heap", section=section)
                raise self.damaged(detail, in_.base + in_.pos)
            elif m := re.match(SYMBOL_LINE, line):
                self._name(int(m[1], 16), [(name, b"", 0) for name in split_inlined(m[2])])
        if in_.eof:
            raise self.damaged("the file ends before its profile", in_.base + in_.n, lib.FP_E_TRUNCATED)
        return int(lib.FP_MORE)

    @staticmethod
    def _text_lines(in_: fp_window) -> Iterator[bytes]:
        """The complete lines of the window, consumed one by one; at the end of the input also the last."""
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

    def _records(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        g = self._g
        while (status := int(lib.fp_gperftools_feed(g, in_, err))) == lib.FP_NEEDS and g.line_n:
            if not g.java:
                # no header of a forked process looks like these lines; a limit, because other lines may alternate
                text = ffi.buffer(in_.p + in_.pos, min(in_.n - in_.pos, _LINES))[:]
                if n := self._maps.lines(text):
                    in_.pos += n
                    self._cut_text = False
                    continue
            line = ffi.buffer(in_.p + in_.pos, g.line_n)[:]
            in_.pos += g.line_n
            text = line.rstrip(b"\0")  # zeros may follow it
            self._cut_text = text != b"" and not text.endswith(b"\n")
            if g.java and (m := re.match(SYMBOL_LINE, line.rstrip())):
                self._name(int(m[1], 16), [java_frame(m[2])])
            else:
                self._maps.line(line)
        if status != lib.FP_NEEDS:
            return status
        self._describe()
        self._step = GperftoolsReader._rows
        batch.part = self._part_index
        return self._rows(in_, batch, err)

    def _rows(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        return int(lib.fp_gperftools_rows(self._g, batch, err))

    def _name(self, address: int, frames: list[tuple[bytes, bytes, int]]) -> None:
        """Give an address its functions: (name, file, line), innermost first."""
        model = self.model
        object_id = model.object(self._binary) if self._binary else 0
        chain = 0
        for name, file, line in reversed(frames):
            chain = model.line(model.function(name, file, object_id), line, outer=chain)
        enough(lib.fp_gperftools_name(self._g, address, chain))

    def _describe(self) -> None:
        """The header and the mapped objects are known: enter them into the model."""
        g, model = self._g, self.model
        for m in arrange(dict.fromkeys(self._maps.objects)):
            object_id = model.object(m.path, m.build_id) if m.path or m.build_id else 0
            mapping = model.mapping(object_id, m.start, m.limit, m.offset)
            enough(lib.fp_gperftools_map(g, m.start, m.limit, mapping))
        period = self.options[PERIOD]
        if period is not None:
            g.period_us = period
        elif g.period_us == 0:
            self.log.warn(REPORTED["zero-period"], file=self.source.name)
        elif g.period_us == 1 and self._symbolized:
            self.log.warn(REPORTED["no-period"], file=self.source.name)
        part = Part(value_types=_VALUE_TYPES[: 2 if g.period_us else 1])
        if g.period_us:
            part.extra["period"] = int(g.period_us) * 1000
            part.extra["period_type"] = ("cpu", "nanoseconds")
        if not self.options[KEEP_SIGNAL_FRAMES]:
            part.extra["drop_frames"] = SIGNAL_FUNCTIONS
        self._part = part
        self._part_index = model.add_part(part)

    def finish(self) -> None:
        g, log = self._g, self.log
        stats = g.stats
        log.count_all(REPORTED, counts_of(stats) | {"missing-trailer": not g.trailer})
        if stats.forks_in_pieces:
            log.warn(REPORTED["forked-processes"], file=self.source.name)
        if stats.cut_ticks:
            log.warn(
                REPORTED["cut-stacks"],
                file=self.source.name,
                cut=stats.cut_ticks,
                samples=counted(stats.ticks, "sample"),
            )
        log.count(REPORTED["unreadable-mapped-objects"], self._maps.unknown)
        if self._cut_text:
            log.count(REPORTED["lost-text" if self.options[LENIENT] else "cut-text"])
            log.warn(REPORTED["maybe-cut-off"], file=self.source.name)
        facts = log.facts
        facts["word_size"] = int(g.word)
        facts["byte_order"] = "big-endian" if g.swap else "little-endian"
        facts["period_us"] = int(g.period_us)
        facts["records_in_file"] = int(stats.records)
        facts["samples"] = int(stats.ticks)
        facts["distinct_chains"] = int(stats.chains)
        facts["samples_cut_at_254_frames"] = int(stats.cut_ticks)
        facts["addresses_in_no_mapped_object"] = int(stats.unmapped)
