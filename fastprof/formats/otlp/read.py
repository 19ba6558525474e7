"""Reads OpenTelemetry profiles (csrc/otlp/read.h)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_batch, fp_err, fp_otlp_attribute, fp_otlp_json, fp_window
from fastprof.core.c_memory import owned
from fastprof.core.engine import Reader
from fastprof.core.errors import check
from fastprof.core.model import Part, ValueType
from fastprof.core.options import LENIENT
from fastprof.core.reported import counts_of
from fastprof.core.source import Source
from fastprof.core.spill import Spilled
from fastprof.formats.otlp.reported import REPORTED
from fastprof.formats.otlp.values import text_of, texts_of

# JSON, as opposed to a message of 123 bytes: a line feed (field 1) and a brace (its length).
_JSON = re.compile(rb'\s*\{\s*(?:"[A-Za-z_$]|\}|$)')

# Strings that the decoder compares with, by their names in C.
WORDS = {
    "process_pid": "process.pid",
    "thread_id": "thread.id",
    "trace_id": "trace_id",
    "span_id": "span_id",
    "scope_name": "otel.scope.name",
    "scope_version": "otel.scope.version",
    "value": "value",
    "zero": "0",
    "yes": "true",
    "no": "false",
    "gnu": "process.executable.build_id.gnu",
    "go": "process.executable.build_id.go",
    "is_folded": "pprof.location.is_folded",
    "has_functions": "pprof.mapping.has_functions",
    "has_filenames": "pprof.mapping.has_filenames",
    "has_inline_frames": "pprof.mapping.has_inline_frames",
    "has_line_numbers": "pprof.mapping.has_line_numbers",
    "comment": "pprof.profile.comment",
    "doc_url": "pprof.profile.doc_url",
    "drop_frames": "pprof.profile.drop_frames",
    "keep_frames": "pprof.profile.keep_frames",
    "default_sample_type": "pprof.scope.default_sample_type",
    "sample_type_order": "pprof.scope.sample_type_order",
}


_WINDOW = 64 << 10


class _Window:
    """A window over the bytes of a profile; `in_` is the decoder's."""

    def __init__(self, in_: fp_window) -> None:
        self.in_ = in_
        self._end = 0
        self._resize(_WINDOW)

    def _resize(self, nbytes: int) -> None:
        self._bytes = bytearray(nbytes)
        self.in_.p = ffi.from_buffer("uint8_t[]", self._bytes)

    def select(self, start: int, end: int) -> None:
        in_, self._end = self.in_, end
        in_.base, in_.pos, in_.n, in_.eof = start, 0, 0, start == end

    def refill(self, source: Source) -> None:
        """Keep the remaining bytes and read those that follow; a window that they fill is doubled."""
        in_ = self.in_
        tail = self._bytes[in_.pos : in_.n]
        in_.base += in_.pos
        if len(tail) == len(self._bytes):
            self._resize(2 * len(tail))
        n, at = len(tail), in_.base + len(tail)
        more = min(len(self._bytes) - n, self._end - at)
        with memoryview(self._bytes) as view:
            view[:n] = tail
            source.read_next(at, view[n : n + more])
        in_.pos, in_.n, in_.eof = 0, n + more, at + more == self._end


