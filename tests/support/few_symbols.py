"""Make a small file of symbols for a recording that the corpus keeps: the segments and the build id of a program, and
those of its symbols whose names are given, with all other names of their addresses.

    python -m tests.support.few_symbols PROGRAM NAMES OUT      NAMES: a file with a name on each line

The contents of the segments are left out, as in a debug file, except the unwind rules of those functions.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from fastprof.symbols.elf import ElfFile
from fastprof.symbols.objects import ElfObject

SYMBOL = struct.Struct("<IBBHQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")


def symbols_of(elf: ElfObject, wanted: set[str]) -> list[tuple[bytes, tuple[int, ...]]]:
    """Name and entry of each symbol to keep."""
    elf.lookup(0)
    source: ElfFile = elf
    if elf.section(".symtab") is None and elf.debug_path():
        source = ElfFile(elf.debug_path())
    table, names = (".symtab", ".strtab") if source.section(".symtab") else (".dynsym", ".dynstr")
    entries = [*SYMBOL.iter_unpack(source.data(source.section(table)))]
    text = bytes(source.data(source.section(names)))
    named = [(text[e[0] : text.index(b"\0", e[0])], e) for e in entries if e[3] and e[1] & 15 in (0, 2, 10)]
    starts = {e[4] for name, e in named if name.decode("utf-8", "replace") in wanted}
    return [(name, e) for name, e in named if e[4] in starts]


def rules_of(elf: ElfObject, starts: set[int]) -> bytes:
    """The entries of .eh_frame for functions that begin at `starts`, moved to its beginning."""
    section = elf.section(".eh_frame")
    data = bytes(elf.data(section))
    out, moved, at = bytearray(), {}, 0
    while section and at + 4 <= len(data):
        (nbytes,) = struct.unpack_from("<I", data, at)
        if not nbytes:
            break
        (back,) = struct.unpack_from("<I", data, at + 4)
        if back:  # an FDE, whose function is relative to its own place
            common = at + 4 - back
            (relative,) = struct.unpack_from("<i", data, at + 8)
            if section.address + at + 8 + relative in starts:
                if common not in moved:
                    moved[common] = len(out)
                    out += data[common : common + 4 + struct.unpack_from("<I", data, common)[0]]
                entry = bytearray(data[at : at + 4 + nbytes])
                struct.pack_into("<Ii", entry, 4, len(out) + 4 - moved[common], relative + at - len(out))
                out += entry
        at += 4 + nbytes
    return bytes(out + bytes(4))


def make(elf: ElfObject, kept: list[tuple[bytes, tuple[int, ...]]]) -> bytes:
    content = bytes(elf.content)
    (phoff,) = struct.unpack_from("<Q", content, 32)
    (n_segments,) = struct.unpack_from("<H", content, 56)
    headers = content[phoff : phoff + 56 * n_segments]
    loads = [headers[at : at + 56] for at in range(0, len(headers), 56) if headers[at] == 1 and not any(headers[at + 1 : at + 4])]  # fmt: skip  # noqa: E501
    note = struct.pack("<III", 4, len(elf.build_id) // 2, 3) + b"GNU\0" + bytes.fromhex(elf.build_id)
    strings, table = bytearray(b"\0"), bytearray(SYMBOL.size)
    code = [s for s in elf.sections if s.flags & 4]
    for name, (_, info, other, _, address, size) in kept:
        section = next((k for k, s in enumerate(code, 1) if s.address <= address < s.address + s.size), 0)
        table += SYMBOL.pack(len(strings), info, other, section, address, size)
        strings += name + b"\0"
    rules = rules_of(elf, {entry[4] for _, entry in kept})
    section_names = bytearray(b"\0")

    def named(name: str) -> int:
        at = len(section_names)
        section_names.extend(name.encode() + b"\0")
        return at

    at = 64 + 56 * len(loads)
    heads = [bytes(SECTION.size)]
    heads += [SECTION.pack(named(s.name), 8, s.flags, s.address, s.offset, s.size, 0, 0, 16, 0) for s in code]
    heads.append(SECTION.pack(named(".note.gnu.build-id"), 7, 0, 0, at, len(note) if elf.build_id else 0, 0, 0, 4, 0))
    heads.append(SECTION.pack(named(".symtab"), 2, 0, 0, at + len(note), len(table), len(heads) + 1, 1, 8, SYMBOL.size))
    heads.append(SECTION.pack(named(".strtab"), 3, 0, 0, at + len(note) + len(table), len(strings), 0, 0, 1, 0))
    start = at + len(note) + len(table) + len(strings)
    if frame := elf.section(".eh_frame"):
        heads.append(SECTION.pack(named(".eh_frame"), 1, 2, frame.address, start, len(rules), 0, 0, 8, 0))
        start += len(rules)
    name = named(".shstrtab")
    heads.append(SECTION.pack(name, 3, 0, 0, start, len(section_names), 0, 0, 1, 0))
    end = -(-(start + len(section_names)) // 8) * 8
    counts = struct.pack("<HHHHHH", 64, 56, len(loads), SECTION.size, len(heads), len(heads) - 1)
    head = content[:24] + struct.pack("<QQQI", 0, 64, end, 0) + counts
    body = head + b"".join(loads) + note + table + strings + (rules if frame else b"") + section_names
    return body.ljust(end, b"\0") + b"".join(heads)


if __name__ == "__main__":
    program, names, out = sys.argv[1:]
    elf = ElfObject(program)
    wanted = set(Path(names).read_text().splitlines())
    Path(out).write_bytes(make(elf, symbols_of(elf, wanted)))
