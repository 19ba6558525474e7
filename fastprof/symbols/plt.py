"""Names of stubs in procedure linkage tables, through which a program calls functions of other objects.

A stub jumps to the address in a slot, and a relocation of the slot names the function, `memcmp`, so the stub is
`memcmp@plt`, as objdump and perf call it.  Stubs are recognized by their instructions, because linkers lay out
tables in many ways (.plt, .plt.sec, .plt.got, .iplt; with and without marks for branch protection):

    x86-64    ff 25 disp32                      jmp *slot(%rip)
              4c 8b 1d disp32                   mov slot(%rip), %r11
    i386      ff 25 addr32                      jmp *slot
              ff a3 disp32                      jmp *slot(%ebx), from the start of .got.plt
    AArch64   adrp x16, page; ldr x17, [x16, offset]
    ARM       add ip, pc, #i; add ip, ip, #i (one or more); ldr pc, [ip, #i]!
    RISC-V    auipc t3, page; ld t3, offset(t3)

The remainder of a table, such as its first entry, which calls the dynamic linker, has the name of the section.
Source: binutils bfd/elfxx-x86.c (_bfd_x86_elf_get_synthetic_symtab), elfnn-aarch64.c, elf32-arm.c, elfnn-riscv.c.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterator

from fastprof.core import lazy_re as re
from fastprof.core._typing import NamedTuple
from fastprof.core.errors import SymbolError
from fastprof.symbols.elf import SHF_ALLOC, SHF_EXECINSTR, SHT_REL, SHT_RELA, Bytes, ElfFile, Section, string

_I386, _ARM, _X86_64, _AARCH64, _RISCV = 3, 40, 62, 183, 243
_CODE = SHF_ALLOC | SHF_EXECINSTR
_NAMES = (".plt", ".iplt")  # and those that continue with a dot
_SUFFIX = "@plt"
_MOST = 16 << 20  # bytes of stubs in an object: a million of them


class Stub(NamedTuple):
    """A stub at the addresses [start, end), and the address of its slot."""

    start: int
    end: int
    slot: int


class Stubs:
    """The stubs of an object.  `name_at(address)` is the name of the function that begins there, "" if unknown.

    Never raises for a damaged file: `damage` then states what is wrong, and no stub is found.
    """

    def __init__(self, elf: ElfFile, name_at: Callable[[int], str]) -> None:
        self.damage = ""
        tables = sorted((s for s in elf.sections if _is_table(s)), key=lambda s: s.address)
        stubs: dict[int, Stub] = {}
        self._names: dict[int, str] = {}  # by slot
        try:
            if sum(table.size for table in tables) > _MOST:
                raise SymbolError(f"{elf.path}: more than {_MOST >> 20} MiB of stubs")
            stubs = {stub.start: stub for table in tables for stub in _stubs(elf, table)}
            self._names = _names(elf, {stub.slot for stub in stubs.values()}, name_at) if stubs else {}
        except SymbolError as error:
            self.damage = str(error)
        self._tables = tables
        self._begins = [table.address for table in tables]
        self._stubs = sorted(stub for stub in stubs.values() if stub.slot in self._names)
        self._starts = [stub.start for stub in self._stubs]

    def find(self, address: int) -> tuple[str, int, int] | None:
        """The name, the first address and the end of the stub at an address."""
        at = bisect.bisect_right(self._begins, address) - 1
        table = self._tables[at] if at >= 0 else None
        if table is None or address >= (end := table.address + table.size):
            return None
        after = bisect.bisect_right(self._starts, address)
        end = min([end, *self._starts[after : after + 1]])
        stub = self._stubs[after - 1] if after else None
        if stub and address < stub.end:
            return self._names[stub.slot], stub.start, min(end, stub.end)
        return table.name, max(table.address, stub.end if stub else 0), end


def _names(elf: ElfFile, wanted: set[int], name_at: Callable[[int], str]) -> dict[int, str]:
    """The names of stubs by slot."""
    names: dict[int, str] = {}
    tables = [s for s in elf.sections if s.kind in (SHT_REL, SHT_RELA) and s.flags & SHF_ALLOC]
    left = elf.nbytes  # sections that overlap are read only once
    for table in sorted(tables, key=lambda s: ".plt" not in s.name):  # the tables of stubs are short
        left -= table.size
        if len(names) == len(wanted) or left < 0:
            break
        for slot, symbol, addend in _relocations(elf, table):
            if slot not in wanted or slot in names:
                continue
            if symbol:
                name = _symbol_name(elf, table, symbol)
            else:  # a function of the object itself, which a resolver chooses when the program starts
                target = _word(elf, slot) if addend is None else addend
                name = name_at(target) or f"*ABS*+{target:#x}"
            if name:
                names[slot] = name + _SUFFIX
    return names


def _is_table(section: Section) -> bool:
    return section.flags & _CODE == _CODE and section.name.startswith(_NAMES)


def _stubs(elf: ElfFile, table: Section) -> Iterator[Stub]:
    code, at = elf.data(table), table.address
    if elf.machine == _X86_64:
        return _x86(code, at, (1 << elf.bits) - 1, None)
    if elf.machine == _I386:
        got = elf.section(".got.plt") or elf.section(".got")
        return _x86(code, at, (1 << 32) - 1, got.address if got else 0)
    find = {_AARCH64: _aarch64, _ARM: _arm, _RISCV: _riscv}.get(elf.machine)
    order = "<" if elf.machine == _AARCH64 else elf.order  # its instructions have one byte order
    words = [word for (word,) in struct.iter_unpack(order + "I", code[: len(code) & ~3])] if find else []
    return find(words, at) if find else iter(())


_JUMP_X86 = re.compile(rb"(?:\xff[\x25\xa3]|(\x4c\x8b\x1d))(....)", re.DOTALL)


def _x86(code: Bytes, at: int, mask: int, got: int | None) -> Iterator[Stub]:
    """`got`: where offsets of a 32-bit object count from; None for 64 bits."""
    for jump in _JUMP_X86.finditer(code):
        number, begin = int.from_bytes(jump[2], "little", signed=True), jump.start()
        is_absolute = got is not None
        slot = number + (got or 0) * (code[begin + 1] == 0xA3) if is_absolute else at + jump.end() + number
        # an entry of 8 bytes is only the jump; others begin at a multiple of 16, perhaps with a mark or a move
        start = begin if begin % 8 == 0 else begin & ~15
        yield Stub(at + start, at + start + (32 if jump[1] else 16), slot & mask)


def _aarch64(words: list[int], at: int) -> Iterator[Stub]:
    for i in range(len(words) - 1):
        page, load = words[i], words[i + 1]
        if page & 0x9F00001F != 0x90000010 or load & 0xBFC003FF != 0xB9400211:
            continue
        number = _signed((page >> 5 & 0x7FFFF) << 2 | page >> 29 & 3, 21)
        offset = (load >> 10 & 0xFFF) << (2 + (load >> 30 & 1))
        first = i - (i > 0 and words[i - 1] == 0xD503245F)  # bti c
        slot = ((at + 4 * i & ~0xFFF) + (number << 12) + offset) & (1 << 64) - 1
        yield Stub(at + 4 * first, at + 4 * first + (24 if first < i else 16 + 8 * _is_signed(words, i)), slot)


def _is_signed(words: list[int], i: int) -> bool:
    """Whether an AArch64 stub authenticates its pointer: autia1716 is its fourth instruction."""
    return words[i + 3 : i + 4] == [0xD503219F]


def _arm(words: list[int], at: int) -> Iterator[Stub]:
    i = 0
    while i < len(words):
        first, i = i, i + 1
        if words[first] & 0xFFFFF000 != 0xE28FC000:  # add ip, pc, #
            continue
        slot = at + 4 * first + 8 + _rotated(words[first])
        while i < len(words) and words[i] & 0xFFFFF000 == 0xE28CC000:  # add ip, ip, #
            slot += _rotated(words[i])
            i += 1
        if i < len(words) and words[i] & 0xFFFFF000 == 0xE5BCF000:  # ldr pc, [ip, #]!
            slot += words[i] & 0xFFF
            i += 1
            begin = first - (first > 0 and words[first - 1] == 0x46C04778)  # bx pc; nop
            yield Stub(at + 4 * begin, at + 4 * i, slot & (1 << 32) - 1)


def _rotated(word: int) -> int:
    """The immediate operand of an ARM instruction: 8 bits, rotated right by twice the 4 bits above."""
    number, by = word & 0xFF, (word >> 8 & 15) * 2
    return (number >> by | number << 32 - by) & (1 << 32) - 1


def _riscv(words: list[int], at: int) -> Iterator[Stub]:
    for i in range(len(words) - 1):
        page, load = words[i], words[i + 1]
        if page & 0xFFF == 0xE17 and load & 0xFEFFF == 0xE2E03:  # of 32 or 64 bits
            slot = at + 4 * i + _signed(page & 0xFFFFF000, 32) + _signed(load >> 20, 12)
            yield Stub(at + 4 * i, at + 4 * i + 16, slot)


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) * (number >> bits - 1)


def _relocations(elf: ElfFile, table: Section) -> Iterator[tuple[int, int, int | None]]:
    """Slot, number of the symbol, and addend; None if the slot has it."""
    word, shift = ("Q", 32) if elf.bits == 64 else ("I", 8)
    fields = 3 if table.kind == SHT_RELA else 2
    layout = struct.Struct(elf.order + word * fields)
    data = elf.data(table)
    for slot, info, *addend in layout.iter_unpack(data[: len(data) // layout.size * layout.size]):
        yield slot, info >> shift, addend[0] if addend else None


def _symbol_name(elf: ElfFile, table: Section, symbol: int) -> str:
    symbols = elf.sections[table.link] if table.link < len(elf.sections) else None
    strings = elf.sections[symbols.link] if symbols and symbols.link < len(elf.sections) else None
    if symbols is None or strings is None:
        return ""
    at = symbol * (24 if elf.bits == 64 else 16)
    entry = bytes(elf.data(symbols)[at : at + 4])
    return string(elf.data(strings), int.from_bytes(entry, "little" if elf.order == "<" else "big")) if entry else ""


def _word(elf: ElfFile, address: int) -> int:
    """A word of the file at an address, 0 if it has none."""
    nbytes = elf.bits // 8
    for segment in elf.segments:
        at = address - segment.address
        if 0 <= at <= segment.file_size - nbytes:
            entry = bytes(elf.content[segment.offset + at : segment.offset + at + nbytes])
            return int.from_bytes(entry, "little" if elf.order == "<" else "big")
    return 0
