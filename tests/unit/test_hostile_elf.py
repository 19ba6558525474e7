"""Programs, and the files that they and profiles refer to, that would take memory or time, or block."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastprof.core.errors import FastprofError
from fastprof.symbols.mappings import Mapping
from fastprof.symbols.objects import ElfObject
from fastprof.symbols.symbolizer import Symbolizer
from fastprof.verbs import annotate
from fastprof.verbs.annotate import disassembly
from tests.support.elf import ElfSection, ElfSymbol, elf_file
from tests.support.paths import PYTHON, REPO

AT = 0x400000
CODE = """
import sys
from fastprof.symbols.objects import ElfObject
program = ElfObject(sys.argv[1])
program.lookup(0x400000)
print(program.note, program.reason)
"""


def program(size: int, plain: bytes) -> bytes:
    """With a .debug_info of `plain`, compressed, that claims to expand to `size` bytes."""
    packed = struct.pack("<IIQQ", 1, 0, size, 1) + zlib.compress(plain)
    sections = [ElfSection(".text", AT, 64, 64), ElfSection(".debug_info", 0, 128, len(packed), code=False)]
    made = bytearray(elf_file(sections, [ElfSymbol("main", AT, 1)]))
    made[128 : 128 + len(packed)] = packed
    (headers,) = struct.unpack_from("<Q", made, 0x28)
    struct.pack_into("<Q", made, headers + 2 * 64 + 8, 0x800)  # SHF_COMPRESSED
    return bytes(made)


@pytest.mark.parametrize(("size", "plain"), [(1 << 60, b"\0"), (1 << 33, b"\0"), (200 << 20, bytes(200 << 20))])
def test_the_size_is_not_believed(size: int, plain: bytes, tmp_path: Path) -> None:
    """A decompressor would request 2^60 bytes, and 1 MB would become 2 GB."""
    path = tmp_path / "program"
    path.write_bytes(program(size, plain))
    command = [sys.executable, "-c", CODE, str(path)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"bytes cannot be debug information that decompresses to {size} bytes" in done.stdout


def linked(name: bytes, crc: int = 0) -> bytes:
    """A program without debug information, with a .gnu_debuglink."""
    content = name + b"\0" + bytes(-(len(name) + 1) % 4) + struct.pack("<I", crc)
    sections = [ElfSection(".text", AT, 64, 64), ElfSection(".gnu_debuglink", 0, 128, len(content), code=False)]
    made = bytearray(elf_file(sections, [ElfSymbol("main", AT, 1)]))
    made[128 : 128 + len(content)] = content
    return bytes(made)


@pytest.mark.parametrize(
    "name", [b"program", b"pipe", b"loop", b"folder", b"none", b"/dev/zero", b"../" * 5000, b"x" * 100_000, b"\xff"]
)
def test_links_that_lead_nowhere(name: bytes, tmp_path: Path) -> None:
    """To the file itself, a pipe, which blocked, a symbolic link to itself, a directory, a device ..."""
    path = tmp_path / "program"
    path.write_bytes(linked(name))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    (tmp_path / ".debug").symlink_to(".")
    (tmp_path / ".build-id").symlink_to(tmp_path)
    found = ElfObject(path, debug_dirs=[str(tmp_path)])
    assert [symbol.name for symbol in found.lookup(AT)] == ["main"]
    assert found.debug_path() == ""


@pytest.mark.parametrize(("name", "reason"), [("pipe", "not a file"), ("nu\0l", "file name with a NUL byte")])
def test_mappings_that_are_no_files(name: str, reason: str, tmp_path: Path) -> None:
    """The pipe blocked, and the NUL byte was an internal error."""
    os.mkfifo(tmp_path / "pipe")
    symbolizer = Symbolizer([Mapping(0x1000, 0x2000, 0, f"{tmp_path}/{name}", "ab\0cd")])
    assert symbolizer.resolve([0x1100])[0] == ()
    assert symbolizer.unresolved() == [(f"{tmp_path}/{name}", reason, 1)]


def test_functions_that_all_reach_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 3,000 in 4 MB was disassembled up to the end."""
    n, size = 300, 100_000
    symbols = [ElfSymbol(f"f{i}", AT + 16 * i, 1) for i in range(n)]
    made = bytearray(elf_file([ElfSection(".text", AT, 64, size)], symbols))
    (headers,) = struct.unpack_from("<Q", made, 0x28)
    (table,) = struct.unpack_from("<Q", made, headers + 2 * 64 + 0x18)
    for i in range(n):
        struct.pack_into("<Q", made, table + 24 * (i + 1) + 16, size - 16 * i)
    path = tmp_path / "program"
    path.write_bytes(made)
    rows = "".join(f"fn=f{i}\n{AT + 16 * i:#x} 1 5\n" for i in range(n))
    profile = tmp_path / "callgrind.out.1"
    profile.write_text(f"version: 1\ncreator: x\npositions: instr line\nevents: Ir\nob={path}\nfl=a.c\n{rows}")
    asked: list[int] = []

    def disassembled(tool: str, path: str, start: int, stop: int, refused: set[str]) -> Iterator[tuple[int, str]]:
        asked.append(stop - start)
        return iter([(start, "nop")])

    monkeypatch.setattr(annotate, "find_tool", lambda: "objdump")
    monkeypatch.setattr(annotate, "disassemble", disassembled)
    found = annotate.annotate(profile, asm=True, threshold=0, n=n)
    for listing in found.listings:
        assert sum(len(block) for block in listing.blocks()) == 1
    assert len(asked) == n and asked[0] > 90_000
    assert sum(asked) < 8 * len(made)


def tool(tmp_path: Path, code: str) -> str:
    path = tmp_path / "objdump"
    path.with_suffix(".py").write_text(f"import sys, time\n{code}")
    path.write_text(f'#!/bin/sh\nexec {PYTHON} {path}.py "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_a_disassembler_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "_PATIENCE", 0.5)
    command = tool(tmp_path, "print('  10:\\tnop', flush=True)\ntime.sleep(1000)")
    code = disassembly.disassemble(command, "program", 0, 100, set())
    assert next(code) == (0x10, "nop")
    with pytest.raises(FastprofError, match=r"program: objdump: no output for 0\.5 seconds"):
        next(code)


def test_a_disassembler_that_writes_long_lines(tmp_path: Path) -> None:
    command = tool(tmp_path, "print('  10:\\tcall ' + 'x' * 10**8)\nprint('  12:\\tret')\nprint('  13:\\tnop', end='')")
    code = [*disassembly.disassemble(command, "program", 0, 100, set())]
    assert [(address, len(text)) for address, text in code] == [(0x10, (1 << 17) - 6), (0x12, 3), (0x13, 3)]
