"""Write the seeds of symbols_fuzz.c: the debug sections of small programs.  python -m tests.fuzz.make_symbols_seeds"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

from fastprof.symbols.elf import ElfFile

SOURCE = """
struct S { int f(int); static int g(int); };
static inline int twice(int x) { return x + x; }
int S::f(int x) { return twice(x) + 1; }
#line 7 "other/x.h"
int S::g(int x) { for (int i = 0; i < x; i++) x += twice(i); return x; }
extern "C" int _start() { return S::g(S().f(3)); }
"""
# as in enum fp_dwarf_section
SECTIONS = ("line", "line_str", "str", "str_offsets", "info", "abbrev", "addr", "ranges", "rnglists")
KALLSYMS = b"ffffffff81000000 T _text\nffffffffc05c1000 t f\t[m]\nffffffff81000000 T first\n0000000000000000 A zero\n"
MAPS = b"55d0-55d2 r-xp 1000 fe:00 17    /usr/bin/a b\n7f00-7f10 r--p 0 00:00 0\n7f10-7f20 rwxs 0 00:00 0 \n0-1 r-xp\n"
BUILDS = {
    "gcc-2": ("g++", "-O1", "-gdwarf-2"),
    "gcc-5": ("g++", "-O2", "-g", "-ffunction-sections"),
    "clang-3": ("clang++-19", "-O1", "-gdwarf-3"),
    "clang-4": ("clang++-19", "-O2", "-gdwarf-4"),
    "clang-5": ("clang++-19", "-O1", "-g"),
    "clang-5-64": ("clang++-19", "-O1", "-g", "-gdwarf64"),
    "gcc-4-sections": ("g++", "-O2", "-gdwarf-4", "-ffunction-sections"),
    "clang-5-sections": ("clang++-19", "-O2", "-g", "-ffunction-sections"),
    "clang-lines": ("clang++-14", "-O2", "-gline-tables-only"),
}


def main() -> None:
    seeds = Path(__file__).parent / "seeds"
    for name, (compiler, *options) in BUILDS.items():
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "s.cpp").write_text(SOURCE)
            command = [compiler, *options, f"-ffile-prefix-map={folder}=/src", "-nostdlib", "s.cpp", "-o", "s"]
            subprocess.run(command, cwd=folder, check=True)
            elf = ElfFile(f"{folder}/s")
            parts = [bytes(elf.data(elf.section(f".debug_{section}"))) for section in SECTIONS]
        flags = 4 if name in ("gcc-2", "clang-5") else 0
        seed = struct.pack(f"<B{len(SECTIONS)}H", flags, *map(len, parts)) + b"".join(parts)
        (seeds / f"symbols-{name}").write_bytes(seed)
    for name, text in (("kallsyms", KALLSYMS), ("maps", MAPS)):
        (seeds / f"symbols-{name}").write_bytes(struct.pack(f"<B{len(SECTIONS)}H", *bytes(1 + len(SECTIONS))) + text)


main()
