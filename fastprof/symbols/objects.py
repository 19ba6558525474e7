"""One ELF object with its debug information: finds the function and line of a link-time address.

Names come from the symbol table (csrc/symbols/symtab.h); lines and inlined functions from the debug information
(csrc/symbols/lines.h, functions.h), of which only the units of requested addresses are read.  The outermost name is
taken from the symbol table wherever that covers the address, as llvm-symbolizer does.
"""

from __future__ import annotations

import os
import struct
import weakref
import zlib
from collections.abc import Sequence
from threading import RLock

from fastprof.core._c import ffi, lib
from fastprof.core._typing import fp_symtab
from fastprof.core.c_memory import owned
from fastprof.core.errors import SymbolError
from fastprof.core.messages import counted
from fastprof.symbols import kept
from fastprof.symbols.demangle import Demangle, demangle, demangle_ahead
from fastprof.symbols.dwarf import LineTables, Place, has_split_units
from fastprof.symbols.elf import ET_EXEC, ET_REL, SHF_ALLOC, SHT_NOBITS, Bytes, ElfFile, string
from fastprof.symbols.file_cache import FileCache
from fastprof.symbols.kernel import moved_kernel
from fastprof.symbols.plt import Stubs
from fastprof.symbols.symbol import Chains, Symbol

DEBUG_DIRS = ("/usr/lib/debug",)
_AT_ONCE = 1 << 12  # addresses whose names are demangled together
MAX_CACHED = 64  # objects that a process keeps for its next profile
_LIMIT = (1 << 64) - 1
_EM_ARM, _EM_AARCH64, _EM_RISCV = 40, 183, 243


