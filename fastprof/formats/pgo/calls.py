"""Which instructions are calls and jumps, by their first bytes.

Callgrind reports jumps into another symbol (tail calls, `.cold` parts) as calls, too; compilers expect targets at call
instructions only.
"""

from __future__ import annotations

from fastprof.core._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastprof.symbols.objects import ElfObject

_X86, _X86_64, _AARCH64 = 3, 62, 183  # e_machine
JUMPS_KNOWN = frozenset({_X86, _X86_64, _AARCH64})
_JUMPS = (  # a mask and a value, and where the offset is
    (0xFC000000, 0x14000000, 0, 26),
    (0xFF000010, 0x54000000, 5, 19),
    (0x7E000000, 0x34000000, 5, 19),
    (0x7E000000, 0x36000000, 5, 14),
)
_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3")


def _opcode(code: bytes, wide: bool) -> int:
    """The offset of the opcode, after prefixes."""
    at = 0
    while at < len(code) and (code[at] in _PREFIXES or (wide and 0x40 <= code[at] <= 0x4F)):
        at += 1
    return at


def _call_of_x86(code: bytes, wide: bool, address: int) -> int | None:
    """`e8` and 4 bytes: relative; `ff /2` and `ff /3`: through a register or memory."""
    at = _opcode(code, wide)
    opcode = code[at : at + 2]
    if opcode[:1] == b"\xe8":
        return max(address + at + 5 + int.from_bytes(code[at + 1 : at + 5], "little", signed=True), 0)
    return 0 if len(opcode) == 2 and opcode[0] == 0xFF and opcode[1] >> 3 & 7 in (2, 3) else None


def code_at(elf: ElfObject, address: int) -> bytes:
    """The bytes of an instruction at a link-time address, and some of those that follow; none in a debug file."""
    for segment in elf.segments:
        if segment.executable and 0 <= address - segment.address < segment.file_size:
            at = address - segment.address + segment.offset
            return bytes(elf.content[at : at + 16])
    return b""


def is_call(elf: ElfObject, address: int) -> bool:
    """Whether the instruction at a link-time address is a call; of machines other than x86 and AArch64 all are."""
    return call_of(elf, address) is not None


def goes_away(elf: ElfObject, address: int) -> bool:
    """Whether the instruction at a link-time address is a call, or a jump without a condition."""
    if is_call(elf, address):
        return True
    code = code_at(elf, address)
    if elf.machine == _AARCH64:
        word = int.from_bytes(code[:4], "little")
        return word & 0xFC000000 == 0x14000000 or word & 0xFFFFFC1F == 0xD61F0000
    at = _opcode(code, elf.machine == _X86_64)
    first, second = (*code[at : at + 2], 0, 0)[:2]
    return first in (0xE9, 0xEB) or (first == 0xFF and second >> 3 & 7 in (4, 5))


def call_of(elf: ElfObject, address: int) -> int | None:
    """The target of the call at a link-time address, 0 through a register or memory; None if it is no call."""
    code = code_at(elf, address)
    if not code:
        return 0
    if elf.machine in (_X86, _X86_64):
        return _call_of_x86(code, elf.machine == _X86_64, address)
    if elf.machine == _AARCH64:  # bl: 100101 and 26 bits; blr: d63f and a register
        word = int.from_bytes(code[:4], "little")
        if word & 0xFC000000 == 0x94000000:
            offset = word & 0x3FFFFFF
            return max(address + 4 * (offset - (offset >> 25 << 26)), 0)
        return 0 if word & 0xFFFFFC1F == 0xD63F0000 else None
    return 0


def jump_of(elf: ElfObject, address: int) -> tuple[bool, int]:
    """Whether the instruction at a link-time address is a jump or a return, and its target, 0 if not in the code."""
    code = code_at(elf, address)
    if elf.machine in (_X86, _X86_64):
        return _jump_of_x86(code, elf.machine == _X86_64, address)
    if elf.machine == _AARCH64:
        return _jump_of_aarch64(int.from_bytes(code[:4], "little"), address)
    return False, 0


def _jump_of_x86(code: bytes, wide: bool, address: int) -> tuple[bool, int]:
    at = _opcode(code, wide)
    first, second = (*code[at : at + 2], 0, 0)[:2]
    if first == 0xEB or 0x70 <= first <= 0x7F or 0xE0 <= first <= 0xE3:
        end, size = at + 2, 1
    elif first == 0xE9:
        end, size = at + 5, 4
    elif first == 0x0F and 0x80 <= second <= 0x8F:
        end, size = at + 6, 4
    else:  # returns, and jumps through a register or memory
        return first in (0xC2, 0xC3) or (first == 0xFF and second >> 3 & 7 in (4, 5)), 0
    return True, max(address + end + int.from_bytes(code[end - size : end], "little", signed=True), 0)


def _jump_of_aarch64(word: int, address: int) -> tuple[bool, int]:
    """b, b.cond, cbz and cbnz, tbz and tbnz; br and ret."""
    for mask, value, shift, bits in _JUMPS:
        if word & mask == value:
            offset = word >> shift & (1 << bits) - 1
            return True, max(address + 4 * (offset - (offset >> bits - 1 << bits)), 0)
    return word & 0xFFDFFC1F == 0xD61F0000 or word & 0xFFFFFC1F == 0xD65F0000, 0
