"""Sorted runs of call arcs, packed (csrc/bridges/fold/arc_runs.h)."""

from __future__ import annotations

from array import array
from contextlib import ExitStack

from fastprof.bridges.sums import sorted_runs
from fastprof.bridges.sums.sorted_runs import Halt
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Check, NamedTuple, Pull, fp_model
from fastprof.core.spill import Spilled

_RECORDS = 4096  # records packed at a time
_MEMORY = 4 << 20  # bytes used to merge all runs into one


class ArcRun(NamedTuple):
    """A run and its blocks: the group and key of each block's first record, and its offset in the run."""

    file: Spilled
    offset: int
    nbytes: int
    n_arcs: int
    groups: array[int]
    keys: array[int]
    offsets: array[int]


class ArcRuns:
    """Runs of arcs in an unnamed temporary file.  `model` has their functions."""

    def __init__(self, model: fp_model, check: Check) -> None:
        self.model, self.check = model, check
        self.runs: list[ArcRun] = []
        self.halt = Halt()
        self._file = Spilled()

    def __len__(self) -> int:
        return len(self.runs)

    def add(self, pull: Pull) -> None:
        """Write the records from `pull` as a new run."""
        if len(self.runs) == sorted_runs.MOST_RUNS:
            self._join()
        file, n_arcs, index = self._file, 0, array("Q")
        begin, pack, n_blocks = file.nbytes, ffi.new("struct fp_arc_pack *"), ffi.new("uint32_t *")
        room = _RECORDS * lib.FP_ARC_PACKED
        words = ffi.new("uint64_t[]", _RECORDS * lib.FP_ARC_WIDTH)
        packed = ffi.new("uint8_t[]", room + lib.FP_ARC_SLACK)
        blocks = ffi.new("struct fp_arc_block[]", 1 + room // lib.FP_ARC_BLOCK)
        while got := pull(words, len(words)):
            self.halt.check()
            nbytes = lib.fp_arc_pack(pack, words, got, packed, blocks, n_blocks)
            file.append(memoryview(ffi.buffer(packed, nbytes)))
            index.frombytes(ffi.buffer(blocks, n_blocks[0] * ffi.sizeof("struct fp_arc_block")))
            n_arcs += got // lib.FP_ARC_WIDTH
        self.runs.append(ArcRun(file, begin, int(pack.nbytes), n_arcs, index[0::3], index[1::3], index[2::3]))

    def _join(self) -> None:
        """Merge all runs into one."""
        from fastprof.bridges.fold.ranges import Ranges

        joined = ArcRuns(self.model, self.check)
        joined.halt = self.halt
        with ExitStack() as threads:
            joined.add(Ranges(self, 0, _MEMORY, threads).pull)
        self.runs, self._file = joined.runs, joined._file
