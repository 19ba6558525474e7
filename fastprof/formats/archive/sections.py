"""Sections, the building blocks of an archive file.  docs/formats/archive.md describes the bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence

import zstandard

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple, T
from fastprof.core.c_memory import owned
from fastprof.core.errors import hexdump
from fastprof.core.messages import Message
from fastprof.core.schema import fits
from fastprof.formats.archive import MAGIC
from fastprof.formats.archive import _cbor as archive_cbor
from fastprof.formats.archive.dictionary import DICTIONARY

VERSION = 1
FILE_HEADER_NBYTES = 16
SYNC = b"\xf7P"
HEADER = struct.Struct("<2sBBIIII")  # followed by a CRC-32 of these 20 bytes
HEADER_NBYTES = 24
TRAILER = struct.Struct("<QI4s")
TRAILER_MAGIC = b"FPAE"
BASES_OF_BUNDLE = struct.Struct("<QQ")  # the offsets of the bases of TABLES and ROWS; 0: none

MEMBER, PARTS, TABLES, ROWS, END, INDEX, NUMBERS, PAGE, BASES, SHARED, BUNDLE, FORGET = range(1, 13)
NAMES = {
    MEMBER: "the head of a profile",
    PARTS: "a section of parts",
    TABLES: "a section of tables",
    ROWS: "a chunk of rows",
    END: "the end of a profile",
    INDEX: "the index",
    NUMBERS: "a section of numbers",
    PAGE: "a page of the index",
    BASES: "the bases",
    SHARED: "a section of shared tables",
    BUNDLE: "the bundle of a profile",
    FORGET: "an end of stacks",
}
OPTIONAL, ZSTD, BASED, METADATA, WITHOUT_MAGIC, DIFFERENCE = 1, 2, 4, 8, 32, 64
_FLAGS = OPTIONAL | ZSTD | BASED | METADATA | WITHOUT_MAGIC | DIFFERENCE
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MAX_NUMBER = 0xFFFFFFFF  # of a member
MAX_RAW = 256 << 20  # maximum bytes of a decompressed payload
# (maximum bytes, minimum compression level) of a payload that is compressed with a base.  Level 19 takes twice the time
# of 16 and is not smaller here.
BASED_LEVELS = ((4 << 20, 16), (MAX_RAW, 9))
# Of each of zstandard's tables, for a payload and for its base, as an exponent of 2.  Without this limit a few large
# payloads take 0.2 to 0.7 % less, and 40 MiB more memory.
MOST_ENTRIES = 20
SMALL = 128 << 10  # a payload below this is compressed at level 19 or more
# Of metadata, with the dictionary.  Level 19 takes five times as long for small sections, which do not become smaller,
# and 50 times for pages of the index, which become 0.5 to 6 % smaller.
METADATA_LEVEL = 7
BUNDLE_LEVEL = 19
LONG_DISTANCE_LEVEL = 6  # from this level on zstandard's long-distance matching is used
MAX_EXPANSION = 1 << 16  # maximum bytes that a byte of zstandard data expands to
# Metadata becomes much larger as Python objects, so its limit is lower beyond the first bytes.
METADATA_FREE, METADATA_EXPANSION = 1 << 20, 256
# An empty list takes one byte, so the stored bytes limit the memory for lists.
METADATA_ROOM, METADATA_ROOM_PER_BYTE = 64 << 20, 1024

_INDEX_ENTRY = [str, int, bytes, [int], [[int, [int], [int], [int]]], {}]
_LONG_SUMMARY = 1000  # bytes from which the index has only the origin of a profile
_END = {
    "kinds": [int],
    "calls": int,
    "totals": [int],
    "overflowed": bool,
    "counts": [int],
    "functions": int,
    "threads": [[int, int, int]],
    "inputs": [[int, str, [[int, bytes]], [[int, int, bytes]]]],
    "facts": {},
    "repairs": {str: int},
    "losses": {str: int},
}

# Fields of a MEMBER section about the file that a profile was added from: format, bytes, modification time, in
# nanoseconds since 1970, and the labels that it was given.
SOURCE = {"format": str, "nbytes": int, "mtime": int, "labels": {str: str}}
# What the index has of a profile in addition: names of value types, fields of END.
_SUMMARY = {
    **SOURCE,
    "values": [str],
    **{name: _END[name] for name in ("totals", "facts", "repairs", "losses")},
    "long": bool,  # only the origin is here
}


class SectionError(ValueError):
    """A damaged section.  `offset` is absolute; `truncated`: the file ends inside it."""

    def __init__(self, offset: int, detail: str | Message, truncated: bool = False) -> None:
        super().__init__(detail)
        self.offset = offset
        self.detail = detail
        self.truncated = truncated


class VersionError(SectionError):
    """An archive in another version of the format."""


class Section(NamedTuple):
    """A section's header.  `nbytes` is the length of the section in the file, header included."""

    offset: int
    type: int
    flags: int
    member: int
    stored: int
    raw: int
    crc: int

    @property
    def nbytes(self) -> int:
        return HEADER_NBYTES + self.stored


