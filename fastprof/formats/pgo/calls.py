"""Which instructions are calls, by their first bytes.

Callgrind reports jumps into another symbol (tail calls, `.cold` parts) as calls, too; compilers expect targets at call
instructions only.
"""

from __future__ import annotations

from fastprof.core._typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastprof.symbols.objects import ElfObject

_X86, _X86_64, _AARCH64 = 3, 62, 183  # e_machine
_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf2\xf3")


def _x86(code: bytes, wide: bool) -> bool:
    """`e8` and 4 bytes: relative; `ff /2` and `ff /3`: through a register or memory.  Prefixes come first."""
    at = 0
    while at < len(code) and (code[at] in _PREFIXES or (wide and 0x40 <= code[at] <= 0x4F)):
        at += 1
    opcode = code[at : at + 2]
    return opcode[:1] == b"\xe8" or (len(opcode) == 2 and opcode[0] == 0xFF and opcode[1] >> 3 & 7 in (2, 3))


def is_call(elf: ElfObject, address: int) -> bool:
    """Whether the instruction at a link-time address is a call; of machines other than x86 and AArch64 all are."""
    code = b""
    for segment in elf.segments:
        if segment.executable and 0 <= address - segment.address < segment.file_size:
            at = address - segment.address + segment.offset
            code = bytes(elf.content[at : at + 16])
    if not code:  # a debug file has no code
        return True
    if elf.machine in (_X86, _X86_64):
        return _x86(code, elf.machine == _X86_64)
    if elf.machine == _AARCH64:  # bl: 100101 and 26 bits; blr: d63f and a register
        word = int.from_bytes(code[:4], "little")
        return word & 0xFC000000 == 0x94000000 or word & 0xFFFFFC1F == 0xD63F0000
    return True
