"""The structure of an ELF file: its header, segments, sections and build id.

```
             64-bit                             32-bit
file         e_ident 16, type, machine u16 ... phoff, shoff as words ... counts and sizes u16
segment      type, flags u32, offset, vaddr,    type u32, offset, vaddr, paddr,
             paddr, filesz, memsz, align        filesz, memsz, flags, align
section      name, type u32, flags, addr, offset, size as words, link, info u32, addralign, entsize as words
note         namesz, descsz, type u32, the name, the description, each up to a multiple of the alignment
compressed   type u32, (pad u32), size, align as words, then the data: 1 = zlib, 2 = zstandard
```
Counts that do not fit into 16 bits are in section 0.  Source: System V ABI, chapters 4 and 5.

A file that is not linked (ET_REL: a kernel module, JIT code) has no segments, and mostly no addresses.  Its sections
are placed one after the other, so that its debug file has the same places; symbols and debug sections are relocated as
by a linker (csrc/symbols/relocate.h).
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
import sys
from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import SymbolError

Bytes = mmap.mmap | bytes | memoryview

ET_REL, ET_EXEC, _ET_DYN = 1, 2, 3
SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_DYNSYM = 2, 3, 4, 7, 8, 9, 11
SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
_CODE = SHF_ALLOC | SHF_EXECINSTR
_PT_LOAD, _PT_INTERP, _PT_NOTE, _PT_GNU_EH_FRAME = 1, 3, 4, 0x6474E550
_PF_X = 1
_BUILD_ID = 3
NOT_ELF = "not an ELF file"
_IN_SECTION_0 = 0xFFFF  # a count or an index of a file with very many segments or sections
_LARGEST = 1 << 34  # bytes of a section, decompressed
_RATIO, _SMALL = 128, 64 << 20  # at most _RATIO times its stored bytes, if larger than _SMALL
_FIRST_PLACE, _PLACES = 1 << 12, 1 << 4  # where the sections of a file that is not linked begin: multiples


class Segment(NamedTuple):
    """A PT_LOAD program header; sizes in bytes."""

    address: int
    offset: int
    file_size: int
    memory_size: int
    executable: bool


class Section(NamedTuple):
    """A section header; `offset` and `size` as in the file (compressed size for compressed sections)."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int = 0
    info: int = 0
    align: int = 0


