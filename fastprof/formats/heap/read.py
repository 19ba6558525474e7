"""Reads text profiles of allocators, Go and Java (_lexer.pyx)."""

from __future__ import annotations

import json

from fastprof.core import lazy_re as re
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, fp_batch, fp_err, fp_window
from fastprof.core.allocators import GO_KEPT, GO_NAMES, NAMES
from fastprof.core.c_memory import address_of, enough
from fastprof.core.engine import Reader
from fastprof.core.errors import FormatError
from fastprof.core.model import Part, ValueType
from fastprof.core.options import LENIENT, MAX_MEMORY
from fastprof.core.reported import coded
from fastprof.core.spill import KeptKeys
from fastprof.formats.heap import _lexer
from fastprof.formats.heap._lexer import Lexer
from fastprof.formats.heap.reported import REPORTED
from fastprof.symbols import SYMBOLS
from fastprof.symbols.listed import SYMBOL_LINE, java_frame
from fastprof.symbols.maps import MappedObject, MapsText, arrange

_COUNT, _BYTES = "count", "bytes"
_IN_USE = [ValueType("inuse_objects", _COUNT), ValueType("inuse_space", _BYTES)]
_ALLOCATED = [ValueType("alloc_objects", _COUNT), ValueType("alloc_space", _BYTES)]
_SPACE = [ValueType("objects", _COUNT), ValueType("space", _BYTES)]
_FIRST_OF_HEAP = (
    rb"heap profile: *(\d+): *(\d+) *\[ *(\d+): *(\d+) *\] *@ *"
    rb"(?:(heap\w*?|growthz?|fragmentationz?))(?:/(\d*))?$"
)
# Functions that viewers drop: those that wait for locks.
LOCKS = (
    rb"(base::)?(RecordLockProfileData|Submit(Mutex|SpinLock)ProfileData).*"
    rb"|(base::)?((Mutex::)?(AwaitCommon|Unlock|UnlockSlow|ReaderUnlock)|(SpinLock|SpinLockHolder)::|(MutexLock::)?~MutexLock).*"
)
_JAVA_RATE = 524288
_LIMIT = 1 << 63
_GO_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|U([0-9a-f]{8})|(.))")
_OPERATOR = re.compile(rb"--(?<!operator--)")  # `inner--outer`, but operator-- is a name
_KEYS = ("cycles/second", "sampling period", "ms since reset", "discarded samples", "format", "resolution")