def file_header() -> bytes:
    head = MAGIC + struct.pack("<HH", VERSION, 0)
    return head + struct.pack("<I", zlib.crc32(head))


def check_file_header(data: bytes) -> None:
    """Errors: SectionError, VersionError."""
    if len(data) < FILE_HEADER_NBYTES:
        what = "the file ends inside its header" if data else "the file is empty"
        raise SectionError(len(data), what, truncated=True)
    if data[:8] != MAGIC:
        raise SectionError(0, f"magic is {hexdump(data[:8])}, expected {hexdump(MAGIC)}")
    if struct.unpack_from("<I", data, 12)[0] != zlib.crc32(data[:12]):
        raise SectionError(12, "checksum of the file header does not match")
    (major,) = struct.unpack_from("<H", data, 8)
    if major != VERSION:
        raise VersionError(8, f"archive version is {major}, this fastprof reads version {VERSION}")


def parse_header(data: bytes, offset: int) -> Section:
    """The header at the beginning of `data`.  Errors: SectionError."""
    if len(data) < HEADER_NBYTES:
        raise SectionError(offset, "the file ends inside a section's header", truncated=True)
    sync, type_, flags, member, stored, raw, crc = HEADER.unpack_from(data)
    if sync != SYNC or struct.unpack_from("<I", data, 20)[0] != zlib.crc32(data[:20]):
        raise SectionError(offset, "section header does not match its checksum")
    section = Section(offset, type_, flags, member, stored, raw, crc)
    if raw > MAX_RAW or raw > stored * MAX_EXPANSION or not _plausible(type_, raw, stored):
        raise SectionError(offset, f"section of {stored} bytes claims {raw} bytes, more than it can expand to")
    return section


def _plausible(type_: int, raw: int, stored: int) -> bool:
    if type_ == BUNDLE:  # many others may have it as their base
        return raw <= METADATA_FREE
    return type_ in (TABLES, ROWS, SHARED) or raw <= max(METADATA_FREE, stored * METADATA_EXPANSION)


def with_header(section: Section, member: int, stored: bytes) -> bytes:
    """A section with the header of `section`, but another member and these stored bytes."""
    head = HEADER.pack(SYNC, section.type, section.flags, member, len(stored), section.raw, zlib.crc32(stored))
    return head + struct.pack("<I", zlib.crc32(head)) + stored


def check_stored(section: Section, stored: bytes) -> None:
    """Errors: SectionError if these are not the stored bytes of the section."""
    offset = section.offset + HEADER_NBYTES
    if len(stored) < section.stored:
        raise SectionError(offset + len(stored), "the file ends inside a section", truncated=True)
    if zlib.crc32(stored) != section.crc:
        raise SectionError(offset, "section does not match its checksum")


def trailer(index_offset: int) -> bytes:
    """The last 16 bytes of an archive."""
    offset = struct.pack("<Q", index_offset)
    return offset + struct.pack("<I4s", zlib.crc32(offset), TRAILER_MAGIC)


def view_of_chunk(raw: bytes) -> str:
    """The view of a ROWS payload, or "" if it names none."""
    return {1: "timeline", 2: "stacks", 3: "graph"}.get(raw[0] if raw else 0, "")


