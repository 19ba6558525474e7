"""Reads LLVM sample profiles: text (csrc/pgo/read.h), binary and extbinary (csrc/pgo/binary.h)."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator

from fastprof.core._c import lib
from fastprof.core._typing import Any, NamedTuple, fp_batch, fp_err, fp_pgo_binary, fp_window
from fastprof.core.c_memory import owned
from fastprof.core.compiled import NAMES
from fastprof.core.model import Part, ValueType
from fastprof.core.native import NativeReader
from fastprof.core.options import LENIENT
from fastprof.core.source import Source
from fastprof.formats.pgo import BINARY_MAGIC, EXTBINARY_MAGIC
from fastprof.formats.pgo.reported import REPORTED

_SUMMARY, _NAMES, _CONTEXTS, _FUNCTIONS = 1, 2, 6, 32  # types of sections
_KNOWN = {_SUMMARY, _NAMES, 3, 4, 5, _CONTEXTS, _FUNCTIONS}  # also symbols, offsets of functions, checksums
_COMPRESSED = 1
_MD5, _FIXED_MD5 = 1 << 32, 2 << 32  # flags of the names
_HAS_CONTEXTS, _HAS_TABLES = 2 << 32, 32 << 32  # flags of the summary
_ENTRY = struct.Struct("<4Q")
_MOST_SECTIONS = 4096
_LONGEST = 10  # bytes of a ULEB128
_AT_ONCE = 1 << 16


class Section(NamedTuple):
    kind: int
    flags: int
    offset: int
    size: int


class LlvmReader(NativeReader):
    """Counts at stacks of inlined functions, calls of targets, and entries of functions.

    Lines are offsets from the first line of their function.
    """

    format = "llvm-profile"
    view = "stacks"
    renews_stacks = True

    def start(self) -> None:
        self._is_ext = self.source.head.startswith(EXTBINARY_MAGIC)
        self._b: fp_pgo_binary | None = None
        if self._is_ext or self.source.head.startswith(BINARY_MAGIC):
            self._b = owned(lib.fp_pgo_binary_new(self.model.c, self.options[LENIENT]), "the reader of sample profiles")
            self._p = self._b.rows
        else:
            text = lib.fp_pgo_reader_new(self.model.c, self.options[LENIENT])
            self._p = owned(text, "the reader of sample profiles")
        types = [ValueType(name, "count") for name in NAMES]
        self.part = self.model.add_part(Part(types, extra={"default_sample_type": types[0].name}))
        self._n_sections = 0

    def step(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        if self._b is None:
            return lib.fp_pgo_feed(self._p, in_, batch, err)
        return lib.fp_pgo_binary_feed(self._b, in_, batch, err)

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        return self._sections() if self._is_ext else ((0, None),)

    def _sections(self) -> Iterator[tuple[int, int | None]]:
        """Names, contexts, functions, in the order of the table, which LLVM reads them in."""
        assert self._b is not None
        whole = self.source
        whole.spool()
        sections = self._table()
        flags = 0
        for section in sections:
            flags |= section.flags * (section.kind == _SUMMARY)
        self._b.has_contexts, self._b.has_tables = bool(flags & _HAS_CONTEXTS), bool(flags & _HAS_TABLES)
        for section in sections:
            if section.kind not in (_NAMES, _CONTEXTS, _FUNCTIONS) or not section.size:
                continue
            lib.fp_pgo_binary_begin(self._b, self._form(section))
            if not section.flags & _COMPRESSED:
                yield section.offset, section.size
                continue
            name = f"{whole.name} (section at byte {section.offset}, decompressed)"
            inflated: Any = Inflated(whole, section, self.damage)
            with Source(inflated, name) as self.source:
                yield 0, None
            self.source = whole

    def _form(self, section: Section) -> int:
        if section.kind == _CONTEXTS:
            return int(lib.FP_PGO_CONTEXTS)
        if section.kind == _FUNCTIONS:
            return int(lib.FP_PGO_FUNCTIONS)
        if section.flags & _FIXED_MD5:
            return int(lib.FP_PGO_FIXED_MD5_NAMES)
        return int(lib.FP_PGO_MD5_NAMES if section.flags & _MD5 else lib.FP_PGO_NAMES)

    def damage(self, offset: int, what: str) -> None:
        """Damage of a compressed section: an error, or a loss."""
        if not self.options[LENIENT]:
            raise self.damaged(what, offset)
        self.log.count(REPORTED["unread-sections"], 1)

    def _table(self) -> list[Section]:
        """The sections.  Errors: FormatError."""
        source, at = self.source, len(EXTBINARY_MAGIC)
        version, n = number_at(source.read_at(at, _LONGEST))
        if not n:
            raise self.damaged("the version is cut off", at)
        if version not in (103, 104):
            raise self.damaged(f"the version is {version}, expected 103 or 104", at)
        at += n
        head = source.read_at(at, 8)
        count = int.from_bytes(head, "little") if len(head) == 8 else 0
        if not 1 <= count <= _MOST_SECTIONS:
            raise self.damaged(f"the number of sections is {count}, expected 1 to {_MOST_SECTIONS}", at)
        rows = source.read_at(at + 8, count * _ENTRY.size)
        if len(rows) < count * _ENTRY.size:
            raise self.damaged("the table of sections is cut off", at + 8 + len(rows))
        first, found = at + 8 + len(rows), []
        for k, entry in enumerate(_ENTRY.iter_unpack(rows)):
            section = Section(*entry)
            end = section.offset + section.size
            is_wrong = section.size and (section.offset < first or source.size is None or end > source.size)
            if is_wrong and not self.options[LENIENT]:
                what = f"section {k} has bytes {section.offset} to {end}, expected within {first} to {source.size}"
                raise self.damaged(what, at + 8 + k * _ENTRY.size)
            if section.kind > _FUNCTIONS and not self.options[LENIENT]:
                what = f"section {k} is a profile of type {section.kind}, which is not known"
                raise self.damaged(what, at + 8 + k * _ENTRY.size)
            if is_wrong or section.kind > _FUNCTIONS:
                self.log.count(REPORTED["unread-sections"], 1)
                continue
            self.log.count(REPORTED["sections"], section.kind not in (_SUMMARY, _NAMES, 4, _CONTEXTS, _FUNCTIONS))
            found.append(section)
        return found

    def finish(self) -> None:
        self.log.facts["profiled_functions"] = int(self._p.functions)
        self.log.count_all(REPORTED, self._p)
        if self._b is not None:
            self.log.count_all(REPORTED, self._b)


def number_at(data: bytes) -> tuple[int, int]:
    """A ULEB128 number, and how many bytes it has; 0 bytes: it is cut off, or beyond 64 bits."""
    value = 0
    for k, byte in enumerate(data[:_LONGEST]):
        value |= (byte & 0x7F) << 7 * k
        if byte < 0x80:
            return (value, k + 1) if value < 1 << 64 else (0, 0)
    return 0, 0


class Inflated(io.RawIOBase):
    """The content of a compressed section: the numbers of its bytes before and after, then zlib's stream.

    It ends where `damage` is called.
    """

    def __init__(self, source: Source, section: Section, damage: Callable[[int, str], None]) -> None:
        self._source, self._damage, self._start = source, damage, section.offset
        head = source.read_at(section.offset, min(2 * _LONGEST, section.size))
        self._left, n = number_at(head)
        packed, m = number_at(head[n:])
        self._at, self._end = section.offset + n + m, section.offset + section.size
        self._zlib = zlib.decompressobj()
        self._waiting = b""
        if not n or not m or packed != section.size - n - m:
            self._left, self._end = 0, self._at
            damage(section.offset, "a compressed section has not the number of bytes that it states")

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        most = min(len(into), self._left + 1)
        what = ""
        try:
            data = self._inflated(most) if most else b""  # zlib takes 0 for no limit
        except zlib.error as error:
            data, what = b"", f"a compressed section: {error}"
        if len(data) > self._left or (most and not data and self._left):
            what = what or f"a compressed section has {'more' if data else 'fewer'} bytes than it states"
        if what:
            self._left, self._end, self._waiting = 0, self._at, b""
            self._damage(self._start, what)
            return 0
        self._left -= len(data)
        into[: len(data)] = data
        return len(data)

    def _inflated(self, most: int) -> bytes:
        data = b""
        while not data and not self._zlib.eof:
            if not self._waiting:
                self._waiting = self._source.read_at(self._at, min(_AT_ONCE, self._end - self._at))
                self._at += len(self._waiting)
                if not self._waiting:
                    break
            data = self._zlib.decompress(self._waiting, most)
            self._waiting = self._zlib.unconsumed_tail
        return data