class ElfFile:
    """One ELF file.  Never raises for a file that is missing, not ELF or damaged: `reason` is then set.

    `content` is used instead of the file where it is given.
    """

    def __init__(self, path: str | os.PathLike[str], content: bytes | None = None) -> None:
        self.path = os.fspath(path)
        self.build_id = ""
        self.machine = 0  # e_machine
        self.kind = 0  # e_type
        self.bits = 0
        self.order = "<"  # for struct
        self.interpreted = False
        self.frame_header: int | None = None  # the address of .eh_frame_hdr
        self.segments: tuple[Segment, ...] = ()
        self.sections: tuple[Section, ...] = ()
        self.is_kernel = False  # a vmlinux: code in the upper half of the addresses
        self.is_module = False  # of the Linux kernel, or its debug file
        self._bytes: Bytes = b""
        self.stat: os.stat_result | None = None  # of the file when it was opened
        self.reason = self._open(content)

    def _open(self, content: bytes | None) -> str:
        try:
            if content is not None:
                self._bytes = content
            elif "\0" in self.path:
                return "file name with a NUL byte"
            elif stat.S_IFMT(os.stat(self.path).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
                return "not a file"  # opening a pipe would block
            else:
                with open(self.path, "rb") as file:
                    self.stat = os.fstat(file.fileno())
                    self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            return error.strerror or "cannot be read"
        except ValueError:
            return "empty file"
        if self._bytes[:4] != b"\x7fELF":
            return NOT_ELF
        try:
            self._read_headers()
        except SymbolError as error:
            return f"damaged ELF file: {error}"
        return ""

    def _read_headers(self) -> None:
        wide, order = self._bytes[4:5], self._bytes[5:6]
        if wide not in (b"\1", b"\2") or order not in (b"\1", b"\2"):
            found = bytes(self._bytes[4:6]).hex(" ") or "missing"
            raise SymbolError(f"class and byte order are {found}, expected 01 or 02 each")
        self.bits, self.order = (64, 32)[wide == b"\1"], "<>"[order == b"\2"]
        word = "Q" if self.bits == 64 else "I"
        ((self.kind, self.machine, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, shstrndx),) = (
            self._table("the file header", "16xHHI" + 3 * word + "IHHHHHH", 0, 1)
        )
        section = "II" + 4 * word + "II" + 2 * word
        if shoff and (shnum == 0 or shstrndx == _IN_SECTION_0 or phnum == _IN_SECTION_0):
            ((*_, size, link, info, _, _),) = self._table("section header 0", section, shoff, 1)
            shnum = shnum or size
            shstrndx = link if shstrndx == _IN_SECTION_0 else shstrndx
            phnum = info if phnum == _IN_SECTION_0 else phnum
        self._read_segments(self._table("program headers", self._segment_layout(), phoff, phnum, phentsize))
        count = shnum if shoff else 0
        self._name_sections(list(self._table("section headers", section, shoff, count, shentsize)), shstrndx)
        if self.kind == ET_REL:
            self._place_sections()
            self.is_module = self.section(".gnu.linkonce.this_module") is not None
        is_linked = self.kind in (ET_EXEC, _ET_DYN)
        self.is_kernel = is_linked and any(s.executable and s.address >> self.bits - 1 for s in self.segments)
        for one in self.sections:
            if one.kind in (SHT_SYMTAB, SHT_STRTAB, SHT_DYNSYM):
                self._check_inside(one)
        self.build_id = self.build_id or next(
            filter(None, (self._build_id_in(s.offset, s.size, 4) for s in self.sections if s.kind == SHT_NOTE)), ""
        )

    def _segment_layout(self) -> str:
        return "IIQQQQQQ" if self.bits == 64 else "IIIIIIII"

    def _table(self, what: str, layout: str, offset: int, count: int, step: int | None = None) -> Iterator[Any]:
        shape = struct.Struct(self.order + layout)
        if count and step is not None and step != shape.size:
            raise SymbolError(f"{what} are {step} bytes each, expected {shape.size}")
        end = offset + count * shape.size
        if end > len(self._bytes):
            size = len(self._bytes)
            raise SymbolError(f"{what} at byte {offset} extend to byte {end}, past the end of the file ({size})")
        return shape.iter_unpack(self._bytes[offset:end])

    def _read_segments(self, headers: Iterator[Any]) -> None:
        segments = []
        for header in headers:
            if self.bits == 64:
                kind, flags, offset, address, _, file_size, memory_size, align = header
            else:
                kind, offset, address, _, file_size, memory_size, flags, align = header
            if kind == _PT_LOAD:
                segments.append(Segment(address, offset, file_size, memory_size, bool(flags & _PF_X)))
            elif kind == _PT_NOTE and not self.build_id:
                self.build_id = self._build_id_in(offset, file_size, 8 if align == 8 else 4)
            elif kind == _PT_GNU_EH_FRAME:
                self.frame_header = address
            self.interpreted |= kind == _PT_INTERP
        self.segments = tuple(segments)

    def _name_sections(self, headers: list[Any], names: int) -> None:
        text: Bytes = b""
        if 0 < names < len(headers):
            _, kind, flags, address, offset, size, *_ = headers[names]
            text = self.data(Section("of section names", kind, flags, address, offset, size))
        self.sections = tuple(
            Section(string(text, name), kind, flags, address, offset, size, link, info, align)
            for name, kind, flags, address, offset, size, link, info, align, _ in headers
        )

    def _place_sections(self) -> None:
        at, placed = _FIRST_PLACE, []
        for section in self.sections:
            if section.flags & SHF_ALLOC and not section.address:
                section = section._replace(address=at)
                at += -(-section.size // _PLACES) * _PLACES
                if at > 1 << 62:
                    raise SymbolError(
                        f"{self._where(section)} has {section.size} bytes, more than the address space holds"
                    )
            placed.append(section)
        self.sections = tuple(placed)
        self.segments = tuple(
            Segment(s.address, s.offset, 0 if s.kind == SHT_NOBITS else s.size, s.size, bool(s.flags & SHF_EXECINSTR))
            for s in placed
            if s.flags & SHF_ALLOC
        )

    def _build_id_in(self, offset: int, size: int, align: int) -> str:
        return build_id_in(self._bytes[offset : offset + size], align, self.order)

    def module_to_link(self, at: int) -> int | None:
        """The address of byte `at` of a loaded module's code, None outside.  The kernel loads executable sections in
        their order, except those that only initialize.  Source: Linux kernel/module/main.c, __layout_sections."""
        start = 0
        for section in self.sections:
            if section.flags & _CODE != _CODE or section.name.startswith(".init"):
                continue
            start += -start % max(section.align, 1)
            if start <= at < start + section.size:
                return section.address + at - start
            start += section.size
        return None

    @property
    def nbytes(self) -> int:
        return len(self._bytes)

    @property
    def swapped(self) -> bool:
        """Whether its byte order is not this machine's."""
        return (self.order == "<") != (sys.byteorder == "little")

    def section(self, name: str) -> Section | None:
        """The first section of that name, or None."""
        return next((section for section in self.sections if section.name == name), None)

    def _where(self, section: Section) -> str:
        return f"section {section.name} at byte {section.offset}"

    def _check_inside(self, section: Section) -> None:
        if section.offset + section.size > len(self._bytes):
            past = f"{section.size} bytes extend past the end of the file ({len(self._bytes)})"
            raise SymbolError(f"{self._where(section)}: {past}")

    def data(self, section: Section | None) -> Bytes:
        """The bytes of a section, decompressed; empty for None and for a section without bytes in the file.

        Errors: SymbolError, which does not name the file, when the section reaches past the end of the file, does
        not decompress, or has relocations that cannot be applied.
        """
        if section is None or section.kind == SHT_NOBITS:
            return b""
        data = self._stored(section)
        return self._linked(section, data) if self.kind == ET_REL else data

    def _linked(self, section: Section, data: Bytes) -> Bytes:
        """A symbol table or debug section, relocated as by a linker; other sections unchanged."""
        flags = lib.FP_SYMTAB_SWAP * self.swapped | lib.FP_SYMTAB_WIDE * (self.bits == 64)
        if section.kind == SHT_SYMTAB:
            places = [s.address if s.flags & SHF_ALLOC else 0 for s in self.sections]
            table = bytearray(data)
            lib.fp_relocate_symbols(ffi.from_buffer("uint8_t[]", table), len(table), places, len(places), flags)
            return bytes(table)
        fills = next((s for s in self.sections if s.kind in (SHT_RELA, SHT_REL) and self._at(s.info) is section), None)
        symbols = self._at(fills.link) if fills else None
        if not (fills and symbols and symbols.kind == SHT_SYMTAB and section.name.startswith((".debug", ".zdebug"))):
            return data
        filled, relocations, placed = bytearray(data), self._stored(fills), self.data(symbols)
        a, b, c = (ffi.from_buffer("uint8_t[]", part) for part in (filled, relocations, placed))
        addends = fills.kind == SHT_RELA
        status = lib.fp_relocate(a, len(a), b, len(b), addends, c, len(c), self.machine, flags)
        if status:
            what = "of an unknown type" if status == lib.FP_E_VERSION else "out of range"
            raise SymbolError(f"{self._where(section)}: relocations {what}")
        return bytes(filled)

    @property
    def content(self) -> Bytes:
        """All bytes of the file."""
        return self._bytes

    def _at(self, index: int) -> Section | None:
        return self.sections[index] if index < len(self.sections) else None

    def _stored(self, section: Section) -> Bytes:
        self._check_inside(section)
        data = memoryview(self._bytes)[section.offset : section.offset + section.size]
        packed = self._packed(section, data)
        return data if packed is None else self._decompressed(section, *packed)

    def _packed(self, section: Section, data: memoryview) -> tuple[int, int, memoryview] | None:
        """Compression type, decompressed size and bytes of a section; None if it is not compressed."""
        if section.flags & SHF_COMPRESSED:
            layout = struct.Struct(self.order + ("I4xQQ" if self.bits == 64 else "III"))
            if len(data) < layout.size:
                raise SymbolError(f"{self._where(section)}: {len(data)} bytes, too few for a compressed section")
            kind, size, _ = layout.unpack_from(data)
            return self._plausible(section, kind, size, data[layout.size :])
        if section.name.startswith(".zdebug") and bytes(data[:4]) == b"ZLIB":
            return self._plausible(section, 1, int.from_bytes(data[4:12], "big"), data[12:])
        return None

    def _plausible(self, section: Section, kind: int, size: int, data: memoryview) -> tuple[int, int, memoryview]:
        if size > min(_LARGEST, max(_SMALL, _RATIO * len(data))):
            few = f"{len(data)} bytes cannot be debug information that decompresses to {size} bytes"
            raise SymbolError(f"{self._where(section)}: {few}")
        return kind, size, data

    def _decompressed(self, section: Section, kind: int, size: int, data: memoryview) -> bytes:
        try:
            if kind == 1:
                import zlib

                plain = zlib.decompressobj().decompress(data, size + 1)
            elif kind == 2:
                import zstandard

                plain = zstandard.ZstdDecompressor().stream_reader(data).read(size + 1)
            else:
                raise ValueError(f"compression type is {kind}, expected 1 or 2")
            if len(plain) != size:
                raise ValueError(f"decompressed size differs from the {size} bytes in its header")
        except Exception as error:  # each library raises its own
            raise SymbolError(f"{self._where(section)}: {error}") from error
        return plain

    def file_to_link(self, file_offset: int) -> int | None:
        """The link-time address of a byte of the file, or None outside all PT_LOAD segments."""
        for segment in self.segments:
            if segment.offset <= file_offset < segment.offset + segment.file_size:
                return segment.address + file_offset - segment.offset
        code = [segment for segment in self.segments if segment.executable]
        if code and not any(segment.file_size for segment in code) and not any(s.address % 4096 for s in code):
            # A debug file made by objcopy has empty segments. If GNU ld made the program, they begin on pages and
            # offset = address - base. With lld and gold that is not so, and the address cannot be found.
            address = self.segments[0].address + file_offset
            return address if self.is_loaded(address) else None
        return None

    def is_loaded(self, address: int) -> bool:
        """Whether a link-time address lies in a segment."""
        return any(s.address <= address < s.address + s.memory_size for s in self.segments)


def build_id_in(notes: Bytes, align: int, order: str) -> str:
    """The build id (hex) in these notes, "" for none."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(order + "III", notes, at)
        start = at + -(-(12 + name_size) // align) * align
        if kind == _BUILD_ID and notes[at + 12 : at + 12 + name_size] == b"GNU\0":
            return bytes(notes[start : start + size]).hex()
        at = start + -(-size // align) * align
    return ""


def string(text: Bytes, at: int) -> str:
    """The text from a byte up to the next NUL; "" past the end."""
    nbytes = 64
    while True:
        piece = bytes(text[at : at + nbytes])
        end = piece.find(b"\0")
        if end >= 0 or len(piece) < nbytes:
            return str(piece[: len(piece) if end < 0 else end], "utf-8", "replace")
        nbytes *= 8
