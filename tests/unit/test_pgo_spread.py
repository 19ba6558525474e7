"""Samples spread over straight pieces of code."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

import fastprof
from fastprof.core._typing import TYPE_CHECKING
from fastprof.core.model import Model
from fastprof.formats.pgo import branches
from fastprof.formats.pgo.branches import Runs
from fastprof.formats.pgo.join import Join
from fastprof.formats.pgo.spread import SCALE, spread
from fastprof.symbols.elf import Segment
from fastprof.symbols.objects import ElfObject
from tests.support.paths import CORPUS

if TYPE_CHECKING:
    import pytest

    from fastprof.core._c import fp_counts
    from fastprof.formats.pgo.join import Spot

FOLDER = CORPUS / "llvm-profile"


def test_exact_counts_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Callgrind's counts of each instruction are an oracle: those of one piece are equal already.

    Except in calls of libraries, to which it adds the stubs, and after calls that do not return.
    """
    seen: list[tuple[dict[Spot, int], dict[Spot, int]]] = []
    sums = Join.sums

    def noted(self: Join, counts: fp_counts) -> tuple[dict[Spot, int], dict[int, Spot]]:
        found, spots = sums(self, counts)
        seen.append((dict(found), spread(self._model, self.files, found)))
        return found, spots

    monkeypatch.setattr(Join, "sums", noted)
    fastprof.convert(FOLDER / "small.callgrind.xz", tmp_path / "a.llvmprof", symbols=[str(FOLDER / "small")])
    ((exact, mine),) = seen
    right = {spot for spot, n in mine.items() if n == SCALE * exact.get(spot, 0)}
    assert len(mine) - len(right) <= 67 and len(right) > 350
    total = sum(exact.values())
    assert sum(exact[spot] for spot in right) > 0.999 * total
    assert abs(sum(mine.values()) / SCALE - total) < 1


def test_samples_count_how_often_functions_are_entered(tmp_path: Path) -> None:
    """By the first instruction's piece: few samples hit that instruction itself."""
    source, output = tmp_path / "a.pb.gz", tmp_path / "a.llvmprof"
    fastprof.convert(FOLDER / "lbr.data.xz", source, symbolize=False)
    log = fastprof.convert(source, output, symbols=[str(FOLDER / "lbr")])
    lines = output.read_text().splitlines()
    heads = {name: int(head) for name, _, head in (line.split(":") for line in lines if line[0] != " ")}
    assert heads["longest_match"] and heads["send_bits"] and not heads["updcrc"]  # which loops for long
    (first,) = (line for line, before in zip(lines[1:], lines, strict=False) if before.startswith("send_bits:"))
    assert first.endswith(f": {heads['send_bits']}")
    assert log.facts["coverage"] > 0.99


def test_code_of_a_file_that_was_cut_off() -> None:
    """A segment may state more bytes than the file has."""
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 4096, 4096, 1 << 30, 1 << 30, 4096)
    elf = ElfObject("cut", content=head + load + b"\x90" * 8)
    runs = Runs(Model(), elf)
    assert runs.instructions(4096 + 120, 8) == [*range(4216, 4224)]
    assert runs.instructions(4096 + 120, 9) == runs.instructions(4096, 1 << 20) == []


def test_code_that_cannot_be_decoded_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise lines that were not executed would be missing."""
    real = branches.lib

    class Full:
        def __getattr__(self, name: str) -> object:
            return (lambda *_: real.FP_E_NOMEM) if name == "fp_pgo_instructions" else getattr(real, name)

    segment = Segment(address=4096, offset=0, file_size=8, memory_size=8, executable=True)
    elf = SimpleNamespace(machine=62, segments=[segment], content=b"\x90" * 8)
    runs = Runs(Model(), elf)  # type: ignore[arg-type]
    assert len(runs.instructions(4096, 8)) == 8
    monkeypatch.setattr(branches, "lib", Full())
    with pytest.raises(MemoryError):
        runs.instructions(4096, 8)