class ElfObject(ElfFile):
    """One ELF file, its separate debug file if there is one, looked up by address.

    Never raises for a file that is missing, not ELF or damaged: `reason` states why nothing can be resolved ("" if
    something can). After the first lookup `note` names unreadable debug information. `refused` are the names so far
    that are too complex to demangle.
    `expect_build_id` (hex) refuses a file with another build id. `debug_dirs` hold
    `.build-id/xx/yyyy.debug` trees; `sysroot` is also put before them.  Safe to use from several threads.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        content: bytes | None = None,
        debug_dirs: Sequence[str] = DEBUG_DIRS,
        sysroot: str = "",
        demangle: Demangle = "full",
        expect_build_id: str = "",
    ) -> None:
        super().__init__(path, content)
        self._debug_dirs = [*([sysroot + d for d in debug_dirs] if sysroot else ()), *debug_dirs]
        self._demangle = demangle
        self._lock = RLock()
        self._loaded = False
        self._debug: ElfObject | None = None
        self._symbols: fp_symtab = ffi.NULL
        self._names: Bytes = b""
        self._stubs: Stubs | None = None
        self._lines: LineTables | None = None
        self._has_lines = False
        self._is_damaged = False
        self._external = ""
        self._begins: dict[int, tuple[str, int]] = {}
        self.note = ""
        self.refused: set[str] = set()
        self.chains: Chains | None = None  # see chains_of
        if not self.reason and expect_build_id and self.build_id and self.build_id != expect_build_id:
            self.reason = f"wrong build id: the file has {self.build_id}, the profile {expect_build_id}"

    # ---- queries

    def lookup(self, link_address: int) -> tuple[Symbol, ...]:
        """The inline chain at a link-time address, innermost first; () when unknown."""
        return self.lookup_many((link_address,))[0]

    def lookup_many(self, addresses: Sequence[int]) -> list[tuple[Symbol, ...]]:
        """`lookup` for many addresses, in their order.  If llvm-symbolizer is needed, it is run once for all."""
        with self._lock:
            self._load()
            if self._external:
                return self._ask_llvm_symbolizer(addresses)
            found: list[tuple[Symbol, ...]] = []
            for at in range(0, len(addresses), _AT_ONCE):
                some = addresses[at : at + _AT_ONCE]
                try:
                    chains = [self._chain(address) for address in some]
                except SymbolError as error:
                    self._drop_lines(error)
                    chains = [self._chain(address) for address in some]
                demangle_ahead({name for chain in chains for name, *_ in chain}, self._demangle)
                found += [tuple(self._symbol(*one) for one in chain) for chain in chains]
            self._remark_damage()
            return found

    def places(self, addresses: Sequence[int]) -> list[tuple[Place, ...]]:
        """The inline chains at link-time addresses as profiles for compilers name them, innermost first; () if the
        debug information, which may not be in .dwo files, has no function there."""
        with self._lock:
            self._load()
            try:
                lines = self._line_tables() if not self._external else None
                found = [lines.places(address) if lines else () for address in addresses]
            except SymbolError as error:
                self._drop_lines(error)
                found = [()] * len(addresses)
            self._remark_damage()
            return found

    def symbol_at(self, address: int) -> tuple[str, int]:
        """The name and the size of the symbol that begins at a link-time address; ("", 0) for none."""
        with self._lock:
            self._load()
            found = self._find_symbol(address)
            return (found[0], found[2] - found[1]) if found and found[1] == address else ("", 0)

    def entries(self, addresses: Sequence[int]) -> list[Symbol | None]:
        """The functions whose first instructions are at link-time addresses, in their order, with the lines where they
        begin.  None for an address without a name."""
        with self._lock:
            self._load()
            try:
                if self._external:
                    self._ask_where_begin(addresses)
                return [self._entry(address) for address in addresses]
            except SymbolError as error:
                self._drop_lines(error)
                return [self._entry(address) for address in addresses]

    def _drop_lines(self, error: SymbolError) -> None:
        """Notes a damaged section of the line tables, which is found when first needed."""
        self._lines, self._has_lines = None, False
        self._remark(f"its line tables cannot be read: {error}")

    def place_on_disk(self) -> tuple[str, bytes] | None:
        """The name and the head of the file that keeps its answers (symbols/kept.py); None: none are kept.

        None for small files, those without a build id, and those about which there is something to report.
        """
        with self._lock:
            if self.stat is None or len(self.build_id) < 16 or self.reason or self.note or self.refused:
                return None
            try:
                if not self._loaded and not self._debug and not self._has_dwarf():
                    self._debug = self._find_debug_file()
            except SymbolError:
                return None
            files = [self, self._debug] if self._debug else [self]
            if self._external or sum(one.stat.st_size for one in files if one.stat) < kept.LEAST:
                return None
            facts = [fact for one in files if one.stat for fact in kept.of_file(one.stat)]
            return f"{self.build_id[:64]}-{self._demangle}", kept.identity([self.build_id, self._demangle, *facts])

    def debug_path(self) -> str:
        """The path of its separate debug file; "" for none, and if the object itself has debug information."""
        with self._lock:
            self._load()
            return self._debug.path if self._debug else ""

    def link_address(self, address: int, start: int, offset: int) -> int | None:
        """The link-time address of a run-time address, where byte `offset` of the file was mapped at `start`.  None
        outside of the segments.

        In a program linked to a fixed address both are the same, whatever its mapping, unless that begins after the
        program: V8 maps its built-in functions once more.  The offset of a kernel's mapping is the run-time address of
        the symbol `_text`, or 0 if unknown.  A module's mapping is its code.
        """
        if self.is_kernel:
            return moved_kernel(address, offset, self.address_of)
        if self.is_module:
            return self.module_to_link(address - start + offset)
        if self.kind == ET_EXEC and start < max((s.address + s.memory_size for s in self.segments), default=0):
            return address if self.is_loaded(address) else None
        return self.file_to_link(address - start + offset)

    def link_move(self, first: int, last: int, start: int, offset: int) -> int | None:
        """The difference between the `link_address` of each address from `first` to `last` and the address itself; None
        if it may not be the same for all."""
        if self.is_kernel or self.is_module or self.kind == ET_EXEC:
            return None
        first, last = first - start + offset, last - start + offset
        for segment in self.segments:
            end = segment.offset + segment.file_size
            if segment.offset <= last and first < end:
                inside = segment.offset <= first and last < end
                return segment.address - segment.offset - start + offset if inside else None
        return None

    def relative_to_link(self, relative: int) -> int | None:
        """The link-time address of an address relative to the lowest one.  None outside of the segments."""
        if self.is_module:
            return self.module_to_link(relative)
        address = min((segment.address for segment in self.segments), default=0) + relative
        return address if self.is_loaded(address) else None

    def address_of(self, name: str) -> int | None:
        """The link-time address of a symbol, None if it is not in the symbol table."""
        with self._lock:
            self._load()
            source = self if self.section(".symtab") or not self._debug else self._debug
            table, text = source.data(source.section(".symtab")), source.data(source.section(".strtab"))
            at = bytes(text).find(b"\0" + name.encode() + b"\0") + 1
            wide = self.bits == 64
            entry = struct.Struct(self.order + ("IBBHQQ" if wide else "IIIBBH"))
            for found in entry.iter_unpack(table[: len(table) // entry.size * entry.size]) if at else ():
                if found[0] == at:
                    return int(found[4 if wide else 1])
            return None

    def extent(self, address: int) -> tuple[int, int] | None:
        """First address of the function around a link-time address, and the first one after it; None when unknown."""
        with self._lock:
            self._load()
            found = self._find_symbol(address)
            return found[1:] if found else None

    def _entry(self, address: int) -> Symbol | None:
        found = self._find_symbol(address)
        if found is None and not self._external and (chain := self._chain(address)):
            found = chain[-1][0], address, address
        if found is None:
            return None
        file, line = self._begin(address)
        return self._symbol(found[0], file, line, line)

    def _chain(self, address: int) -> list[tuple[str, str, int, int]]:
        """The inline chain at an address, innermost first: system name, file, line and the line where it begins."""
        found = self._find_symbol(address)
        lines = self._line_tables()
        frames = lines.chain(address) if lines else []
        if not any(frame.line or frame.file for frame in frames):
            if found is None:
                return []
            file, line = lines.find(address) if lines else ("", 0)
            return [(found[0], file, line, self._begin(found[1])[1] if line else 0)]
        chain = [(frame.name, frame.file, frame.line, 0) for frame in frames[:-1]]
        last = frames[-1]
        chain.append((found[0] if found else last.name, last.file, last.line, self._begin(last.start)[1]))
        return chain

    def _symbol(self, name: str, file: str = "", line: int = 0, start_line: int = 0) -> Symbol:
        return Symbol(demangle(name, self._demangle, self.refused), name, file, line, start_line)

    @property
    def _source(self) -> ElfObject:
        """The file with the debug information."""
        return self._debug or self

    def _begin(self, entry: int) -> tuple[str, int]:
        """File and line of the function whose first instruction is at `entry`, ("", 0) if unknown."""
        if entry not in self._begins:
            lines = self._line_tables()
            file, line, is_body = lines.entry(entry) if lines else ("", 0, False)
            frames = lines.chain(entry) if lines and is_body else []
            if len(frames) > 1 and frames[-1].line:  # it begins with an inlined function: use the line of that call
                file, line = frames[-1].file, frames[-1].line
            self._begins[entry] = file, line
        return self._begins[entry]

    def _ask_where_begin(self, entries: Sequence[int]) -> None:
        """The results of `_begin` for functions whose declarations are in .dwo files."""
        lines = self._line_tables()
        new = [entry for entry in entries if entry not in self._begins and lines and lines.entry(entry)[2]]
        for entry, chain in zip(new, self._ask_llvm_symbolizer(new) if new else (), strict=True):
            if chain and chain[-1].start_line:
                self._begins[entry] = chain[-1].file, chain[-1].start_line

    def _line_tables(self) -> LineTables | None:
        if self._lines is None and self._has_lines:
            try:
                # a weak reference: a cycle would keep the file open until the garbage collector runs
                self._lines = LineTables(self._debug or weakref.proxy(self))
                if self._lines.damaged:
                    self._remark(f"{counted(self._lines.damaged, 'damaged unit')} in its line tables")
            except SymbolError as error:
                self._has_lines = False
                self._remark(f"its line tables cannot be read: {error}")
        return self._lines

    def _remark_damage(self) -> None:
        if self._lines and not self._is_damaged and self._lines.has_damaged_units:
            self._is_damaged = True
            self._remark("damaged units in its debug information")

    def _remark(self, note: str) -> None:
        self.note = f"{self.note}; {note}" if self.note else note

    def _find_symbol(self, address: int) -> tuple[str, int, int] | None:
        """The name, the first address and the end of the symbol at an address."""
        symbols = self._symbols
        at = lib.fp_symtab_find(symbols, address) if symbols else -1
        if at >= 0 and address - symbols.starts[at] < symbols.sizes[at]:
            start = symbols.starts[at]
            return string(self._names, symbols.names[at]), start, start + symbols.sizes[at]
        if self._stubs is None:
            self._stubs = Stubs(self, self._name_at)
            if self._stubs.damage:
                self._remark(f"its procedure linkage table cannot be read: {self._stubs.damage}")
        return self._stubs.find(address)

    def _name_at(self, address: int) -> str:
        """The name of the symbol that begins at an address, "" for none."""
        symbols = self._symbols
        at = lib.fp_symtab_find(symbols, address) if symbols else -1
        return string(self._names, symbols.names[at]) if at >= 0 and symbols.starts[at] == address else ""

    # ---- loading

    def _load(self) -> None:
        """Find debug information and read the symbol table, once."""
        if self._loaded:
            return
        self._loaded = True
        if self.reason:
            return
        try:
            if not self._debug and not self._has_dwarf():
                self._debug = self._find_debug_file()
            tables = ((self, ".symtab"), (self._debug, ".symtab"), (self, ".gnu_debugdata"), (self, ".dynsym"))
            for source, table in tables:
                if source is not None and source._read_symbols(table):
                    self._symbols, self._names = source._symbols, source._names
                    break
            source = self._source
            has_dwarf = source._has_dwarf()
            self.note = source._alternate() if has_dwarf else ""  # a stripped file keeps the link
            self._has_lines = has_dwarf or any(source._has_content(name) for name in (".debug_line", ".zdebug_line"))
            if has_dwarf and source.kind != ET_REL and has_split_units(source):
                import shutil

                self._external = shutil.which("llvm-symbolizer") or ""
                if not self._external:
                    self._remark(
                        "its debug information is in .dwo files, and llvm-symbolizer, which reads them, is not "
                        "installed"
                    )
            if not self._symbols and not has_dwarf:
                self.reason = "stripped: neither symbols nor debug information"
        except SymbolError as error:
            self.reason = f"damaged ELF file: {error}"

    def _alternate(self) -> str:
        """Debug information that is unreadable because dwz moved it into another file; "" for none."""
        link = self.section(".gnu_debugaltlink")
        if link is None:
            return ""
        name = os.fsdecode(bytes(self.data(link)).split(b"\0", 1)[0])
        return f"names of inlined functions that dwz moved to {name} are not read"

    def _has_content(self, name: str) -> bool:
        section = self.section(name)
        return section is not None and section.kind != SHT_NOBITS and section.size > 0

    def _has_dwarf(self) -> bool:
        return self._has_content(".debug_info") or self._has_content(".zdebug_info")

    def _find_debug_file(self) -> ElfObject | None:
        for directory in self._debug_dirs if len(self.build_id) > 2 else ():
            path = os.path.join(directory, ".build-id", self.build_id[:2], self.build_id[2:] + ".debug")
            found = ElfObject(path, expect_build_id=self.build_id)
            if not found.reason:
                return found
        link = self.section(".gnu_debuglink")
        if link is None:
            return None
        data = bytes(self.data(link))
        name = os.fsdecode(data.split(b"\0", 1)[0])
        if not name or len(data) < 8:
            return None
        (crc,) = struct.unpack(self.order + "I", data[-4:])
        here = os.path.dirname(os.path.realpath(self.path))
        for directory in (here, os.path.join(here, ".debug"), *(d + here for d in self._debug_dirs)):
            found = ElfObject(os.path.join(directory, name))
            if not found.reason and zlib.crc32(found._bytes) == crc:
                return found
        return None

    def _read_symbols(self, table: str) -> bool:
        """Read a symbol table; False if it has no symbols of code."""
        if table == ".gnu_debugdata":
            return self._read_mini_debug()
        entries, names = self.section(table), self.section(".strtab" if table == ".symtab" else ".dynstr")
        if entries is None or names is None:
            return False
        data, text = self.data(entries), self.data(names)
        flags = lib.FP_SYMTAB_SWAP * self.swapped | lib.FP_SYMTAB_WIDE * (self.bits == 64)
        flags |= lib.FP_SYMTAB_MARKERS * (self.machine in (_EM_ARM, _EM_AARCH64, _EM_RISCV))
        flags |= lib.FP_SYMTAB_THUMB * (self.machine == _EM_ARM)
        pointers = [ffi.from_buffer("uint8_t[]", part) if len(part) else ffi.NULL for part in (data, text)]
        ends = [min(s.address + s.size, _LIMIT) if s.flags & SHF_ALLOC else 0 for s in self.sections]
        fields = (pointers[0], len(data), pointers[1], len(text), ffi.new("uint64_t[]", ends), len(ends), flags)
        symbols = owned(lib.fp_symtab_new(ffi.new("struct fp_symtab_in *", fields)), "symbols")
        if symbols.n:
            self._symbols, self._names = symbols, text
        return bool(symbols.n)

    def _read_mini_debug(self) -> bool:
        """Fedora's `.gnu_debugdata`: an xz-compressed ELF file with the symbols that .dynsym lacks."""
        section = self.section(".gnu_debugdata")
        if section is None:
            return False
        import lzma

        try:
            inner = lzma.LZMADecompressor().decompress(self.data(section), max_length=1 << 28)
        except lzma.LZMAError:
            return False
        mini = ElfObject(self.path, content=inner)
        found = not mini.reason and mini._read_symbols(".symtab")
        self._symbols, self._names = mini._symbols, mini._names
        return found

    def _ask_llvm_symbolizer(self, addresses: Sequence[int]) -> list[tuple[Symbol, ...]]:
        """Ask llvm-symbolizer, which reads .dwo files, about all addresses at once."""
        import json
        from subprocess import PIPE

        from fastprof.core.child import running

        path = self._source.path
        command = [self._external, f"--obj={path}", "--output-style=JSON", "--no-demangle", "--inlines"]
        questions = "".join(f"{address:#x}\n" for address in addresses)
        answers = []
        try:
            with running(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as run:
                output = run.communicate(questions.encode())
            answer, error = (text.decode("utf-8", "surrogateescape") for text in output)
            for line in answer.splitlines():
                frames = (frame for frame in json.loads(line).get("Symbol", ()) if frame["FunctionName"])
                answers.append(
                    tuple(self._symbol(f["FunctionName"], f["FileName"], f["Line"], f["StartLine"]) for f in frames)
                )
        except OSError as failed:
            raise SymbolError(f"{path}: llvm-symbolizer: {failed.strerror}") from None
        except (ValueError, AttributeError, LookupError, TypeError):  # killed within a line, or another program
            raise SymbolError(f"{path}: unexpected answer of llvm-symbolizer: {line[:80]!r}") from None
        if run.returncode or len(answers) != len(addresses):
            answered = f"{len(answers)} of {counted(len(addresses), 'address', 'addresses')}: {error[:200]}"
            raise SymbolError(f"{path}: llvm-symbolizer answered {answered}")
        return answers


_cache = FileCache[ElfObject](MAX_CACHED)


def cached_object(
    path: str | os.PathLike[str],
    *,
    debug_dirs: Sequence[str] = DEBUG_DIRS,
    sysroot: str = "",
    demangle: Demangle = "full",
) -> ElfObject:
    """The object of a file, which may be cached from another profile."""

    def read() -> ElfObject:
        return ElfObject(path, debug_dirs=debug_dirs, sysroot=sysroot, demangle=demangle)

    return _cache.get(path, (tuple(debug_dirs), sysroot, demangle), read)
