"""Unwinding against ../shared/tools/perf/unwind_ref.py: the rules of real files, and the stacks of recordings."""

from __future__ import annotations

import bisect
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastprof.symbols.elf import ElfFile
from fastprof.symbols.unwind import UnwindTable
from tests.differential.peers import need
from tests.reference import unwind as reference
from tests.support.paths import SHARED, needs_shared, shared_data, shared_folder
from tests.support.unwind_peer import compare, reference_stacks, user_stacks
from tests.support.unwinding import rules_of

pytestmark = needs_shared

REGISTERS = {
    62: ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "ra"],
    183: [*(f"x{n}" for n in range(31)), "sp", "pc"],
}
LIBRARIES = ["libc.so.6", "ld-linux-x86-64.so.2", "libstdc++.so.6"]
PROGRAM = Path(__file__).parent / "programs" / "stacks.cpp"
BUILDS = {
    "dynamic": ["-O2"],
    "static": ["-O1", "-static"],
    "debug-frame": ["-O2", "-g", "-gz=zlib", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
    "frame-pointers": ["-O1", "-fno-omit-frame-pointer", "-fno-asynchronous-unwind-tables", "-fno-exceptions"],
}
FOLDERS = ["perf-data/recorded/symfs", "heap/elf", "gperftools/bin", "xray"]


def files() -> list[Path]:
    found = [path for folder in FOLDERS for path in sorted(shared_folder(folder).rglob("*"))]
    unique = {path.resolve(): path for path in found if path.is_file()}
    return [path for path in unique if path.open("rb").read(5) == b"\x7fELF\2"]


def reference_rows(path: Path) -> Iterator[tuple[int, int, str]]:
    command = [sys.executable, str(SHARED / "tools/perf/unwind_ref.py"), "--rows", str(path)]  # type: ignore[operator]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if not line.startswith("#"):
            start, end, rule = line.split(" ", 2)
            yield int(start, 16), int(end, 16), rule


def row_of(start: int, end: int, text: str, machine: int) -> reference.Row | None:
    """A row printed by unwind_ref.py; None for a damaged function."""
    numbers = {name: number for number, name in enumerate(REGISTERS[machine])}
    cfa, *others = text.split()
    if cfa == "!":
        return None

    def number(name: str) -> int:
        return numbers[name] if name in numbers else int(name[1:])

    def value(text: str) -> reference.Value:
        if match := re.fullmatch(r"(expr|valexpr)\((\w*)\)", text):
            return {"expr": "at block", "valexpr": "is block"}[match[1]], bytes.fromhex(match[2])
        if match := re.fullmatch(r"([cv])([+-]\d+)", text):
            return {"c": "at", "v": "is"}[match[1]], int(match[2])
        return {"u": ("undefined",), "s": ("same",), "r": ("register", 0, 0), "#": ("same",)}[text[0]]

    of_cfa: reference.Value | None = None
    if cfa.startswith("expr"):
        of_cfa = "is block", bytes.fromhex(cfa[5:-1])
    elif cfa != "?":
        name, sign, offset = re.split("([+-])", cfa)
        of_cfa = "register", number(name), int(sign + offset)
    registers = {number(name): value(text) for name, _, text in (o.partition("=") for o in others if o != "S")}
    return reference.Row(start, end, of_cfa, registers, others[-1:] == ["S"])


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_rows(path: Path) -> None:
    check_rows(path)


@pytest.mark.parametrize("name", LIBRARIES)
def test_rows_of_this_system(name: str) -> None:
    for folder in ("/lib", "/usr/lib"):
        for path in {path.resolve() for path in Path(folder).glob(f"*/{name}")}:
            check_rows(path)


def test_rows_of_this_python() -> None:
    check_rows(Path(sys.executable).resolve())


def check_rows(path: Path) -> None:
    elf = ElfFile(path)
    ours = list(rules_of(UnwindTable(elf, 1), elf.machine))
    starts = [start for start, _ in ours]
    rows = sorted(reference_rows(path))
    wrong = []
    edges = set(starts)
    for start, end, rule in rows:
        i = bisect.bisect_right(starts, start) - 1
        row = row_of(start, end, rule, elf.machine)
        want = reference.rule_of(row, elf.machine) if row else "damaged"
        if i < 0 or ours[i][1] != want:
            wrong.append((hex(start), ours[i][1] if i >= 0 else None, want))
        edges -= {start, end}
    assert not wrong, wrong[:10]
    plts = {limit for s in elf.sections if s.name.startswith(".plt") for limit in (s.address, s.address + s.size)}
    assert not edges - plts, "rows begin where no row of the reference begins or ends"
    covered = sorted((start, end) for start, end, _ in rows)
    for (_, end), (start, _) in itertools.pairwise(covered):
        if end < start and end not in plts:
            assert ours[bisect.bisect_right(starts, end) - 1][1] == "gap"


def assert_equal_stacks(path: Path, symfs: str, *, by_frame_pointers: bool) -> None:
    counts, differing = compare(path, symfs, by_frame_pointers=by_frame_pointers)
    assert counts["frames"] > 100
    for ours, _, theirs, why in differing:
        # It has no rule for a PLT for which the linker left none, in which a sample or a signal found the program.
        expected = [(pc, look != pc) for pc, look in theirs]
        assert why == "no FDE" and not expected[-1][1] and ours[: len(expected)] == expected, (ours, theirs, why)


@pytest.mark.parametrize("by_frame_pointers", [False, True])
def test_recorded_stacks(by_frame_pointers: bool) -> None:
    folder = shared_data("perf-data", "recorded")
    assert_equal_stacks(folder / "cxx-dwarf.data", str(folder / "symfs"), by_frame_pointers=by_frame_pointers)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Recordings of programs/stacks.cpp, made at test time."""
    perf, compiler, folder = need("perf"), need("g++"), tmp_path_factory.mktemp("unwind")
    made = {}
    for name, options in BUILDS.items():
        program, data = folder / name, folder / f"{name}.data"
        subprocess.run([compiler, *options, str(PROGRAM), "-o", str(program)], check=True)
        command = [
            perf,
            "record",
            "-q",
            "-e",
            "cpu-clock:u",
            "-F",
            "1500",
            "--call-graph",
            "dwarf,4096",
            "-o",
            str(data),
        ]
        done = subprocess.run([*command, str(program)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"perf cannot record here: {done.stderr.strip()[:200]}")
        made[name] = data
    return made


@pytest.mark.parametrize("name", list(BUILDS))
def test_new_stacks(recordings: dict[str, Path], name: str) -> None:
    for by_frame_pointers in (False, True):
        assert_equal_stacks(recordings[name], "", by_frame_pointers=by_frame_pointers)


def assert_read_stacks(path: Path, symfs: str) -> None:
    """The whole reader, with our own maps, files and tables, against the reference."""
    ours, _ = user_stacks(path, symfs)
    theirs = reference_stacks(path, symfs)
    assert len(ours) == len(theirs) > 10
    for mine, reference_stack in zip(ours, theirs, strict=True):
        stack = [(frame.address, frame.is_return) for frame in mine]
        # Longer where the reference only looks for files below symfs, or has no rule for a PLT.
        assert stack[: len(reference_stack)] == reference_stack


def test_reader_of_a_recording() -> None:
    folder = shared_data("perf-data", "recorded")
    assert_read_stacks(folder / "cxx-dwarf.data", str(folder / "symfs"))


@pytest.mark.parametrize("name", list(BUILDS))
def test_reader(recordings: dict[str, Path], name: str) -> None:
    assert_read_stacks(recordings[name], "")


def test_beside_perf_script(recordings: dict[str, Path]) -> None:
    """perf misses a frame at the end of a copy, and prints -1 where it cannot continue."""
    recording = recordings["dynamic"]
    command = [need("perf"), "script", "--no-inline", "-F", "ip", "-i", str(recording)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = [[int(line, 16) for line in block.split()] for block in printed.split("\n\n") if block.strip()]
    ours, log = user_stacks(recording, "")
    assert len(ours) == len(theirs) > 20
    equal = 0
    for mine, stack in zip(ours, theirs, strict=True):
        known = stack[:-1] if stack[-1] == (1 << 64) - 1 else stack
        found = [frame.in_file for frame in mine]
        equal += found == known
        assert found[: len(known)] == known, (found, stack, log)
    assert equal > 0.95 * len(ours)
