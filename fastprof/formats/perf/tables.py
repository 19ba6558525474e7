"""Unwind rules of mapped files, for copies of stacks (csrc/symbols/unwind.h)."""

from __future__ import annotations

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, fp_unwind_table
from fastprof.core.errors import SymbolError
from fastprof.formats.perf.files import Files

if TYPE_CHECKING:
    from fastprof.symbols.elf import ElfFile
    from fastprof.symbols.objects import ElfObject
    from fastprof.symbols.unwind import UnwindTable

MACHINES = {"x86_64": 62, "aarch64": 183, "arm64": 183}

# How stacks end, by enum fp_unwind_end.
ENDS = {
    lib.FP_UNWIND_COMPLETE: "complete",
    lib.FP_UNWIND_OUTSIDE: "outside the copied stack",
    lib.FP_UNWIND_NO_MAP: "outside all mappings",
    lib.FP_UNWIND_NO_FILE: "in a file that was not found",
    lib.FP_UNWIND_NO_TABLE: "in code without rules",
    lib.FP_UNWIND_BROKEN: "at a damaged rule",
    lib.FP_UNWIND_NOT_EXECUTABLE: "at a non-executable address",
    lib.FP_UNWIND_NO_PROGRESS: "in a loop",
    lib.FP_UNWIND_TOO_DEEP: "at the depth limit",
}


class Tables:
    """Unwind tables by file; each file is read once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._found: dict[tuple[bytes, bytes], tuple[UnwindTable | None, int]] = {}

    def find(self, path: bytes, build_id: bytes) -> tuple[fp_unwind_table, int]:
        """The table of a mapped file; NULL and the reason if there is none."""
        key = path, build_id
        if key not in self._found:
            self._found[key] = self._read(path, build_id)
        table, why_not = self._found[key]
        return (table.c if table else ffi.NULL), why_not

    def _read(self, path: bytes, build_id: bytes) -> tuple[UnwindTable | None, int]:
        from fastprof.symbols.objects import ElfObject
        from fastprof.symbols.unwind import UnwindTable

        elf = self._files.find(path, build_id)
        if not isinstance(elf, ElfObject):
            return None, int(lib.FP_UNWIND_NO_FILE)
        try:
            return UnwindTable(elf, len(self._found), _debug_file(elf)), 0
        except SymbolError:
            return None, int(lib.FP_UNWIND_NO_TABLE)


def _debug_file(elf: ElfObject) -> ElfFile | None:
    """The debug file of a stripped file, which may have .debug_frame."""
    from fastprof.symbols.elf import ElfFile

    path = "" if elf.section(".symtab") or elf.section(".debug_frame") else elf.debug_path()
    return ElfFile(path) if path else None
