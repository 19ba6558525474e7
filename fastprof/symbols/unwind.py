"""Tables that locate callers: .eh_frame and .debug_frame of an ELF file (csrc/symbols/unwind.h)."""

from __future__ import annotations

import struct

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, CData, fp_dwarf_bytes
from fastprof.core.c_memory import owned
from fastprof.core.errors import SymbolError

if TYPE_CHECKING:
    from fastprof.symbols.elf import Bytes, ElfFile

_MACHINES = (62, 183)  # x86-64 and AArch64
_PC_RELATIVE_S32 = 0x1B  # how .eh_frame_hdr encodes the address of .eh_frame


class UnwindTable:
    """The rules of one file.  `debug` is its debug file, whose .debug_frame is used if the file has none.

    `number` is less than 2^24 and unique among the tables of an unwinder.
    Errors: SymbolError for sections that cannot be read, and files of other machines; MemoryError.
    """

    def __init__(self, elf: ElfFile, number: int, debug: ElfFile | None = None) -> None:
        if elf.machine not in _MACHINES or elf.bits != 64 or elf.order != "<":
            raise SymbolError(f"{elf.path}: machine {elf.machine} with {elf.bits} bits is neither x86-64 nor AArch64")
        self._keep: list[CData] = []
        file = ffi.new("struct fp_unwind_file *", {"machine": elf.machine, "id": number})
        address, frames = _eh_frame(elf)
        self._lend(file.content, elf.content)
        self._lend(file.eh_frame, frames)
        self._lend(file.debug_frame, _debug_frame(elf) or (_debug_frame(debug) if debug else b""))
        text, header = elf.section(".text"), elf.section(".eh_frame_hdr")
        file.eh_frame_address = address
        file.text = text.address if text else 0
        file.data = header.address if header else elf.frame_header or 0
        loads = [(s.address, s.offset, s.file_size, s.memory_size, s.executable) for s in elf.segments]
        plts = sorted((s.address, s.address + s.size) for s in elf.sections if s.name in (".plt", ".plt.sec"))
        file.loads = kept_loads = ffi.new("struct fp_unwind_load[]", loads)
        file.plts = kept_plts = ffi.new("struct fp_unwind_range[]", plts)
        file.n_loads, file.n_plts = len(loads), len(plts)
        err = ffi.new("struct fp_err *")
        self.c = owned(lib.fp_unwind_table_new(file, err), "unwind rules")
        del kept_loads, kept_plts  # C has copied them
        self.stats = lib.fp_unwind_table_stats(self.c)

    def _lend(self, to: fp_dwarf_bytes, data: Bytes) -> None:
        if len(data):
            self._keep.append(pointer := ffi.from_buffer("uint8_t[]", data))
            to.p, to.n = pointer, len(data)


def _eh_frame(elf: ElfFile) -> tuple[int, Bytes]:
    """The address and the bytes of .eh_frame.  A file without section headers has a header that points at it."""
    if (section := elf.section(".eh_frame")) or elf.frame_header is None:
        return (section.address, elf.data(section)) if section else (0, b"")
    header = _bytes_from(elf, elf.frame_header)[:8]
    if len(header) < 8 or header[:2] != bytes((1, _PC_RELATIVE_S32)):
        return 0, b""
    address = elf.frame_header + 4 + struct.unpack_from("<i", header, 4)[0]
    return address, _bytes_from(elf, address)


def _bytes_from(elf: ElfFile, address: int) -> memoryview:
    """The bytes of the file from an address to the end of its segment."""
    for s in elf.segments:
        if s.address <= address < s.address + s.file_size:
            return memoryview(elf.content)[s.offset + address - s.address : s.offset + s.file_size]
    return memoryview(b"")


def _debug_frame(elf: ElfFile) -> Bytes:
    return elf.data(elf.section(".debug_frame") or elf.section(".zdebug_frame"))
