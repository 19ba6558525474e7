"""../shared/tools/perf/unwind_ref.py, and our unwinder on its samples, stack by stack."""

from __future__ import annotations

import importlib.util
import struct
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from fastprof.core._c import ffi, lib
from fastprof.core.errors import SymbolError
from fastprof.core.log import Log
from fastprof.core.options import Options
from fastprof.symbols.elf import ElfFile
from fastprof.symbols.unwind import UnwindTable
from tests.support.paths import SHARED
from tests.support.stackdump import dump
from tests.support.unwinding import ENDS, PERF_BITS

Stack = tuple[list[tuple[int, bool]], str]  # (address, whether it is a return address) leaf first; how it ended

MACHINES = {"x86_64": 62, "aarch64": 183}


def reference() -> ModuleType:
    assert SHARED is not None
    folder = str(SHARED / "tools/perf")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location("unwind_ref", SHARED / "tools/perf/unwind_ref.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Unwinder:
    """Ours, on maps, registers and stacks of the reference."""

    def __init__(self, symfs: str, machine: str = "x86_64", by_frame_pointers: bool = False) -> None:
        self.symfs = symfs
        self.machine = machine
        flags = lib.FP_UNWIND_BY_FRAME_POINTERS if by_frame_pointers else 0
        self.c = ffi.gc(lib.fp_unwind_new(MACHINES[machine], flags), lib.fp_unwind_free)
        self.tables: dict[str, tuple[UnwindTable | None, int]] = {}
        self.frames = ffi.new("struct fp_unwind_frame[]", 1024)
        self.n, self.why = ffi.new("uint32_t *"), ffi.new("uint32_t *")
        self.find = ffi.callback("int(void *, uint64_t, struct fp_unwind_place *)", self._find)

    def _table(self, name: str) -> tuple[UnwindTable | None, int]:
        if name not in self.tables:
            self.tables[name] = self._open(name)
        return self.tables[name]

    def _open(self, name: str) -> tuple[UnwindTable | None, int]:
        content = reference().own_vdso() if name == "[vdso]" else None
        if content is None and not (name.startswith("/") and Path(self.symfs + name).is_file()):
            return None, lib.FP_UNWIND_NO_FILE
        elf = ElfFile(self.symfs + name, content)
        if elf.reason:
            return None, lib.FP_UNWIND_NO_FILE
        try:
            return UnwindTable(elf, len(self.tables) + 1), 0
        except SymbolError:
            return None, lib.FP_UNWIND_NO_TABLE

    def _find(self, _self: Any, address: int, place: Any) -> int:
        found = self.maps.find(address)
        if not found:
            return int(lib.FP_MORE)
        place.start, place.limit, place.offset = found[0], found[1], found[2]
        table, place.why_not = self._table(str(found[3]))
        place.table = table.c if table else ffi.NULL
        place.is_executable = bool(getattr(found[3], "x", True))
        place.word = 7
        return int(lib.FP_DONE)

    def unwind(self, maps: Any, registers: dict[int, int], stack: bytes, most: int) -> Stack:
        """`registers` by DWARF number."""
        bits = PERF_BITS[MACHINES[self.machine]]
        perf = sorted((bits.get(number, number), value) for number, value in registers.items())
        values = struct.pack(f"<{len(perf)}Q", *(value & (1 << 64) - 1 for _, value in perf))
        self.maps = maps
        kept = ffi.from_buffer("uint8_t[]", values), ffi.from_buffer("uint8_t[]", stack)
        sample = ffi.new("struct fp_unwind_sample *", [sum(1 << bit for bit, _ in perf), *kept, len(stack)])
        status = lib.fp_unwind_stack(
            self.c, sample, self.find, ffi.NULL, self.frames, most, self.n, self.why
        )  # fmt: skip
        assert status == lib.FP_DONE
        return [(self.frames[i].address, bool(self.frames[i].is_return)) for i in range(self.n[0])], ENDS[self.why[0]]


def compare(path: Path, symfs: str, *, by_frame_pointers: bool = False) -> tuple[Counter[str], list[Any]]:
    """Counts of the ends of stacks, ours and the reference's, and the stacks that differ."""
    peer = reference()
    ours = Unwinder(symfs, by_frame_pointers=by_frame_pointers)
    counts: Counter[str] = Counter()
    wrong: list[Any] = []
    theirs_of = peer.Unwinder.unwind

    def both(self: Any, maps: Any, registers: Any, stack: Any, limit: int) -> Any:
        frames, why = theirs_of(self, maps, registers, stack, limit)
        got, our_why = ours.unwind(maps, registers, stack, limit)
        counts["frames"] += len(got)
        counts[f"{our_why} | {why}"] += 1
        if got != [(pc, look != pc) for pc, look in frames]:
            wrong.append((got, our_why, frames, why))
        return frames, why

    peer.Unwinder.unwind = both
    options = {
        "symfs": symfs,
        "vdso": None,
        "fp": by_frame_pointers,
        "max": 127,
        "no_dso_mem": False,
        "keep_bad": False,
    }
    peer.samples(str(path), options)
    return counts, wrong


class Frame(NamedTuple):
    """A user frame as fastprof reads it."""

    address: int
    is_return: bool
    in_file: int  # the instruction's offset in the file; its address if nothing is mapped


def user_stacks(path: Path, symfs: str) -> tuple[list[list[Frame]], Log]:
    """The user frames of each sample, leaf first."""
    read = dump(path.read_bytes(), "perf", options=Options(sysroot=symfs))
    stacks = []
    for frames, _, _ in read.rows:
        stack = []
        for mapping, address, flags, _ in frames:
            is_return = bool(flags & lib.FP_FRAME_RETURN_ADDRESS)
            start, offset = (mapping[2], mapping[4]) if mapping else (0, 0)
            if address < 1 << 63:
                stack.append(Frame(address, is_return, address - is_return - start + offset))
        stacks.append(stack)
    return stacks, read.log


def reference_stacks(path: Path, symfs: str) -> list[list[tuple[int, bool]]]:
    peer = reference()
    options = {"symfs": symfs or None, "vdso": None, "fp": True, "max": 4096, "no_dso_mem": False, "keep_bad": False}
    found, _ = peer.samples(str(path), options)
    return [[(pc, look != pc) for pc, look in raw] for *_, raw, _ in found]
