"""One ELF object with its debug information: which function and line are at a link-time address.

DWARF is read by symbolic (one SymCache per object, built at the first question), ELF structure by pyelftools;
both are imported when the first file is opened, so importing this module is cheap.

Peculiarities of symbolic, and what is done about them here:

* Its addresses are relative to the p_vaddr of the first PT_LOAD, so that is subtracted before asking.
* Between two functions it answers with the one before, however far away.  An answer with neither file nor line is not
  used; the symbol table, which has sizes, is asked instead.
* For a function in two pieces it gives both the name `f.cold`.  So the outermost name is taken from the symbol table
  wherever that covers the address, as llvm-symbolizer does.
* It knows neither declaration lines nor the entry addresses of inlined functions.
* It drops lines outside of functions; fastprof.symbols.dwarf reads those.
* It joins file names with the compilation directory and removes `..` steps (llvm-symbolizer leaves them in).
"""

from __future__ import annotations

import bisect
import itertools
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Sequence

from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.errors import SymbolError
from fastprof.symbols.demangle import demangle
from fastprof.symbols.dwarf import LineTables

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

    from fastprof.symbols.demangle import Demangle

DEBUG_DIRS = ("/usr/lib/debug",)
_SYMBOL_KINDS = frozenset((0, 1, 2, 10))  # NOTYPE (assembly), OBJECT, FUNC, GNU_IFUNC
_DWO_NAME_GNU = (b"\xb0\x42\x08", b"\xb0\x42\x0e")  # DW_AT_GNU_dwo_name as string / strp in an abbreviation
_UNIT_SKELETON = 4
_NO_ADDRESS = 0xFFFFFFFF


class Symbol(NamedTuple):
    """One function at an address; an inline chain is a tuple of these, innermost first.

    Lines count from 1, 0 is unknown. `start_line` is the line of the function's first instruction, 0 for an
    inlined function. `file` is "" when unknown, else the compilation directory joined with the file's name.
    """

    name: str
    system_name: str
    file: str = ""
    line: int = 0
    start_line: int = 0


class Segment(NamedTuple):
    """A PT_LOAD program header; sizes in bytes."""

    address: int
    offset: int
    file_size: int
    memory_size: int
    executable: bool


class Section(NamedTuple):
    """A section header; `offset` and `size` as in the file (compressed size for compressed sections)."""

    number: int
    name: str
    kind: str
    address: int
    offset: int
    size: int