class HeapReader(Reader):
    """A profile.  Its first line decides how rows are read (_first); Python reads the lines around the rows."""

    format = "heap"
    view = "stacks"
    allocator = True
    renews_stacks = True
    addresses = True
    remarks = frozenset({"comments"})

    def start(self) -> None:
        self.distinct = True
        self._lexer = Lexer(address_of(self.model.c), self.options[LENIENT])
        kept = ffi.cast("struct fp_key_sums *", self._lexer.kept)
        self._kept = KeptKeys(kept, self.options[MAX_MEMORY])
        self._maps = MapsText()
        self._take = HeapReader._first  # functions, not methods, as in the reader of gperftools' CPU profiles
        self._types: list[ValueType] | None = None  # value types that the header determines
        self._sized = False  # rows are of objects and bytes
        self._java = ""  # "heap" or "contention"
        self._kind = ""
        self._keys: dict[str, str] = {}
        self._binary = b""
        self._extra: dict[str, Any] = {}
        self._in_maps = False
        self._cut_text = False
        self._four = False  # the header has different figures for allocated objects
        self._jemalloc = False
        self._part_index = -1

    # ---- lines --------------------------------------------------------------

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        lexer = self._lexer
        while True:
            if self._part_index >= 0:
                batch.part = self._part_index
            status = lexer.feed(address_of(in_), address_of(batch), address_of(err))
            self._kept.rest()
            if status != lib.FP_NEEDS:
                return status
            if not lexer.line_length:
                self._describe(batch)
            elif self._take(self, lexer.text):
                lexer.consume(address_of(in_))

    def _error(self, what: str, *, code: int = lib.FP_E_MALFORMED) -> FormatError:
        return self.damaged(what, self._lexer.offset, code, self._lexer.line_number)

    def _number(self, text: str | bytes, what: str) -> int:
        """Parse a number of the header, in Go's or C's syntax.  Errors: FormatError."""
        word = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if re.fullmatch(r"\d{1,19}|0[xX][0-9a-fA-F]{1,16}", word, re.ASCII):
            number = int(word, 16 if word[1:2] in ("x", "X") else 10)
            if number < _LIMIT:
                return number
        raise self._error(f"{what} is {word!r:.80}, expected a number below 2^63")

    def _first(self, line: bytes) -> bool:
        """Recognize the kind of profile by its first line.  True: the line is read."""
        line = line.strip()
        if not line or line.startswith(b"#"):
            return True
        if line == b"--- symbol":
            self._take = HeapReader._symbols
        elif m := re.match(_FIRST_OF_HEAP, line):
            self._heap_header(m)
        elif m := re.fullmatch(rb"heap_v2/(\d+)", line):
            self._kind, self._sized, self._jemalloc = "heap_v2", True, True
            self._rows_from_next(_lexer.JEMALLOC, rate=max(1, self._number(m[1], "the sampling rate")))
            self._extra = {"period": int(m[1]), "period_type": ("space", _BYTES)}
        elif m := re.match(rb"--- (contentionz|heapz|contention|mutex)\b", line):
            self._kind = m[1].decode()
            self._take = HeapReader._key
        elif line.startswith(b"--- threadz "):
            self._kind, self._take = "threadz", HeapReader._before_threads
        elif line.startswith(b"--- Thread "):
            self._kind = "threadz"
            self._threads()
            return False
        elif m := re.fullmatch(rb"(\S+) profile: total \d+", line):
            self._kind = m[1].decode("utf-8", "replace")
            self._types = [ValueType(self._kind, _COUNT)]
            self._extra = {"period": 1, "period_type": (self._kind, _COUNT)}
            self._rows_from_next(_lexer.COUNTS)
        else:
            raise self._error(f"the first line is {line.decode('utf-8', 'replace')!r:.80}, expected a profile's header")
        return True

    def _rows_from_next(self, mode: int, **how: Any) -> None:
        """Read the lines after this one as rows."""
        self._take = HeapReader._after_rows
        self._lexer.use(mode, **how)

    def _heap_header(self, m: re.Match[bytes]) -> None:
        in_objects, in_bytes, objects, nbytes = (self._number(n, "a total") for n in m.groups()[:4])
        self._kind, rate = m[5].decode(), self._number(m[6], "the sampling rate") if m[6] else 0
        if self._kind.endswith("_v2"):
            period = rate
        elif self._kind == "heap":
            period = rate // 2  # Go prints twice the rate
        elif self._kind.endswith("profile") or not self._kind.startswith("heap"):
            period = 1
        else:
            raise self._error(
                f"the kind of heap profile is {self._kind!r:.80}, expected heap, heap_v2, heapz_v2, heapprofile, "
                "growth or fragmentation"
            )
        sampled = self._kind == "heap" or self._kind.endswith("_v2")
        self._sized = True
        self._four = (objects != in_objects and objects != 0) or (nbytes != in_bytes and nbytes != 0)
        self._extra = {"period": period, "period_type": ("space", _BYTES)}
        self._rows_from_next(_lexer.HEAP, rate=max(1, period) if sampled else 0)

    def _key(self, line: bytes) -> bool:
        """`sampling period = 100`, before the rows of contention and of Java."""
        text = line.decode("utf-8", "replace").strip()
        if not text or text.startswith("#"):
            return True
        key, equals, value = (part.strip() for part in text.partition("="))
        if equals and "@" not in key:
            if key not in _KEYS:
                raise self._error(f"the key is {key!r:.80}, expected one of {', '.join(_KEYS)}")
            self._keys[key] = value
            return True
        self._pairs()
        return False

    def _pairs(self) -> None:
        """Choose value types and scaling by the keys, once all are read."""
        keys, lexer = self._keys, self._lexer
        heap, java = self._kind == "heapz", "format" in keys or "resolution" in keys
        if java and keys.get("format", "java") != "java":
            raise self._error(f"the format is {keys['format']!r:.80}, expected java")
        if heap and not java:
            raise self._error("the heapz profile has no line `format = java`")
        period = self._number(keys["sampling period"], "the sampling period") if "sampling period" in keys else None
        if "ms since reset" in keys:
            self._extra["duration_ns"] = self._number(keys["ms since reset"], "the time since the reset") * 1_000_000
        self._java = self._kind if java else ""
        self._take = HeapReader._after_rows
        unit = keys.get("resolution", _BYTES if heap else "microseconds") if java else "nanoseconds"
        if heap:
            self._types = [ValueType("inuse_objects", _COUNT), ValueType("inuse_space", unit)]
            self._sized = True
            lexer.use(_lexer.PAIRS, again=True, rate=_JAVA_RATE, swapped=True, sized=True, java=True)
            return
        self._types = [ValueType("contentions", _COUNT), ValueType("delay", unit)]
        if period is None and not java:
            period = 1
        if period is not None:
            self._extra |= {"period": period, "period_type": ("contentions", _COUNT)}
        hertz = self._number(keys["cycles/second"], "cycles/second") if "cycles/second" in keys else 0
        lexer.use(_lexer.PAIRS, again=True, period=period or 0, hertz=hertz, swapped=True, java=java)

    def _before_threads(self, line: bytes) -> bool:
        if line.startswith(b"-"):
            self._threads()
            return False
        return True

    def _threads(self) -> None:
        self._types = [ValueType("thread", _COUNT)]
        self._extra = {"period": 1, "period_type": ("thread", _COUNT)}
        self._take = HeapReader._after_rows
        self._lexer.use(_lexer.THREADS, again=True)

    def _symbols(self, line: bytes) -> bool:
        """Read a name from the table before the profile, as written by google-pprof --raw."""
        line = line.strip()
        if line.startswith(b"binary="):
            self._binary = line[7:]
        elif line.startswith(b"--- "):
            self._take = HeapReader._first
        elif m := re.match(SYMBOL_LINE, line):
            self._name(int(m[1], 16), [(name, b"", 0) for name in _OPERATOR.split(m[2]) if name])
        return True

    def _after_rows(self, line: bytes) -> bool:
        """Read a mapped object or a name of Java's."""
        if self._java and (m := re.match(SYMBOL_LINE, line.rstrip())):
            self._name(int(m[1], 16), [java_frame(m[2].strip())])
        elif line.startswith((b"--- Memory map", b"MAPPED_LIBRARIES:")):
            self._in_maps = True
        elif self._in_maps:
            self._maps.line(line)
        elif line.strip() and not line.startswith(b"---- no stack trace for"):
            if not self.options[LENIENT]:
                raise self._error(
                    f"the line is {line.decode('utf-8', 'replace')!r:.80}, expected MAPPED_LIBRARIES: or the end"
                )
            self.log.count(REPORTED["unreadable-lines"])
        return True

    def _name(self, address: int, frames: list[tuple[bytes, bytes, int]]) -> None:
        """Give an address its functions: (name, file, line), innermost first."""
        model, chain = self.model, 0
        object_id = model.object(self._binary) if self._binary else 0
        for name, file, line in reversed(frames):
            chain = model.line(model.function(name, file, object_id), line, outer=chain)
        self._lexer.name(address, chain)

    # ---- the end ------------------------------------------------------------

    def _describe(self, batch: fp_batch) -> None:
        """At the end of the input, set the value types, the mapped objects and the labels."""
        model, lexer = self.model, self._lexer
        if self._take is HeapReader._key:
            self._pairs()
        elif self._take is HeapReader._before_threads:
            self._threads()
        elif not self._kind:
            raise self._error("the file ends before its profile", code=lib.FP_E_TRUNCATED)
        types, columns = self._types, [0, 1]
        if types is None and (self._four or lexer.has_allocated):
            types, columns = _ALLOCATED + _IN_USE, [2, 3, 0, 1]
        elif types is None:
            types = _IN_USE if self._jemalloc else _SPACE
        columns = columns[: len(types)]
        if self._sized and not self._java:
            self._extra["drop_frames"] = NAMES
            # Go: pprof would drop all below runtime.main, unless its caller is named, too
            if self._kind == "heap" and self.options[SYMBOLS]:
                self._extra |= {"drop_frames": GO_NAMES, "keep_frames": GO_KEPT}
        elif self._kind == "contentionz" and not self._java:
            self._extra["drop_frames"] = LOCKS
        self._add_ranges()
        labels = [0, *map(self._labels, lexer.texts[1:])]
        lexer.describe(columns, labels, model.intern("bytes") if self._sized else 0)
        self._part_index = batch.part = model.add_part(Part(value_types=[*types], extra=self._extra))
        enough(lib.fp_batch_set_values(batch, len(types)))

    def _add_ranges(self) -> None:
        """Add the mapped objects, sorted; where two overlap, the earlier one ends where the next begins."""
        mappings: list[tuple[MappedObject, int]] = []
        for m in arrange(dict.fromkeys(self._maps.objects)):
            object_id = self.model.object(m.path, m.build_id) if m.path or m.build_id else 0
            mappings.append((m, self.model.mapping(object_id, m.start, m.limit, m.offset)))
        mappings.sort(key=lambda pair: pair[0].start)
        for (m, mapping), (after, _) in zip(mappings, [*mappings[1:], (None, 0)] if mappings else [], strict=True):
            limit = m.limit if after is None else min(m.limit, after.start)
            if m.start < limit:
                self._lexer.add_range(m.start, limit, mapping)

    def _labels(self, text: bytes) -> int:
        """The labels of `3:worker`, a thread of jemalloc and its name, or of Go's `{"key":"value"}`."""
        model = self.model
        if self._jemalloc:
            number, colon, name = text.partition(b":")
            after = model.label("thread", number=int(number))
            return model.label("thread_name", name, after=after) if colon else after
        try:
            pairs = json.loads(_GO_ESCAPE.sub(_as_json, text.decode("utf-8", "surrogateescape")))
            # a lone surrogate cannot be encoded: a UnicodeEncodeError, which is a ValueError
            items = sorted((_bytes(key), _bytes(value)) for key, value in pairs.items())
        except (ValueError, AttributeError, RecursionError):
            self.log.count(REPORTED["unreadable-labels"])
            return 0
        after = 0
        for key, value in items:
            after = model.label(key, value, after=after)
        return after

    def finish(self) -> None:
        counts, log = self._lexer.counts, self.log
        log.count_all(REPORTED, coded(REPORTED, counts) | {"unreadable-mapped-objects": self._maps.unknown})
        if counts["open_end"]:
            log.warn(REPORTED["maybe-cut-off"], file=self.source.name)
        log.facts["kind"] = self._kind
        log.facts["rows_in_file"] = counts["rows"]
        log.facts["addresses_in_no_mapped_object"] = counts["unmapped"]


def _bytes(value: object) -> bytes:
    return str(value).encode("utf-8", "surrogateescape")


def _as_json(escape: re.Match[str]) -> str:
    """Convert an escape of Go's strings that JSON lacks, `\\x07` or `\\a`, to JSON's."""
    two, four, one = escape.groups()
    if one:
        return {"a": "\\u0007", "v": "\\u000b", "'": "'"}.get(one, escape[0])
    return json.dumps(chr(min(int(two or four, 16), 0x10FFFF)))[1:-1]
