"""Samples, spread evenly over the straight pieces of code that they are in.

    0x1140  mov    3 samples      each of the four instructions was executed equally often: 6 samples / 4,
    0x1144  add    0              which are 1,500 executions each
    0x1148  cmp    2
    0x114b  jne    1

A piece begins with the function, after a jump, and where a direct jump of the function leads.  Otherwise a line had the
count of the one instruction that was hit most, and the first instruction of a function, which states how often it is
called, hardly any.
"""

from __future__ import annotations

from bisect import bisect_right

from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.model import Model
from fastprof.formats.pgo.branches import Runs
from fastprof.formats.pgo.calls import JUMPS_KNOWN, jump_of
from fastprof.formats.pgo.symtab import functions
from fastprof.symbols.objects import ElfObject

if TYPE_CHECKING:
    from fastprof.formats.pgo.join import Spot

SCALE = 1000  # executions for each sample, so that few samples of a long piece are not rounded to none


class _Code:
    """The functions of a file, and their pieces."""

    def __init__(self, model: Model, elf: ElfObject) -> None:
        self._elf, self._runs = elf, Runs(model, elf)
        self._functions = [*functions(elf)] if elf.machine in JUMPS_KNOWN else []
        self._starts = [one.start for one in self._functions]
        self._pieces: dict[int, list[list[int]]] = {}

    def piece(self, address: int) -> list[int]:
        """The instructions of the piece around an address; the address alone outside of known functions."""
        at = bisect_right(self._starts, address) - 1
        if at < 0 or address >= self._starts[at] + self._functions[at].size:
            return [address]
        if at not in self._pieces:
            begin, size = self._starts[at], self._functions[at].size
            self._pieces[at] = self._cut(
                begin, min([size, *(start - begin for start in self._starts[at + 1 : at + 2])])
            )
        pieces = self._pieces[at]
        return pieces[bisect_right(pieces, address, key=lambda piece: piece[0]) - 1] if pieces else [address]

    def _cut(self, start: int, size: int) -> list[list[int]]:
        addresses = self._runs.instructions(start, size)
        begins = {start}
        jumped = False
        for address in addresses:
            if jumped:
                begins.add(address)
            jumped, target = jump_of(self._elf, address)
            begins.add(target)
        pieces: list[list[int]] = []
        for address in addresses:
            if address in begins:
                pieces.append([])
            pieces[-1].append(address)
        return pieces


def spread(model: Model, files: list[ElfObject], sums: dict[Spot, int]) -> dict[Spot, int]:
    """Executions of the instructions of all pieces with samples."""
    codes: dict[int, _Code] = {}
    pieces: dict[Spot, tuple[list[int], int]] = {}  # by their first instruction: all of them, samples
    for (file, address), samples in sums.items():
        if file not in codes:
            codes[file] = _Code(model, files[file])
        piece = codes[file].piece(address)
        first = file, piece[0]
        pieces[first] = piece, samples + (pieces[first][1] if first in pieces else 0)
    return {
        (file, address): max(SCALE * samples // len(piece), 1)
        for (file, _), (piece, samples) in pieces.items()
        for address in piece
    }
