"""Small ELF files."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple


class ElfSection(NamedTuple):
    name: str
    address: int
    offset: int
    nbytes: int
    code: bool = True


class ElfSymbol(NamedTuple):
    """`info` is 16 * binding + type; `section` counts from 1, 0 is undefined."""

    name: str
    value: int
    section: int
    info: int = 0x12


def elf_file(
    sections: Sequence[ElfSection], symbols: Sequence[ElfSymbol], *, wide: bool = True, order: str = "<", kind: int = 2
) -> bytes:
    """Section headers, and a symbol table if there are symbols; the bytes of the sections are zeros."""
    names, strings = bytearray(b"\0"), bytearray(b"\0")

    def put(table: bytearray, text: str) -> int:
        at = len(table)
        table += text.encode() + b"\0"
        return at if text else 0

    table = bytearray(24 if wide else 16)
    for symbol in symbols:
        at = put(strings, symbol.name)
        if wide:
            table += struct.pack(f"{order}IBBHQQ", at, symbol.info, 0, symbol.section, symbol.value, 1)
        else:
            table += struct.pack(f"{order}IIIBBH", at, symbol.value, 1, symbol.info, 0, symbol.section)
    end = max([64, *(s.offset + s.nbytes for s in sections)])
    layout = f"{order}IIQQQQIIQQ" if wide else f"{order}IIIIIIIIII"
    heads = [struct.pack(layout, *[0] * 10)]
    for s in sections:
        heads.append(struct.pack(layout, put(names, s.name), 1, 6 if s.code else 2, s.address, s.offset, s.nbytes, 0, 0, 1, 0))  # fmt: skip  # noqa: E501
    at, extra = end, b""
    if symbols:
        link = len(heads) + 1
        heads.append(struct.pack(layout, put(names, ".symtab"), 2, 0, 0, at, len(table), link, 1, 8, 24 if wide else 16))  # fmt: skip  # noqa: E501
        heads.append(struct.pack(layout, put(names, ".strtab"), 3, 0, 0, at + len(table), len(strings), 0, 0, 1, 0))
        extra = bytes(table + strings)
    put_at = put(names, ".shstrtab")
    heads.append(struct.pack(layout, put_at, 3, 0, 0, at + len(extra), len(names), 0, 0, 1, 0))
    headers = at + len(extra) + len(names)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    machine, word = 62 if wide else 3, "Q" if wide else "I"
    head = ident + struct.pack(
        f"{order}HHI{word}{word}{word}IHHHHHH", kind, machine, 1, 0, 0, headers, 0,
        64 if wide else 52, 0, 0, 64 if wide else 40, len(heads), len(heads) - 1,
    )  # fmt: skip
    return head.ljust(end, b"\0") + extra + bytes(names) + b"".join(heads)
