"""Debug information: files and lines of addresses, inline chains, and where functions begin (csrc/symbols/lines.h)."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, CData, NamedTuple, fp_dwarf_bytes, fp_dwarf_frame
from fastprof.core.c_memory import enough, owned

if TYPE_CHECKING:
    from fastprof.symbols.elf import ElfFile

DEEPEST = 256  # functions of a place; no compiler inlines that deep, and readers of profiles recurse
_OF_LINES = {lib.FP_DWARF_LINE: "debug_line", lib.FP_DWARF_LINE_STR: "debug_line_str"}
_OTHERS = {
    lib.FP_DWARF_STR: "debug_str",
    lib.FP_DWARF_STR_OFFSETS: "debug_str_offsets",
    lib.FP_DWARF_INFO: "debug_info",
    lib.FP_DWARF_ABBREV: "debug_abbrev",
    lib.FP_DWARF_ADDR: "debug_addr",
    lib.FP_DWARF_RANGES: "debug_ranges",
    lib.FP_DWARF_RNGLISTS: "debug_rnglists",
}


class _Sections:
    """Debug sections of a file for C, which borrows them from `c`, a struct fp_dwarf."""

    def __init__(self, elf: ElfFile, names: Mapping[int, str]) -> None:
        self._elf = elf
        self._keep: list[CData] = []
        self.c = ffi.new("struct fp_dwarf *", {"swap": elf.swapped, "address_size": elf.bits // 8})
        self.add(names)

    def add(self, names: Mapping[int, str]) -> None:
        for number, name in names.items():
            data = self._elf.data(self._elf.section(f".{name}") or self._elf.section(f".z{name}"))
            if len(data):
                self._keep.append(pointer := ffi.from_buffer("uint8_t[]", data))
                self.c.sections[number].p, self.c.sections[number].n = pointer, len(data)


def has_split_units(elf: ElfFile) -> bool:
    """Whether units have their functions in other files (.dwo).  Errors: SymbolError."""
    sections = _Sections(elf, {lib.FP_DWARF_ABBREV: "debug_abbrev"})
    return bool(lib.fp_dwarf_is_split(sections.c))


class Frame(NamedTuple):
    """A function of an inline chain: where it was at the address, or called the next inner one; `start` is the address
    of its first instruction."""

    name: str
    file: str
    line: int
    start: int


class Place(NamedTuple):
    """A function of an inline chain as profiles for compilers name it: its linkage name, the line in which it is
    declared, and the line and discriminator of the address, or of the call of the next inner one.  "" and 0 for unknown
    ones.  `is_packed`: not compiled by gcc, whose discriminators are plain numbers; LLVM packs three into one."""

    name: str
    declared: int
    line: int
    discriminator: int
    start: int
    is_packed: bool = True


class LineTables:
    """The line tables and functions of one file.  Damaged units are skipped; `damaged` is the number of line tables.

    Files are paths with the compilation directory joined and `..` removed; ("", 0) is unknown.
    Errors: SymbolError for a section that cannot be read.
    """

    def __init__(self, elf: ElfFile) -> None:
        self._sections = _Sections(elf, _OF_LINES)
        self._lines = owned(lib.fp_dwarf_lines_new(self._sections.c), "line tables")
        self._found = ffi.new("struct fp_dwarf_line *")
        self._pieces = ffi.new("struct fp_dwarf_bytes[]", 3)
        self._frames: fp_dwarf_frame | None = None
        self._files: dict[tuple[int, int], str] = {}
        self._names: dict[int, str] = {}
        self._declarations: dict[int, int] = {}

    @property
    def damaged(self) -> int:
        return int(lib.fp_dwarf_lines_stats(self._lines).damaged)

    @property
    def has_damaged_units(self) -> bool:
        """Whether units of .debug_info that were needed so far could be read only in part."""
        return bool(lib.fp_dwarf_lines_stats(self._lines).damaged_infos)

    def find(self, address: int) -> tuple[str, int]:
        """The row of an address.  The line is 0 if the compiler assigned none."""
        return self._place(self._ask(lib.fp_dwarf_lines_find, address, self._found))

    def entry(self, address: int) -> tuple[str, int, bool]:
        """The file and line of the function whose first instruction is at an address, and whether that is only its
        first statement's, which may be in an inlined function."""
        place = self._place(self._ask(lib.fp_dwarf_lines_entry, address, self._found))
        return *place, bool(place[1] and self._found.is_body)

    def chain(self, address: int) -> list[Frame]:
        """The functions at an address, innermost first; [] if no function is there."""
        frames, n = self._chain(address)
        chain = []
        for i in range(n):
            frame = frames[i]
            file, line = (
                (self._file(frame.place.unit, frame.place.file), frame.place.line) if frame.has_place else ("", 0)
            )
            chain.append(Frame(self._name(frame.function), file, line, frame.start))
        return chain

    def _chain(self, address: int) -> tuple[fp_dwarf_frame, int]:
        """Frames, and the number of those at an address."""
        if self._frames is None:
            self._frames = ffi.new("struct fp_dwarf_frame[]", lib.FP_DWARF_DEEPEST)
        n = ffi.new("uint32_t *")
        found = self._ask(lib.fp_dwarf_lines_chain, address, self._frames, lib.FP_DWARF_DEEPEST, n)
        return self._frames, int(n[0]) if found else 0

    def places(self, address: int) -> tuple[Place, ...]:
        """The functions at an address with discriminators, innermost first; () if no function is there.  Of more than
        DEEPEST the outermost one, and one without a name."""
        lib.fp_dwarf_lines_discriminate(self._lines)
        frames, n = self._chain(address)
        first = n - 1 if n > DEEPEST else 0
        found = tuple(
            Place(
                self._name(frame.function),
                self._declared(frame.function),
                frame.place.line if frame.has_place else 0,
                frame.discriminator,
                frame.start,
                not frame.of_gcc,
            )
            for frame in (frames[i] for i in range(first, n))
        )
        return (Place("", 0, 0, 0, 0, False), *found) if first else found

    def _declared(self, function: int) -> int:
        known = self._declarations.get(function)
        if known is None:
            line = ffi.new("uint32_t *")
            self._ask(lib.fp_dwarf_lines_declared, function, line)
            known = self._declarations[function] = int(line[0])
        return known

    def _name(self, function: int) -> str:
        known = self._names.get(function)
        if known is None:
            found = self._ask(lib.fp_dwarf_lines_name, function, self._pieces)
            known = str(ffi.buffer(self._pieces[0].p, self._pieces[0].n), "utf-8", "replace") if found else ""
            self._names[function] = known
        return known

    def _ask(self, question: Callable[..., int], *arguments: CData | int) -> int:
        status = question(self._lines, *arguments)
        if status == lib.FP_NEEDS:
            self._sections.add(_OTHERS)
            self._sections.c.has_all = True
            status = question(self._lines, *arguments)
        return enough(status)

    def _place(self, found: int) -> tuple[str, int]:
        return (self._file(self._found.unit, self._found.file), int(self._found.line)) if found else ("", 0)

    def _file(self, unit: int, number: int) -> str:
        known = self._files.get((unit, number))
        if known is None:
            known = _path(self._pieces) if self._ask(lib.fp_dwarf_lines_file, unit, number, self._pieces) else ""
            self._files[unit, number] = known
        return known


def _path(pieces: fp_dwarf_bytes) -> str:
    names = [str(ffi.buffer(piece.p, piece.n), "utf-8", "replace") if piece.n else "" for piece in pieces]
    return posixpath.normpath(posixpath.join(*names)) if names[-1] else ""