def parse_index_offset(trailer: bytes) -> int | None:
    """The offset of the index, or None if `trailer` is not a valid trailer."""
    if len(trailer) != TRAILER.size:
        return None
    offset, crc, magic = TRAILER.unpack(trailer)
    return offset if magic == TRAILER_MAGIC and crc == zlib.crc32(trailer[:8]) else None


def _dictionary(base: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


class Codec:
    """Compresses and decompresses payloads.

    A payload may be stored as its difference to another payload, its base.  `base_of` returns the decompressed payload
    of the base at an offset.
    """

    def __init__(self, level: int = 3, base_of: Callable[[int], bytes] | None = None) -> None:
        self.level = level
        self._base_of = base_of
        self._decompressors: dict[bytes, zstandard.ZstdDecompressor] = {}  # by dictionary: without one, and of metadata
        # After TABLES that were stored as a difference, for the following ROWS: by stack id the base's id of the same
        # stack, or 0; u32.  Of functions, if there are no stacks.
        self._stacks = b""

    def _compress(self, raw: bytes, base: bytes, least_level: int = 0, *, long_distance: bool = True) -> bytes:
        # The window covers the payload and its base: no match is further away.
        level = max(self.level, least_level)
        chosen = {
            "window_log": max(10, min(28, (len(raw) + len(base)).bit_length())),
            "write_content_size": 0,
            "enable_ldm": 1 if long_distance and (base or level >= LONG_DISTANCE_LEVEL) else 0,
        }
        parameters = zstandard.ZstdCompressionParameters.from_level(level, **chosen)
        if base and chosen["window_log"] > MOST_ENTRIES:
            chosen |= {name: min(getattr(parameters, name), MOST_ENTRIES) for name in ("hash_log", "chain_log")}
            parameters = zstandard.ZstdCompressionParameters.from_level(level, **chosen)
        dictionary = _dictionary(base) if base else None
        packed: bytes = zstandard.ZstdCompressor(dict_data=dictionary, compression_params=parameters).compress(raw)
        return packed[len(ZSTD_MAGIC) :]

    def pack(self, type_: int, member: int, raw: bytes, flags: int = 0, base: tuple[int, bytes] | None = None) -> bytes:
        """A whole section.  `base` is the (offset, payload) of a section that may be similar."""
        if len(raw) > MAX_RAW:
            raise SectionError(0, f"a payload has {len(raw)} bytes, the limit is {MAX_RAW}")
        found = [(raw, len(raw), 0)]  # stored bytes, decompressed length, flags

        def enough(share: int = 8) -> bool:
            """Whether another attempt does not pay: compression takes most of the time of an addition."""
            return min(len(data) for data, _, _ in found) <= len(raw) // share

        if type_ not in (TABLES, ROWS, SHARED):
            packed = self._compress(raw, DICTIONARY, METADATA_LEVEL, long_distance=False)
            if _plausible(type_, len(raw), len(packed)):
                found.append((packed, len(raw), ZSTD | METADATA))
        else:
            if base is not None and base[1]:
                offset = struct.pack("<Q", base[0])
                least = next(level for most, level in BASED_LEVELS if len(raw) <= most)
                difference = self.difference(type_, base[1], raw)
                if difference:
                    packed = self._compress(difference, b"", least)
                    found.append((offset + packed, len(difference), ZSTD | BASED | DIFFERENCE))
                if not enough(3 if difference else 8):
                    found.append((offset + self._compress(raw, base[1], least), len(raw), ZSTD | BASED))
            if not enough(3 if len(found) == 2 and found[-1][2] & DIFFERENCE else 8):
                found.append((self._compress(raw, b"", 19 if len(raw) < SMALL else 0), len(raw), ZSTD))
        stored, nbytes, how = min(found, key=lambda one: len(one[0]))
        how |= WITHOUT_MAGIC if how & ZSTD else 0
        if type_ == TABLES and not how & DIFFERENCE:
            self._stacks = b""
        return with_header(Section(0, type_, flags | how, member, len(stored), nbytes, 0), member, stored)

    def pack_bundle(self, member: int, raw: bytes, other: tuple[int, bytes] | None = None) -> bytes:
        """A whole section, compressed with the bundle `other` (offset, payload) if that has the same bases."""
        n, flags, stored, dictionary = BASES_OF_BUNDLE.size, 0, b"", DICTIONARY
        if other is not None and other[1][:n] == raw[:n]:
            flags, stored, dictionary, raw = BASED, struct.pack("<Q", other[0]), DICTIONARY + other[1][n:], raw[n:]
        stored += self._compress(raw, dictionary, BUNDLE_LEVEL, long_distance=False)
        flags |= ZSTD | METADATA | WITHOUT_MAGIC
        return with_header(Section(0, BUNDLE, flags, member, len(stored), len(raw), 0), member, stored)

    def unpack(self, section: Section, stored: bytes) -> bytes:
        """The payload.  Errors: SectionError."""
        check_stored(section, stored)
        offset = section.offset + HEADER_NBYTES
        if section.type == TABLES:
            self._stacks = b""
        if section.flags & ~_FLAGS:
            raise VersionError(
                section.offset, f"section has the unknown flags {section.flags & ~_FLAGS:#x}, of another version"
            )
        how = section.flags & (ZSTD | BASED | METADATA | DIFFERENCE)
        if how & DIFFERENCE and (section.type not in (TABLES, ROWS) or how != ZSTD | BASED | DIFFERENCE):
            raise SectionError(section.offset, "section has wrong flags")
        if not how & ZSTD:
            if how & BASED or section.raw != section.stored:
                raise SectionError(section.offset, "stored section has wrong lengths or flags")
            return bytes(stored)
        base, bases = b"", b""
        if section.flags & BASED:
            if len(stored) < 8 or self._base_of is None:
                raise SectionError(offset, "the base that the section refers to is missing")
            base = self._base_of(struct.unpack_from("<Q", stored)[0])
            stored = stored[8:]
        if section.type == BUNDLE:
            bases, base = base[: BASES_OF_BUNDLE.size], base[BASES_OF_BUNDLE.size :]
        dictionary = b"" if section.flags & DIFFERENCE else base
        if section.flags & METADATA:
            dictionary = DICTIONARY + dictionary
        raw = self._decompressed(section, stored, dictionary)
        if section.flags & DIFFERENCE:
            return self._applied(section.type, base, raw, offset)
        return bases + raw

    def _decompressor(self, dictionary: bytes) -> zstandard.ZstdDecompressor:
        is_usual = dictionary in (b"", DICTIONARY)
        if is_usual and dictionary in self._decompressors:
            return self._decompressors[dictionary]
        known = _dictionary(dictionary) if dictionary else None
        made = zstandard.ZstdDecompressor(dict_data=known, max_window_size=1 << 31)
        if is_usual:
            self._decompressors[dictionary] = made
        return made

    def _decompressed(self, section: Section, stored: bytes, dictionary: bytes) -> bytes:
        offset, decompressor = section.offset + HEADER_NBYTES, self._decompressor(dictionary)
        if section.flags & WITHOUT_MAGIC:
            stored = ZSTD_MAGIC + stored
        try:
            stated = zstandard.frame_content_size(stored)
            if stated not in (-1, section.raw):
                raise SectionError(offset, f"zstandard frame claims {stated} bytes, the section {section.raw}")
            raw: bytes = decompressor.decompress(stored, max_output_size=max(section.raw, 1))
        except zstandard.ZstdError as error:
            raise SectionError(offset, f"zstandard: {error}") from None
        if len(raw) != section.raw:
            raise SectionError(offset, f"section decompresses to {len(raw)} bytes, expected {section.raw}")
        return raw

    def restore(self, section: Section, stored: bytes, base: int) -> bytes:
        """The payload of a section in a bundle, whose base is at this offset; 0: none.  Errors: SectionError."""
        if section.type == TABLES:
            self._stacks = b""
        if not base:
            return stored
        if self._base_of is None:
            raise SectionError(section.offset, "the base that the section refers to is missing")
        return self._applied(section.type, self._base_of(base), stored, section.offset + HEADER_NBYTES)

    def difference(self, type_: int, base: bytes, raw: bytes) -> bytes:
        """The difference of a payload of TABLES or ROWS to its base, or b"" if they are not alike."""
        known, self._stacks = self._stacks, b""
        status, found = _compare(type_, base, raw, known)
        if status != lib.FP_DONE or not found[0] or len(found[0]) > MAX_RAW:
            return b""
        status, again = _compare(type_, base, found[0], known, undo=True)
        if status or again[0] != raw:
            return b""
        self._stacks = found[1]
        return found[0]

    def _applied(self, type_: int, base: bytes, difference: bytes, offset: int) -> bytes:
        """The payload that has this difference to the base.  Errors: SectionError."""
        known, self._stacks = self._stacks, b""
        status, (raw, self._stacks) = _compare(type_, base, difference, known, undo=True)
        if status:
            raise SectionError(offset, "section does not fit the base it refers to")
        return raw


def _compare(type_: int, base: bytes, own: bytes, stacks: bytes, undo: bool = False) -> tuple[int, tuple[bytes, bytes]]:
    """The status, then the difference of TABLES or ROWS to their base, or with `undo` the payload of a difference,
    and of TABLES the `stacks` of ROWS."""
    out, found = (owned(ffi.new("struct fp_buf *"), "a difference") for _ in range(2))
    if type_ == TABLES:
        tables = lib.fp_archive_tables_undiff if undo else lib.fp_archive_tables_diff
        status = tables(base, len(base), own, len(own), out, found)
    else:
        rows = lib.fp_archive_undiff if undo else lib.fp_archive_diff
        known = ffi.from_buffer("uint32_t[]", stacks) if stacks else ffi.NULL
        status = rows(base, len(base), own, len(own), known, len(stacks) // 4, out)
    if status == lib.FP_E_NOMEM:
        raise MemoryError("no memory for a difference")
    return status, (bytes(ffi.buffer(out.p, out.n)), bytes(ffi.buffer(found.p, found.n)))


def unpack_metadata(section: Section, raw: bytes, kind: type[T]) -> T:
    """The CBOR value of a payload, which must be a `kind`.  Errors: SectionError."""
    try:
        value = archive_cbor.loads(raw, METADATA_ROOM + METADATA_ROOM_PER_BYTE * section.stored)
    except archive_cbor.CborError as error:
        raise SectionError(section.offset + HEADER_NBYTES, f"metadata: {error}") from None
    if not isinstance(value, kind):
        raise SectionError(section.offset + HEADER_NBYTES, f"metadata is not a {kind.__name__}")
    return value


def unpack_end(section: Section, raw: bytes) -> dict[str, Any]:
    """The content of an END section.  Errors: SectionError."""
    end: dict[str, Any] = unpack_metadata(section, raw, dict)
    for name, value in end.items():
        if not fits({name: value}, _END):
            raise SectionError(section.offset, f"summary: {name!r} is {value!r:.80}")
    return end


class Chunk(NamedTuple):
    """The index entry of a ROWS section, which determines whether the section is read."""

    offset: int
    rows: int = 0
    parts: Sequence[int] = ()
    times: tuple[int, int] | None = None
    threads: Sequence[int] = ()


class Member:
    """One profile of an archive.  `sections` are (offset, type, bytes) in file order, `chunks` are by offset."""

    def __init__(self, number: int, name: str = "", view: str = "") -> None:
        self.number = number
        self.name = name
        self.view = view
        self.sections: list[tuple[int, int, int]] = []
        self.chunks: dict[int, Chunk] = {}
        self.about: dict[str, Any] = {}  # its origin, see SOURCE
        self.summary: dict[str, Any] = {"long": True}  # what the index has of it in addition, see _SUMMARY
        self.end: dict[str, Any] | None = None  # the content of its END section, once that is read

    @property
    def rows(self) -> int:
        return sum(chunk.rows for chunk in self.chunks.values())

    def summarize(self, end: dict[str, Any], values: list[str]) -> None:
        """Note what the index has of END and of the names of value types."""
        found = {name: value for name, value in (("values", values), *end.items()) if value and name in _SUMMARY}
        self.end, self.about = end, {name: self.about[name] for name in SOURCE if name in self.about}
        is_long = len(archive_cbor.dumps(found)) > _LONG_SUMMARY
        self.summary = {"long": True} if is_long else found

    def to_entry(self) -> bytes:
        """The index entry of this member.  Its sections are contiguous, so the first offset and the sizes suffice."""
        chunks = self.chunks.values()
        return archive_cbor.dumps(
            [
                self.view,
                self.sections[0][0],
                bytes(type_ for _, type_, _ in self.sections),
                [nbytes for _, _, nbytes in self.sections],
                [[c.rows, [*c.parts], [*c.times] if c.times else [], [*c.threads]] for c in chunks],
                {**self.about, **self.summary},
            ]
        )

    @staticmethod
    def from_entry(number: int, name: str, data: bytes, end: int, stored: int) -> Member:
        """The member of an index entry, whose sections end before `end`; its page has `stored` bytes in the file.

        Errors: ValueError for an entry that to_entry cannot return.
        """
        entry = archive_cbor.loads(data, METADATA_ROOM + METADATA_ROOM_PER_BYTE * stored)
        if not isinstance(entry, list) or not fits(entry, _INDEX_ENTRY) or not fits(entry[-1], _SUMMARY):
            raise ValueError("an entry does not describe a profile")
        view, offset, types, sizes, chunks, summary = entry
        member = Member(number, name, view)
        member.about = {key: value for key, value in summary.items() if key in SOURCE}
        member.summary = {key: value for key, value in summary.items() if key not in SOURCE}
        if BUNDLE in types and len(types) > 1:
            raise ValueError("a profile has other sections in addition to a bundle")
        left = list(reversed(chunks))
        for type_, nbytes in zip(types, sizes, strict=True):
            if offset < FILE_HEADER_NBYTES or nbytes < HEADER_NBYTES or offset + nbytes > end:
                raise ValueError(f"section at byte {offset} with {nbytes} bytes is outside the profiles")
            member.sections.append((offset, type_, nbytes))
            if type_ in (ROWS, BUNDLE):
                if not left:
                    raise ValueError("a chunk of rows has no description")
                rows, parts, times, threads = left.pop()
                if len(times) not in (0, 2):
                    raise ValueError(f"a chunk has {len(times)} times, expected none or 2")
                member.chunks[offset] = Chunk(offset, rows, parts, (times[0], times[1]) if times else None, threads)
            offset += nbytes
        if left or (types[-1:] != bytes((END,)) and types != bytes((BUNDLE,))):
            raise ValueError("a profile has no end section")
        return member


def scan(read_at: Callable[[int, int], bytes], start: int, size: int) -> Iterator[Section | SectionError]:
    """The sections from `start` to `size` by their headers.

    Bytes that are not a section are skipped and yielded as a SectionError.
    """
    at = start
    while at < size:
        try:
            section = parse_header(read_at(at, HEADER_NBYTES), at)
        except SectionError as error:
            if parse_index_offset(read_at(at, TRAILER.size)) is not None:
                at += TRAILER.size
                continue
            found = _search(read_at, at + 1, size)
            yield SectionError(at, f"{error.detail}; {found - at} bytes skipped", error.truncated or found == size)
            at = found
            continue
        if section.nbytes > size - at:
            name = NAMES.get(section.type, "a section of an unknown type")
            yield SectionError(at, f"the file ends inside {name} of {section.nbytes} bytes", truncated=True)
            # possibly only the length is damaged and intact sections follow
            at = _search(read_at, at + 1, size)
            continue
        yield section
        at += section.nbytes


def _search(read_at: Callable[[int, int], bytes], at: int, size: int) -> int:
    """The next offset with a valid section header, or `size`."""
    step = 1 << 10  # small at first: there may be many damaged places
    while at < size:
        block = read_at(at, step + HEADER_NBYTES)
        found = -1
        while (found := block.find(SYNC, found + 1)) >= 0 and found < step:
            try:
                parse_header(block[found : found + HEADER_NBYTES], at + found)
                return at + found
            except SectionError:
                continue
        at += step
        step = min(2 * step, 1 << 20)
    return size