class OtlpReader(Reader):
    """Samples of all messages of a file.  Each name and unit of a profile's values is a value type.

    The input is read several times; a pipe or a compressed file is spooled to a temporary file first.
    """

    format = "otlp"
    view = "stacks"
    allocator = True
    addresses = True
    renews_stacks = True
    remarks = frozenset(
        {
            "frame-attributes",
            "mapping-attributes",
            "negative-line-numbers",
            "other-periods",
            "profile-ids",
            "schema-urls",
            "unknown-fields",
            "wide-line-numbers",
        }
    )

    def start(self) -> None:
        self._r = r = owned(lib.fp_otlp_reader_new(self.model.c, self.options[LENIENT]), "the OTLP decoder")
        r.input = self.model.input()
        for name, text in WORDS.items():
            setattr(r.words, name, self.model.intern(text))
        self._err = ffi.new("struct fp_err *")
        self._pass = lib.FP_OTLP_SCAN
        self._part = -1
        self._encoding = "binary"
        self._json: Source | None = None  # the input, if it is JSON
        self._translated: fp_otlp_json | None = None
        self._windows: list[_Window] = []  # of profiles that are read at the same time

    def ranges(self) -> Iterator[tuple[int, int | None]]:
        r = self._r
        self.source.spool()
        head = self.source.head
        if _JSON.match(head):
            self._encoding, r.walk.form = "JSON", lib.FP_OTLP_GROUPED
            self._translate()
        elif head[:1] < b"\x08" and head:
            self._encoding, r.walk.form = "framed", lib.FP_OTLP_FRAMED
        yield from self._begin(lib.FP_OTLP_SCAN, 0, None)
        self._check(lib.fp_otlp_scanned(r, self._err))
        for k in range(r.n_messages):
            message = r.messages[k]
            start, length = int(message.start), int(message.end - message.start)
            yield from self._begin(lib.FP_OTLP_TABLES, start, length)
            self._resolve()
            yield from self._profiles()
        if self._part < 0:
            self._new_part()

    def _begin(self, which: int, start: int, length: int | None) -> Iterator[tuple[int, int | None]]:
        self._pass = which
        lib.fp_otlp_begin(self._r, which)
        yield start, length

    def _profiles(self) -> Iterator[tuple[int, int | None]]:
        """Ranges for the profiles of a message, of no bytes: each profile has a window of its own."""
        r = self._r
        self._pass = lib.FP_OTLP_ROWS
        lib.fp_otlp_begin(r, self._pass)
        while n := self._check(lib.fp_otlp_choose(r)):
            for k in range(n):
                if k == len(self._windows):
                    self._windows.append(_Window(lib.fp_otlp_window(r, k)))
                profile = r.current.profiles[r.first + k]
                self._windows[k].select(int(profile.start), int(profile.end))
            yield int(r.current.profiles[r.first].start), 0

    def _translate(self) -> None:
        """Translate JSON to protocol buffers in a temporary file, which becomes the source."""
        self._json = self.source
        spilled = Spilled()
        self._translated = self._run_translation(spilled.append, 0)
        self.source = Source(spilled.file(), self._json.name, temporary=True)

    def _run_translation(self, write: Callable[[memoryview], object], find: int) -> fp_otlp_json:
        """Translate JSON; `find`: a byte of the output, whose input offset the decoder then has."""
        source, err = self._json, self._err
        assert source is not None
        j = owned(lib.fp_otlp_json_new(), "the translation of JSON")
        j.lenient, j.find = self.options[LENIENT], find
        out = owned(ffi.new("struct fp_buf *"), "messages")
        source.select(0)
        status = lib.FP_MORE
        while status != lib.FP_DONE:
            status = lib.fp_otlp_json_feed(j, source.in_, out, err)
            check(status, err, source.name, self.format)
            if status != lib.FP_MORE and out.n:
                write(memoryview(ffi.buffer(out.p, out.n)))
                out.n = 0
            if status == lib.FP_MORE:
                source.refill()
        return j

    def _locate(self, err: fp_err) -> None:
        """Set the offset of an error in JSON: that of the message around it."""
        if self._json is not None:
            err.offset = self._run_translation(len, err.offset).found

    def _check(self, status: int) -> int:
        if status < 0:
            self._locate(self._err)
        check(status, self._err, self.source.name, self.format)
        return status

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        r = self._r
        if self._pass == lib.FP_OTLP_SCAN:
            status = lib.fp_otlp_scan(r, in_, err)
        elif self._pass == lib.FP_OTLP_TABLES:
            status = lib.fp_otlp_tables(r, in_, err)
        elif batch.part != self._part and batch.n:
            status = lib.FP_FULL
        else:
            batch.part = self._part
            while (status := lib.fp_otlp_feed(r, batch, err)) == lib.FP_MORE:
                self._windows[r.waiting].refill(self.source)
        if status < 0:
            self._locate(err)
        return int(status)

    # ---- a message

    def _resolve(self) -> None:
        r = self._r
        self._check(lib.fp_otlp_resolve_strings(r, self._err))
        raw = bytes(ffi.buffer(r.current.raw.p, r.current.raw.n)) if r.current.raw.n else b""
        for k in range(r.current.n_raws):
            index = r.current.raws[k]
            attribute = (r.current.own if index & 1 else r.current.attributes)[index >> 1]
            attribute.string = self.model.intern(self._text(attribute, raw))
        self._check(lib.fp_otlp_resolve(r, self._err))
        if self._part < 0 or len(self.model.parts[self._part].value_types) < r.types.n - 1:
            self._new_part()
        self._describe(self.model.parts[self._part], raw)

    def _text(self, attribute: fp_otlp_attribute, raw: bytes) -> bytes:
        try:
            return text_of(raw[attribute.raw : attribute.raw + attribute.number])
        except (IndexError, ValueError, RecursionError):
            if not self.options[LENIENT]:
                self._err.offset = attribute.at
                self._locate(self._err)
                raise self.damaged("the value of an attribute is malformed", int(self._err.offset)) from None
            self._r.stats.bad_entries += 1
            return b""

    def _name(self, string_id: int) -> str:
        return self.model.string(string_id).decode("utf-8", "surrogateescape")

    def _new_part(self) -> None:
        """A part for all value types so far."""
        r = self._r
        types = [
            ValueType(self._name(r.types.words[2 * i]), self._name(r.types.words[2 * i + 1]))
            for i in range(1, r.types.n)
        ]
        before = self.model.parts[self._part] if self._part >= 0 else Part()
        part = Part(types or [ValueType("samples", "count")], comments=before.comments, extra=before.extra)
        self._part = self.model.add_part(part)

    def _describe(self, part: Part, raw: bytes) -> None:
        """Set fields of the part, the same as pprof's."""
        r, extra = self._r, part.extra
        if r.first_time:
            extra["time_ns"] = int(r.first_time)
            if r.last_time > r.first_time:
                extra["duration_ns"] = int(r.last_time - r.first_time)
        elif r.longest:
            extra["duration_ns"] = int(r.longest)
        if r.pprof.has_period:
            extra["period"] = int(r.pprof.period)
            extra["period_type"] = (self._name(r.pprof.period_type), self._name(r.pprof.period_unit))
        for key in ("drop_frames", "keep_frames", "doc_url"):
            if value := getattr(r.pprof, key):
                extra[key] = self.model.string(value)
        if r.pprof.default_sample_type:
            extra["default_sample_type"] = self._name(r.pprof.default_sample_type)
        for comment in self._comments(raw):
            if comment not in part.comments:
                part.comments.append(comment)

    def _comments(self, raw: bytes) -> Iterator[bytes]:
        r = self._r
        for k in range(r.pprof.n_comments):
            attribute = r.current.attributes[r.pprof.comments[k]]
            if attribute.kind == lib.FP_OTLP_RAW:
                yield from texts_of(raw[attribute.raw : attribute.raw + attribute.number])
            else:
                yield self.model.string(attribute.string)
        if r.layout == lib.FP_OTLP_1_8:
            for k in range(r.current.n_profiles):
                profile = r.current.profiles[k]
                for i in range(profile.n_comments):
                    yield self.model.string(r.current.lists[profile.comments + i])

    # ---- the end

    def finish(self) -> None:
        r, log = self._r, self.log
        stats = r.stats
        log.count_all(
            REPORTED,
            counts_of(stats)
            | {
                "damaged-fields": r.walk.bad_fields,
                "skipped-bytes": r.walk.lost_bytes,
            },
        )
        if stats.dropped_attributes:
            log.warn(REPORTED["dropped-attributes"], file=self.source.name, n=int(stats.dropped_attributes))
        if r.guessed:
            log.warn(REPORTED["guessed-layout"], file=self.source.name)
        if (j := self._translated) is not None:
            log.count(REPORTED["unknown-fields"], j.unknown_keys)
            log.count(REPORTED["damaged-fields"], j.bad_values)
            log.count(REPORTED["skipped-bytes"], j.lost_bytes)
        part = self.model.parts[self._part]
        facts: dict[str, Any] = log.facts
        names = {lib.FP_OTLP_1_8: "1.8", lib.FP_OTLP_1_9: "1.9", lib.FP_OTLP_1_10: "1.10"}
        facts["layout"], facts["encoding"] = names[r.layout], self._encoding
        facts["messages"], facts["resources"], facts["profiles"] = (
            int(r.n_messages),
            int(stats.resources),
            int(stats.profiles),
        )
        facts["sample_types"] = [f"{t.name}/{t.unit}" for t in part.value_types]
        for key in ("period", "time_ns", "duration_ns"):
            if key in part.extra:
                facts[key] = part.extra[key]
