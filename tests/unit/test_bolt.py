"""Profiles for BOLT: branches as addresses and as symbols, counts without branches."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import UsageError
from fastprof.formats.pgo.bolt import Functions
from fastprof.formats.pgo.calls import _jump_of_aarch64, _jump_of_x86
from fastprof.symbols.objects import ElfObject
from tests.support.paths import CORPUS

FOLDER = CORPUS / "llvm-profile"
LBR, PROGRAM = FOLDER / "lbr.data.xz", FOLDER / "lbr"


def written(folder: Path, source: Path = LBR, program: Path = PROGRAM, **options: object) -> list[str]:
    output = folder / "out"
    fastprof.convert(source, output, to="bolt", symbols=[str(program)], **options)  # type: ignore[arg-type]
    return output.read_text().splitlines()


def test_branches_and_runs(tmp_path: Path) -> None:
    lines = written(tmp_path)
    taken, runs = (Counter[tuple[int, int]]() for _ in range(2))
    for line in lines:
        kind, source, target, times, *missed = line.split()
        (taken if kind == "B" else runs)[int(source, 16), int(target, 16)] += int(times)
        assert len(missed) == (kind == "B") and (kind == "B" or 0 < int(source, 16) <= int(target, 16))
    assert taken.total() > 4000 and runs.total() > 4000
    assert lines[0].startswith("B 0 4") and lines == sorted(lines, key=lambda line: line[0])
    with fastprof.open(LBR, branches=True, symbolize=False) as profile:
        sums = [sum(batch.values(k)[i] for batch in profile.batches() for i in range(len(batch))) for k in range(3)]
    assert 0 < sums[0] - taken.total() < 200 and 0 < sums[2] - runs.total() < 200  # in libc and the kernel


def test_symbols_and_blocks(tmp_path: Path) -> None:
    assert sorted(written(tmp_path, bolt={"format": "fdata"})) == sorted(
        (FOLDER / "lbr.fdata").read_text().splitlines()
    )


def test_counts_without_branches(tmp_path: Path) -> None:
    small = FOLDER / "small"
    lines = written(tmp_path, FOLDER / "small.callgrind.xz", small)
    assert lines[0] == "no_lbr Ir" and "1 _ZN3AddD0Ev 0 60" in lines
    assert lines[1:] == sorted(lines[1:], key=lambda line: (line.split()[1], int(line.split()[2], 16)))
    whole = sum(int(line.split()[3]) for line in lines[1:])
    (counted,) = (
        r.self for r in fastprof.top(FOLDER / "small.callgrind.xz", by="object", n=0).rows if r.object[-2:] == "/p"
    )
    assert 0.99 * counted < whole <= counted
    with pytest.raises(UsageError, match=r"counts of instructions, but no branches: .*format.*fdata holds those"):
        written(tmp_path, FOLDER / "small.callgrind.xz", small, bolt={"format": "preaggregated"})


def test_other_formats_have_options_of_the_same_name(tmp_path: Path) -> None:
    """The value decides; an unknown one is none of all."""
    fastprof.convert(LBR, tmp_path / "a.fdata", symbols=[str(PROGRAM)], format="fdata")  # type: ignore[call-arg]
    assert (tmp_path / "a.fdata").read_text().startswith("0 [unknown] 0 1 ")
    with pytest.raises(UsageError, match="'gcov' is not one of text, binary, extbinary"):
        fastprof.convert(LBR, tmp_path / "b.fdata", symbols=[str(PROGRAM)], format="gcov")  # type: ignore[call-arg]


def test_a_program_that_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no row can be written as bolt: .*instructions? of objects? that w"):
        fastprof.convert(LBR, tmp_path / "out.preagg")
    assert not [*tmp_path.iterdir()]


def test_names_of_functions() -> None:
    functions = Functions(ElfObject(PROGRAM))
    names = {one.name for one in functions._functions}
    assert {b"deflate", b"build_tree/1", b"longest_match"} <= names
    main = functions.find(functions._functions[0].start)
    assert main and functions.find(main.end - 1) == main and functions.find(0) is None
    stub = functions.find(0x400A80)
    assert stub and stub.name == b"free@PLT" and stub.at(0x400A80) == b"1 free@PLT 0"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("74 10", (True, 0x1012)),
        ("eb fe", (True, 0x1000)),
        ("e9 fb ff ff ff", (True, 0x1000)),
        ("0f 84 10 00 00 00", (True, 0x1016)),
        ("66 e9 00 01 00 00", (True, 0x1106)),
        ("c3", (True, 0)),
        ("f3 c3", (True, 0)),
        ("ff 24 c5 00 00 00 00", (True, 0)),
        ("ff d0", (False, 0)),  # a call
        ("e8 00 00 00 00", (False, 0)),
        ("", (False, 0)),
    ],
)
def test_jumps_of_x86(code: str, expected: tuple[bool, int]) -> None:
    assert _jump_of_x86(bytes.fromhex(code), True, 0x1000) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (0x14000004, (True, 0x1010)),
        (0x17FFFFFF, (True, 0xFFC)),
        (0x54000040, (True, 0x1008)),
        (0xB4FFFFE0, (True, 0xFFC)),
        (0x36000080, (True, 0x1010)),
        (0xD65F03C0, (True, 0)),
        (0xD61F0200, (True, 0)),
        (0x94000001, (False, 0)),  # bl
        (0xD503201F, (False, 0)),  # nop
    ],
)
def test_jumps_of_aarch64(word: int, expected: tuple[bool, int]) -> None:
    assert _jump_of_aarch64(word, 0x1000) == expected


def test_names_that_lines_cannot_hold_are_replaced(tmp_path: Path) -> None:
    out = io.BytesIO()
    source = FOLDER / "small.callgrind.xz"
    fastprof.convert(source, out, to="bolt", symbols=[str(FOLDER / "small")], rename_value=("Ir=two words",))
    assert out.getvalue().startswith(b"no_lbr two_words\n")
