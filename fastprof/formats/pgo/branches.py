"""What branch stacks say: how often instructions were executed, and which branch called which function.

run 0x401000 .. 0x401010   100 times      each instruction there was executed 100 times
0x401010 -> 0x401200       100 times      the first instruction of `g`: 100 calls of it
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import NamedTuple, Pointer, fp_counts, fp_pgo_executed
from fastprof.core.c_memory import enough, owned, rows_of
from fastprof.core.errors import FastprofError, check_sums
from fastprof.core.model import Model
from fastprof.symbols.elf import Segment
from fastprof.symbols.objects import ElfObject

_MACHINES = {3: lib.FP_PGO_X86, 62: lib.FP_PGO_X86_64, 183: lib.FP_PGO_WORDS, 21: lib.FP_PGO_WORDS}
_MOST = (1 << 63) - 1


class Branch(NamedTuple):
    """A branch, or a run of code from its first instruction to its last one."""

    source: int  # frames
    target: int
    is_run: bool
    times: int
    mispredicted: int


def branches(counts: fp_counts) -> Iterator[Branch]:
    for row, (source, target, is_run) in rows_of(counts.branches):
        yield Branch(source, target, bool(is_run), counts.taken[row], counts.mispredicted[row])


def place_of(model: Model, frame: int) -> tuple[int, int]:
    """The mapping and the address of a frame."""
    row = model.row("frames", frame)
    return row[0], row[1] | row[2] << 32


class Runs:
    """Straight runs of code in one file, at link-time addresses."""

    def __init__(self, model: Model, elf: ElfObject) -> None:
        self._model, self._elf = model, elf
        self._counts: Counter[tuple[int, int]] = Counter()
        self.n_wrong = 0

    def add(self, start: int, end: int, count: int) -> None:
        self._counts[start, end] += count

    @property
    def n(self) -> int:
        return len(self._counts)

    def executed(self) -> Iterator[tuple[int, int, int]]:
        """The instructions of runs: address, number of executions, size.

        Errors: FastprofError for a machine whose instructions are not known.
        """
        runs = sorted(self._counts.items())
        starts = array("Q", [start for (start, _), _ in runs])
        ends = array("Q", [end for (_, end), _ in runs])
        counts = array("q", [min(count, _MOST) for _, count in runs])
        done = 0
        for segment in sorted(self._elf.segments, key=lambda one: one.address):
            first = bisect_left(starts, segment.address, done)
            done = bisect_left(starts, segment.address + segment.file_size, first)
            self.n_wrong += (first - done) * (not segment.executable)
            if first == done or not segment.executable:
                continue
            start, end = (ffi.from_buffer("uint64_t[]", one) + first for one in (starts, ends))
            count = ffi.from_buffer("int64_t[]", counts) + first
            e, err = self._new(), ffi.new("struct fp_err *")
            code = self._code(segment)
            status = lib.fp_pgo_execute(e, self._machine(), *code, start, end, count, done - first, err)
            check_sums(status, err, self._model, "straight runs")
            self.n_wrong += int(e.wrong + e.beyond)
            yield from ((e.address[i], e.count[i], e.size[i]) for i in range(e.n))

    def instructions(self, start: int, nbytes: int) -> list[int]:
        """The addresses of the instructions in a part of the code."""
        for segment in self._elf.segments:
            code, available, address = self._code(segment)
            if self._elf.machine in _MACHINES and segment.executable and 0 <= start - address <= available - nbytes:
                e = self._new()
                enough(lib.fp_pgo_instructions(e, self._machine(), code + (start - address), nbytes, start))
                return [e.address[i] for i in range(e.n)]
        return []

    def _new(self) -> fp_pgo_executed:
        return owned(lib.fp_pgo_executed_new(), "executed code")

    def _machine(self) -> int:
        machine = _MACHINES.get(self._elf.machine)
        if machine is None:
            raise FastprofError(f"{self._elf.path}: the instructions of this machine are not known")
        return int(machine)

    def _code(self, segment: Segment) -> tuple[Pointer[int], int, int]:
        """The bytes of a segment, their number, and their link-time address."""
        content = self._elf.content
        code = ffi.from_buffer("uint8_t[]", content) + min(segment.offset, len(content))
        return code, max(min(segment.file_size, len(content) - segment.offset), 0), segment.address
