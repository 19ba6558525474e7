"""Write the seeds of unwind_fuzz.c: tables of small programs.  python -m tests.fuzz.make_unwind_seeds"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

from fastprof.symbols.elf import ElfFile

SOURCE = """
void g(char *);
int leaf(int x) { return x * 3; }
int saved(int x) { char s[40]; g(s); return s[x]; }
int aligned(int x) { char s[64] __attribute__((aligned(64))); g(s); return s[x]; }
int any(int n) { char s[n]; g(s); return s[n / 2]; }
"""
RESTORE = ".cfi_startproc\n.cfi_signal_frame\n.cfi_escape 0x0f,4,0x77,0xa0,1,6\n"
RESTORE += ".cfi_escape 0x10,16,3,0x77,0xa8,1\n.cfi_escape 0x10,6,3,0x77,0xf8,0\nmov $15, %rax\nsyscall\n.cfi_endproc\n"
BUILDS = {
    "gcc-O0": (("gcc", "-O0", "-fasynchronous-unwind-tables"), "", 0),
    "gcc-O2": (("gcc", "-O2", "-fasynchronous-unwind-tables"), "", 2),
    "gcc-debug": (("gcc", "-O2", "-g", "-fno-asynchronous-unwind-tables"), "", 4),
    "clang-aarch64": (("clang-19", "--target=aarch64-linux-gnu", "-O1", "-fasynchronous-unwind-tables"), "", 1),
    "signal": (("gcc", "-O1"), RESTORE, 8),
}


def main() -> None:
    for name, (command, assembly, flags) in BUILDS.items():
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "s.S" if assembly else "s.c")
            source.write_text(assembly or SOURCE)
            subprocess.run([*command, "-c", source.name, "-o", "s.o"], cwd=folder, check=True)
            elf = ElfFile(f"{folder}/s.o")
            parts = [_placed(bytes(elf.data(elf.section(f".{part}_frame"))), part) for part in ("eh", "debug")]
            parts += [bytes(elf.data(elf.section(".text")))]
        stack = struct.pack("<32Q", *(0x20 * i if i % 2 else 0x7FFF0000 + 16 * i for i in range(32)))
        seed = struct.pack("<B4H", flags, *map(len, (*parts, stack))) + b"".join((*parts, stack))
        (Path(__file__).parent / "seeds" / f"unwind-{name}").write_bytes(seed)


def _placed(data: bytes, kind: str) -> bytes:
    """Place the functions of an unlinked section one after the other."""
    placed, at, start = bytearray(data), 0, 0
    while at + 8 <= len(data):
        (nbytes, number) = struct.unpack_from("<II", data, at)
        if number != (0 if kind == "eh" else 0xFFFFFFFF):
            wide = kind != "eh"
            (size,) = struct.unpack_from("<Q" if wide else "<I", data, at + (16 if wide else 12))
            value = start if wide else start - (0x4000 + at + 8) & 0xFFFFFFFF
            struct.pack_into("<Q" if wide else "<I", placed, at + 8, value)
            start += size
        at += 4 + nbytes
    return bytes(placed)


main()