class ElfObject:
    """One ELF file, its separate debug file if there is one, and the answer to "what is at this address".

    Never raises for a file that is missing, not ELF or damaged: `reason` says why nothing can be resolved ("" when
    something can). After the first lookup `note` says which debug information cannot be read. `refused` are the names
    so far that would take too much to demangle.
    `expect_build_id` (hex) refuses a file with another build id. `debug_dirs` hold
    `.build-id/xx/yyyy.debug` trees; `sysroot` is put before them as well.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        debug_dirs: Sequence[str] = DEBUG_DIRS,
        sysroot: str = "",
        demangle: Demangle = "full",
        expect_build_id: str = "",
    ) -> None:
        self.path = os.fspath(path)
        self.build_id = ""
        self.machine = ""
        self.bits = 0
        self.endian = ""
        self.kind = ""
        self.interpreted = False
        self.segments: tuple[Segment, ...] = ()
        self._debug_dirs = [*([sysroot + d for d in debug_dirs] if sysroot else ()), *debug_dirs]
        self._demangle = demangle
        self._elf: ELFFile | None = None
        self._bytes: mmap.mmap | bytes = b""
        self._debug: ElfObject | None = None
        self._symcache: Any = None
        self._lines: LineTables | None = None
        self._loaded = False
        self._external = ""
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._names: list[bytes] = []
        self._start_lines: dict[int, int] = {}
        self.note = ""
        self.refused: set[str] = set()
        self.reason = self._open()
        if not self.reason and expect_build_id and self.build_id and self.build_id != expect_build_id:
            self.reason = f"wrong build id: the file has {self.build_id}, the profile {expect_build_id}"

    def _open(self) -> str:
        try:
            with open(self.path, "rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            return error.strerror or "cannot be read"
        except ValueError:
            return "empty file"
        if self._bytes[:4] != b"\x7fELF":
            return "not an ELF file"
        from elftools.elf.elffile import ELFFile

        stream: Any = self._bytes
        try:
            self._elf = elf = ELFFile(stream)
            self.machine, self.kind = str(elf["e_machine"]), str(elf["e_type"])
            self.bits, self.endian = elf.elfclass, "little" if elf.little_endian else "big"
            segments = []
            for segment in elf.iter_segments():
                if segment["p_type"] == "PT_LOAD":
                    numbers = (segment["p_vaddr"], segment["p_offset"], segment["p_filesz"], segment["p_memsz"])
                    segments.append(Segment(*numbers, bool(segment["p_flags"] & 1)))
                self.interpreted |= segment["p_type"] == "PT_INTERP"
            self.segments = tuple(segments)
            self.build_id = self._find_build_id(elf)
        except Exception as error:  # pyelftools raises errors of many kinds for damaged files
            self._elf = None
            return f"damaged ELF file: {error}"
        return ""

    @staticmethod
    def _find_build_id(elf: ELFFile) -> str:
        for part in itertools.chain(elf.iter_segments(), elf.iter_sections()):
            if hasattr(part, "iter_notes"):
                for note in part.iter_notes():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        return str(note["n_desc"])
        return ""

    # ---- structure

    def sections(self) -> Iterator[Section]:
        """All sections in file order. Errors: SymbolError when the section headers are damaged."""
        if self._elf is None:
            return
        try:
            for index, section in enumerate(self._elf.iter_sections()):
                header = (section["sh_addr"], section["sh_offset"], section["sh_size"])
                yield Section(index, section.name, str(section["sh_type"]), *header)
        except Exception as error:
            raise SymbolError(f"{self.path}: damaged section headers: {error}") from error

    def section(self, name: str) -> Section | None:
        """The first section of that name, or None."""
        return next((section for section in self.sections() if section.name == name), None)

    def data(self, section: Section) -> bytes:
        """The bytes of a section, decompressed; b"" for one that takes no room in the file.

        Errors: SymbolError when the section reaches past the end of the file or does not decompress.
        """
        assert self._elf is not None
        if section.kind == "SHT_NOBITS":
            return b""
        where = f"{self.path}: section {section.name} at byte {section.offset}"
        if section.offset + section.size > len(self._bytes):
            raise SymbolError(f"{where}: {section.size} bytes reach past the end of the file ({len(self._bytes)})")
        try:
            return bytes(self._elf.get_section(section.number).data())
        except Exception as error:
            raise SymbolError(f"{where}: damaged: {error}") from error

    def file_to_link(self, file_offset: int) -> int | None:
        """The link-time address of a byte of the file, or None if it is in no PT_LOAD segment."""
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

    def debug_path(self) -> str:
        """The path of its separate debug file; "" for none, and for an object that has debug information itself."""
        if not self._loaded:
            self._load()
        return self._debug.path if self._debug else ""

    # ---- symbols

    def lookup(self, link_address: int) -> tuple[Symbol, ...]:
        """The inline chain at a link-time address, innermost first; () when unknown."""
        return self.lookup_many((link_address,))[0]

    def lookup_many(self, addresses: Sequence[int]) -> list[tuple[Symbol, ...]]:
        """`lookup` for many addresses, in their order.  If llvm-symbolizer is needed, it is run once for all."""
        if not self._loaded:
            self._load()
        if self._external:
            return self._ask_llvm_symbolizer(addresses)
        return [self._lookup(address) for address in addresses]

    def _lookup(self, address: int) -> tuple[Symbol, ...]:
        found = self._find_symbol(address)
        frames = self._frames(address)
        if not frames:
            if found is None:
                return ()
            file, line = self._plain_line(address)
            return (self._symbol(found[0], file, line, self._plain_line(found[1])[1] if line else 0),)
        chain = [self._symbol(frame.symbol, frame.full_path or "", frame.line) for frame in frames[:-1]]
        last = frames[-1]
        name = found[0] if found else last.symbol
        start_line = self._start_line(last.sym_addr)
        chain.append(self._symbol(name, last.full_path or "", last.line, start_line))
        return tuple(chain)

    def _symbol(self, name: str, file: str = "", line: int = 0, start_line: int = 0) -> Symbol:
        return Symbol(demangle(name, self._demangle, self.refused), name, file, line, start_line)

    def _frames(self, address: int) -> list[Any]:
        """symbolic's answer if it comes from DWARF, else []."""
        source = self._debug or self
        relative = address - (source.segments[0].address if source.segments else 0)
        if self._symcache is None or not 0 <= relative < _NO_ADDRESS:
            return []
        frames: list[Any] = self._symcache.lookup(relative)
        return frames if any(frame.line or frame.full_path for frame in frames) else []

    def _start_line(self, entry: int) -> int:
        """Line of the first instruction of the function that starts at `entry` (relative, as symbolic has it)."""
        if entry == _NO_ADDRESS:
            return 0
        if entry not in self._start_lines:
            frames = self._symcache.lookup(entry)
            self._start_lines[entry] = frames[-1].line if frames else 0
        return self._start_lines[entry]

    def _plain_line(self, address: int) -> tuple[str, int]:
        """File and line of an address outside of DWARF functions, ("", 0) when unknown."""
        if self._symcache is None:
            return "", 0
        if self._lines is None:
            elf: Any = (self._debug or self)._elf
            self._lines = LineTables(elf)
        return self._lines.find(address) or ("", 0)

    def extent(self, address: int) -> tuple[int, int] | None:
        """First address of the function around a link-time address, and the one behind it; None when unknown."""
        if not self._loaded:
            self._load()
        at = bisect.bisect_right(self._starts, address) - 1
        return (self._starts[at], self._ends[at]) if at >= 0 and address < self._ends[at] else None

    def _find_symbol(self, address: int) -> tuple[str, int] | None:
        at = bisect.bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        sized = self._ends[at] > self._starts[at]  # a symbol without size (assembly) reaches to the next one
        if address >= self._ends[at] if sized else not self.is_loaded(address):
            return None
        return self._names[at].decode("utf-8", "replace"), self._starts[at]

    def _load(self) -> None:
        """Find debug information and read the symbol table, once."""
        self._loaded = True
        if self.reason:
            return
        try:
            if not self._has_dwarf():
                self._debug = self._find_debug_file()
            tables = ((self, ".symtab"), (self._debug, ".symtab"), (self, ".gnu_debugdata"), (self, ".dynsym"))
            for source, table in tables:
                if source is not None and source._read_symbols(table):
                    self._starts, self._ends, self._names = source._starts, source._ends, source._names
                    break
            source = self._debug or self
            self.note = source._alternate()
            if source._has_dwarf():
                split = source._has_split_dwarf()
                if split:
                    import shutil

                    self._external = shutil.which("llvm-symbolizer") or ""
                if split and not self._external:
                    self.note = "its debug information is in .dwo files, and there is no llvm-symbolizer to read them"
                if not self._external:
                    self._build_symcache(source.path)
            if not self._starts and self._symcache is None and not self._external:
                self.reason = "stripped: neither symbols nor debug information"
        except SymbolError as error:
            self.reason = str(error).removeprefix(f"{self.path}: ")

    def _build_symcache(self, path: str) -> None:
        from symbolic.debuginfo import Archive
        from symbolic.exceptions import SymbolicError

        try:
            self._symcache = next(Archive.open(os.fsencode(path)).iter_objects()).make_symcache()
        except (SymbolicError, StopIteration) as error:
            if not self._starts:
                self.reason = f"debug information cannot be read: {error}"

    def _alternate(self) -> str:
        """What cannot be read because dwz has moved it into another file; "" for nothing."""
        link = self.section(".gnu_debugaltlink")
        if link is None:
            return ""
        name = os.fsdecode(self.data(link).split(b"\0", 1)[0])
        return f"names of inlined functions that dwz moved to {name} are not read"

    def _has_dwarf(self) -> bool:
        names = (".debug_info", ".zdebug_info")
        return any(s.name in names and s.kind != "SHT_NOBITS" and s.size for s in self.sections())

    def _has_split_dwarf(self) -> bool:
        """Whether units point to .dwo files: skeleton units (DWARF 5) or the GNU attribute (DWARF 4)."""
        order = "<" if self.endian == "little" else ">"
        info, abbreviations = self.section(".debug_info"), self.section(".debug_abbrev")
        if info is None or abbreviations is None:
            return False
        if any(mark in self.data(abbreviations) for mark in _DWO_NAME_GNU):
            return True
        data, at = self.data(info), 0
        while at + 16 <= len(data):
            (size,) = struct.unpack_from(order + "I", data, at)
            head = 4
            if size == 0xFFFFFFFF:
                (size,) = struct.unpack_from(order + "Q", data, at + 4)
                head = 12
            version, kind = struct.unpack_from(order + "HB", data, at + head) if at + head + 3 <= len(data) else (0, 0)
            if version >= 5 and kind == _UNIT_SKELETON:
                return True
            at += head + size
        return False

    def _find_debug_file(self) -> ElfObject | None:
        for directory in self._debug_dirs if len(self.build_id) > 2 else ():
            path = os.path.join(directory, ".build-id", self.build_id[:2], self.build_id[2:] + ".debug")
            found = ElfObject(path, expect_build_id=self.build_id)
            if not found.reason:
                return found
        link = self.section(".gnu_debuglink")
        if link is None:
            return None
        data = self.data(link)
        name = os.fsdecode(data.split(b"\0", 1)[0])
        if not name or len(data) < 8:
            return None
        (crc,) = struct.unpack(("<" if self.endian == "little" else ">") + "I", data[-4:])
        here = os.path.dirname(os.path.realpath(self.path))
        for directory in (here, os.path.join(here, ".debug"), *(d + here for d in self._debug_dirs)):
            found = ElfObject(os.path.join(directory, name))
            if not found.reason and zlib.crc32(found._bytes) == crc:
                return found
        return None

    def _read_symbols(self, table: str) -> bool:
        """Fill the sorted table.  Of symbols at the same address the longest wins, then the last one in the file."""
        if table == ".gnu_debugdata":
            return self._read_mini_debug()
        symbols = self.section(table)
        strings = self.section(".strtab" if table == ".symtab" else ".dynstr")
        if symbols is None or strings is None:
            return False
        data, text = self.data(symbols), self.data(strings)
        layout = ("<" if self.endian == "little" else ">") + ("IBBHQQ" if self.bits == 64 else "IIIBBH")
        step = struct.calcsize(layout)
        arm = "ARM" in self.machine or "AARCH64" in self.machine or "RISCV" in self.machine
        best: dict[int, tuple[int, int]] = {}
        for entry in struct.iter_unpack(layout, data[: len(data) // step * step]):
            if self.bits == 64:
                name, info, _, section, address, size = entry
            else:
                name, address, size, info, _, section = entry
            if section == 0 or info & 15 not in _SYMBOL_KINDS or (arm and text[name : name + 1] == b"$"):
                continue
            if self.machine == "EM_ARM" and info & 15 == 2:
                address &= ~1  # bit 0 says Thumb
            if address not in best or size >= best[address][0]:
                best[address] = (size, name)
        self._starts = sorted(best)
        self._ends = [start + best[start][0] for start in self._starts]
        offsets = (best[start][1] for start in self._starts)
        self._names = [text[offset : max(offset, text.find(b"\0", offset))] for offset in offsets]
        return bool(best)

    def _read_mini_debug(self) -> bool:
        """Fedora's `.gnu_debugdata`: an xz-compressed ELF file with the symbols that .dynsym lacks."""
        section = self.section(".gnu_debugdata")
        if section is None:
            return False
        import lzma
        import tempfile

        try:
            inner = lzma.LZMADecompressor().decompress(self.data(section), max_length=1 << 28)
        except lzma.LZMAError:
            return False
        with tempfile.NamedTemporaryFile() as file:
            file.write(inner)
            file.flush()
            mini = ElfObject(file.name)
            found = not mini.reason and mini._read_symbols(".symtab")
        self._starts, self._ends, self._names = mini._starts, mini._ends, mini._names
        return found

    def _ask_llvm_symbolizer(self, addresses: Sequence[int]) -> list[tuple[Symbol, ...]]:
        """Ask llvm-symbolizer about all addresses at once.  Unlike symbolic it reads .dwo files."""
        import json
        import subprocess

        path = (self._debug or self).path
        command = [self._external, f"--obj={path}", "--output-style=JSON", "--no-demangle", "--inlines"]
        questions = "".join(f"{address:#x}\n" for address in addresses)
        run = subprocess.run(command, input=questions, capture_output=True, text=True, check=False)
        answers = []
        for line in run.stdout.splitlines():
            frames = (frame for frame in json.loads(line).get("Symbol", ()) if frame["FunctionName"])
            answers.append(
                tuple(self._symbol(f["FunctionName"], f["FileName"], f["Line"], f["StartLine"]) for f in frames)
            )
        if run.returncode or len(answers) != len(addresses):
            told = f"{len(answers)} of {len(addresses)} addresses: {run.stderr[:200]}"
            raise SymbolError(f"{path}: llvm-symbolizer answered {told}")
        return answers
