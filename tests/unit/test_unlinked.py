"""Unlinked files: symbols and lines equal those of LLVM's tools, which also apply relocations."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fastprof.core.errors import SymbolError
from fastprof.symbols.elf import SHT_RELA, ElfFile
from fastprof.symbols.objects import ElfObject
from tests.differential.peers import need

SOURCE = """
static int twice(int x) { return x + x; }
extern int table[40];
int sum(int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        s += table[i] * twice(n);
    return s;
}
#line 7 "other/x.h"
int last(void) { return sum(3) - 1; }
"""
MACHINES = [
    "x86_64", "i386", "aarch64", "aarch64_be", "armv7", "powerpc", "powerpc64le", "s390x", "mips", "mipsel",
]  # fmt: skip


def compiled(folder: Path, *options: str, machine: str = "x86_64") -> Path:
    (folder / "a.c").write_text(SOURCE)
    command = [need("clang-19"), f"--target={machine}-linux-gnu", "-c", "-g", "-O1", "-fno-inline", *options, "a.c"]
    subprocess.run([*command, "-o", "a.o"], cwd=folder, check=True)
    return folder / "a.o"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("version", ["-gdwarf-2", "-gdwarf-5"])
def test_lines(machine: str, version: str, tmp_path: Path) -> None:
    path = compiled(tmp_path, version, machine=machine)
    elf = ElfObject(path)
    text = elf.section(".text")
    assert text is not None and text.size > 40
    steps = [at for at in range(0, text.size, 2) if elf.lookup(text.address + at)]  # none between functions
    assert len(steps) > text.size // 3
    command = [need("llvm-symbolizer-19"), f"--obj={path}", "--no-demangle", "--output-style=GNU", "--no-inlines"]
    asked = subprocess.run([*command, *map(hex, steps)], capture_output=True, text=True, check=True).stdout.split("\n")
    theirs = [
        (name, place.split(" (")[0].replace(":?", ":0")) for name, place in zip(asked[::2], asked[1::2], strict=False)
    ]
    mine = [(s.name, f"{s.file or '??'}:{s.line}") for (s,) in elf.lookup_many([text.address + at for at in steps])]
    assert mine == theirs
    assert {name for name, _ in mine} == {"sum", "twice", "last"}
    assert elf.note == ""


def test_sections_of_their_own_do_not_overlap(tmp_path: Path) -> None:
    """Each function is at the start of its section; a module has .init.text in addition to .text."""
    elf = ElfObject(compiled(tmp_path, "-ffunction-sections"))
    for name, line in (("sum", 4), ("twice", 2), ("last", 7)):
        section = elf.section(f".text.{name}")
        assert section is not None
        (symbol,) = elf.lookup(section.address)
        assert (symbol.name, symbol.start_line) == (name, line)
        assert elf.lookup(section.address + section.size) == ()


def test_a_debug_file_has_its_sections_at_the_same_places(tmp_path: Path) -> None:
    path = compiled(tmp_path, "-ffunction-sections")
    whole = ElfObject(path)
    addresses = [a for s in whole.segments if s.executable for a in range(s.address, s.address + s.memory_size)]
    want = whole.lookup_many(addresses)
    debug, stripped = tmp_path / "a.debug", tmp_path / "stripped.o"
    subprocess.run([need("objcopy"), "--only-keep-debug", path, debug], check=True)
    command = [need("objcopy"), "--strip-debug", f"--add-gnu-debuglink={debug}", path, stripped]
    subprocess.run(command, check=True)
    elf = ElfObject(stripped)
    assert elf.lookup_many(addresses) == want
    assert elf.debug_path() == str(debug)


@pytest.mark.parametrize(
    ("at", "value", "says"), [(0, 1 << 40, "out of range"), (8, 77 << 32 | 1, "out of range"), (8, 3, "unknown type")]
)
def test_damage(at: int, value: int, says: str, tmp_path: Path) -> None:
    """A place, a symbol or a kind of relocation that does not exist."""
    path = compiled(tmp_path)
    elf, data = ElfFile(path), bytearray(path.read_bytes())
    for section in elf.sections:
        if section.kind == SHT_RELA and section.name == ".rela.debug_line":
            data[section.offset + at : section.offset + at + 8] = value.to_bytes(8, "little")
    path.write_bytes(data)
    elf = ElfFile(path)
    with pytest.raises(SymbolError, match=says):
        elf.data(elf.section(".debug_line"))
    lines = ElfObject(path)
    text = lines.section(".text")
    assert text is not None
    (symbol,) = lines.lookup(text.address)
    assert (symbol.line, says in lines.note) == (0, True)


def test_relocations_by_symbols_that_are_none(tmp_path: Path) -> None:
    """The section that they name is their own target: it is left unchanged."""
    path = compiled(tmp_path)
    elf, data = ElfFile(path), bytearray(path.read_bytes())
    at = int.from_bytes(data[0x28:0x30], "little")  # the section headers
    line = next(i for i, section in enumerate(elf.sections) if section.name == ".debug_line")
    fills = next(i for i, section in enumerate(elf.sections) if section.name == ".rela.debug_line")
    data[at + 64 * fills + 40 : at + 64 * fills + 44] = line.to_bytes(4, "little")
    path.write_bytes(data)
    stored = elf.sections[line]
    other = ElfFile(path)
    assert bytes(other.data(other.section(".debug_line"))) == data[stored.offset : stored.offset + stored.size]


def test_a_section_that_no_address_space_holds(tmp_path: Path) -> None:
    path = compiled(tmp_path)
    elf, data = ElfFile(path), bytearray(path.read_bytes())
    at = int.from_bytes(data[0x28:0x30], "little")
    text = next(i for i, section in enumerate(elf.sections) if section.name == ".text")
    data[at + 64 * text + 32 : at + 64 * text + 40] = ((1 << 64) - 1).to_bytes(8, "little")
    path.write_bytes(data)
    assert "more than the address space holds" in ElfFile(path).reason
