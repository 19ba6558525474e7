"""Debug information that says it is far larger than it can be."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.support.elf import ElfSection, ElfSymbol, elf_file
from tests.support.paths import REPO

AT = 0x400000
CODE = """
import sys
from fastprof.symbols.objects import ElfObject
program = ElfObject(sys.argv[1])
program._build_symcache()
print(program.note, program.reason)
"""


def program(size: int, plain: bytes) -> bytes:
    """With a .debug_info of `plain`, compressed, that says it becomes `size` bytes."""
    packed = struct.pack("<IIQQ", 1, 0, size, 1) + zlib.compress(plain)
    sections = [ElfSection(".text", AT, 64, 64), ElfSection(".debug_info", 0, 128, len(packed), code=False)]
    made = bytearray(elf_file(sections, [ElfSymbol("main", AT, 1)]))
    made[128 : 128 + len(packed)] = packed
    (headers,) = struct.unpack_from("<Q", made, 0x28)
    struct.pack_into("<Q", made, headers + 2 * 64 + 8, 0x800)  # SHF_COMPRESSED
    return bytes(made)


@pytest.mark.parametrize(("size", "plain"), [(1 << 60, b"\0"), (1 << 33, b"\0"), (200 << 20, bytes(200 << 20))])
def test_the_size_is_not_believed(size: int, plain: bytes, tmp_path: Path) -> None:
    """symbolic asked for 2^60 bytes, which ended the process with a backtrace; 1 MB became 2 GB."""
    path = tmp_path / "program"
    path.write_bytes(program(size, plain))
    command = [sys.executable, "-c", CODE, str(path)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"bytes that become {size} when decompressed are not debug information" in done.stdout
