"""annotate --asm: instructions with their costs, of real programs and through the real disassemblers."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import report
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.verbs.annotate import disassembly
from fastprof.verbs.annotation import Annotation, Instruction, Listing
from tests.differential.peers import need
from tests.differential.test_report_browser import drive, value
from tests.support.graphs import read_parts
from tests.support.pages import Page
from tests.support.paths import needs_shared, shared_data

TOOLS = ("llvm-objdump", "objdump")
SOURCE = """\
volatile int sink;
__attribute__((noinline)) int leaf(int n) { sink += n; return n * 3; }
__attribute__((noinline)) int twice(int n) { return leaf(n) + leaf(n + 1); }
int main(void) { for (int i = 0; i < 100; i++) twice(i); return 0; }
"""


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """One of the disassemblers, as the only one available."""
    path = need(request.param, *([f"{request.param}-19"] if request.param.startswith("llvm") else []))
    only = tmp_path / "only"
    only.mkdir()
    (only / request.param).symlink_to(path)
    monkeypatch.setattr(disassembly, "_TOOLS", (str(only / request.param),))
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asm")
    (folder / "a.c").write_text(SOURCE)
    subprocess.run([need("gcc"), "-g", "-O1", "-fno-inline", "a.c", "-o", "a"], cwd=folder, check=True)
    return folder / "a"


@pytest.fixture(scope="module")
def profile(program: Path) -> Path:
    path = program.parent / "callgrind.out.1"
    command = ["--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={path}", str(program)]
    subprocess.run([need("valgrind"), *command], check=True, capture_output=True)
    return path


def instructions(listing: Listing) -> list[Instruction]:
    return [line for block in listing.blocks() for line in block if isinstance(line, Instruction)]


def named(found: Annotation) -> dict[str, Listing]:
    return {listing.name: listing for listing in found.listings}


def test_what_callgrind_counted_stands_at_its_instructions(tool: str, program: Path, profile: Path) -> None:
    found = fastprof.annotate(profile, ["a.c"], asm=True)
    assert set(named(found)) == {"main", "twice", "leaf"}
    rows = [row for part in read_parts(profile)[0] for row in part.rows]
    dump = subprocess.run([tool, "-d", str(program)], capture_output=True, text=True, check=True).stdout
    there = {int(address, 16) for address in re.findall(r"^ *([0-9a-f]+):", dump, re.MULTILINE)}
    for name, listing in named(found).items():
        expected = Counter[int]()
        for row in rows:
            if row.function.name.decode() == name and row.kind == "cost":
                expected[row.position[0]] += row.values[0]
        shown = instructions(listing)
        assert {line.address: line.values[0] for line in shown if line.values} == expected
        assert {line.address for line in shown} <= there
        assert listing.path == str(program) and sum(expected.values()) == listing.values[0]
        assert all(line.file.endswith("/a.c") and line.line for line in shown if line.values)
    calls = [(line, call) for line in instructions(named(found)["twice"]) for call in line.calls]
    assert [(call.times, call.function) for _, call in calls] == [(100, "leaf"), (100, "leaf")]
    assert all("call" in str(line.text) for line, _ in calls)
    assert found.log.warnings == []


def test_names_of_callees_are_demangled_within_limits(tool: str, tmp_path: Path) -> None:
    """A tool with demangling enabled crashed with a segmentation fault, and the listing was lost."""
    bomb = "_Z1f" + "P" * 100_000 + "i"
    (tmp_path / "a.s").write_text(
        ".globl main\n.type main, @function\nmain: call _Z4calli\ncall 1f\nret\n.size main, .-main\n"
        f".type _Z4calli, @function\n_Z4calli: ret\n.type {bomb}, @function\n{bomb}: 1: ret\n"
    )
    subprocess.run([need("gcc"), "-nostdlib", "-Wl,-e,main", "-no-pie", "a.s", "-o", "a"], cwd=tmp_path, check=True)
    symbols = subprocess.run([need("nm"), "a"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    found = re.search(r"^([0-9a-f]+) T main$", symbols, re.MULTILINE)
    assert found
    profile = tmp_path / "callgrind.out.1"
    head = f"positions: instr line\nevents: Ir\nob={tmp_path / 'a'}\nfl=a.s\nfn=main\n"
    profile.write_text(f"{head}0x{found[1]} 1 3\n")
    listed = fastprof.annotate(profile, asm=True)
    calls = [str(line.text) for line in instructions(listed.listings[0]) if "call" in str(line.text)]
    assert "<call(int)>" in calls[0] and f"<{bomb}>" in calls[1]
    assert [w for w in listed.log.warnings if "demangle" in w] == [
        f"{tmp_path / 'a'}: 1 name is too complex to demangle, kept as it is"
    ]


def test_context_of_instructions(tool: str, profile: Path) -> None:
    found = fastprof.annotate(profile, ["a.c"], asm=True, context=0)
    assert all(line.values or line.calls for listing in found.listings for line in instructions(listing))


@needs_shared
def test_samples_stand_at_their_instructions(tool: str) -> None:
    """A return address belongs to the call before it; run-time addresses become addresses in the file."""
    folder = shared_data("gperftools")
    binary = str(folder / "bin" / "threads")
    options: dict[str, Any] = {"symbols": [binary], "threshold": 0.0}
    lines = fastprof.annotate(folder / "threads" / "threads.prof", **options)
    found = fastprof.annotate(folder / "threads" / "threads.prof", asm=True, **options)
    assert found.totals == lines.totals
    mine = [listing for listing in found.listings if listing.path == binary]
    assert len(mine) > 5
    n = 0
    for listing in mine:
        shown = instructions(listing)
        assert sum(line.values[0] for line in shown if line.values) == listing.values[0]
        for line in shown:
            n += len(line.calls)
            assert not line.calls or "call" in str(line.text) or "jmp" in str(line.text), line
    assert n > 10
    assert not any("another build" in warning for warning in found.log.warnings)


def test_another_build(tool: str, program: Path, profile: Path, tmp_path: Path) -> None:
    """Costs inside of instructions are reported, and counted at the instruction around them."""
    shifted = tmp_path / "shifted"
    address = min(
        row.position[0] for row in read_parts(profile)[0][0].rows if row.function.name == b"leaf" and row.values
    )
    head = f"positions: instr line\nevents: Ir\nob={program}\nfl=a.c\nfn=leaf\n"
    shifted.write_text(f"{head}{address:#x} 1 3\n{address + 1:#x} 1 4\n0x0 0 5\n")
    found = fastprof.annotate(shifted, asm=True, context=0)
    shown = instructions(found.listings[0])
    assert [line.address for line in shown if line.values] == [0, address, *([address + 1] if len(shown) == 3 else [])]
    assert sum(line.values[0] for line in shown if line.values) == 12
    assert any("another build" in warning for warning in found.log.warnings) == (len(shown) == 2)


def test_programs_that_are_not_there(tool: str, program: Path, profile: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.write_bytes(profile.read_bytes().replace(str(program).encode(), b"/nowhere/a"))
    found = fastprof.annotate(moved, ["a.c"], asm=True)
    assert found.listings == [] and len(found.missing) == 3
    assert found.log.warnings == ["/nowhere/a: No such file or directory"]
    again = fastprof.annotate(moved, ["a.c"], asm=True, symbols=[str(program)])
    assert len(again.listings) == 3 and again.missing == []
    root = tmp_path / "root"
    (root / "nowhere").mkdir(parents=True)
    (root / "nowhere" / "a").write_bytes(program.read_bytes())
    assert len(fastprof.annotate(moved, ["a.c"], asm=True, sysroot=str(root)).listings) == 3


def test_a_profile_without_addresses(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "callgrind.out.1"
    path.write_text("events: Ir\nob=/bin/true\nfl=a.c\nfn=f\n1 1\n")
    with pytest.raises(FastprofError, match=r"callgrind.out.1: no instruction addresses"):
        fastprof.annotate(path, asm=True)


def test_no_disassembler(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "_TOOLS", ("no-such-objdump", "nor-this"))
    with pytest.raises(FastprofError, match="not installed: no-such-objdump, nor-this"):
        fastprof.annotate(profile, asm=True)


def test_a_disassembler_that_fails(
    profile: Path, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for script, said in (
        ("echo 'cannot be read' >&2; exit 1", "cannot be read"),
        ("yes | head -c 300000 >&2", "y"),
        ("exit 0", "no instructions from 0x"),
    ):
        fake = tmp_path / "fake"
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(disassembly, "_TOOLS", (str(fake),))
        found = fastprof.annotate(profile, ["a.c"], asm=True)
        for listing in found.listings:
            shown = instructions(listing)  # the costs, without texts
            assert {line.text for line in shown} == {None}
            assert sum(line.values[0] for line in shown if line.values) == listing.values[0]
        assert any(warning.startswith(f"{program}: fake: {said}") for warning in found.log.warnings)


def test_names_of_programs_are_no_commands(
    tool: str, program: Path, profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a; touch made", "$(touch made)", "-d", "--help"):
        odd = tmp_path / name
        odd.write_bytes(program.read_bytes())
        odd.chmod(0o755)
        moved = tmp_path / "moved"
        moved.write_bytes(profile.read_bytes().replace(f"{program}\n".encode(), f"/nowhere/{name}\n".encode()))
        found = fastprof.annotate(moved, ["a.c"], asm=True, symbols=[name])
        assert [listing.path for listing in found.listings] == [name] * 3
        assert all(instructions(listing) for listing in found.listings)
    assert not (tmp_path / "made").exists()


def test_the_page_of_instructions(tool: str, profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", str(profile), "--asm", "a.c"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^ *Ir +% +address +line$", out, re.MULTILINE)
    assert re.search(r"^ *100 +[0-9.]+ +[0-9a-f]+ +a\.c:3 +call", out, re.MULTILINE)
    assert re.search(r"^ *[\d,]+ +[0-9.]+ +=> leaf \(100x\)$", out, re.MULTILINE)


def test_the_page_has_the_instructions(profile: Path, tmp_path: Path) -> None:
    """`report --asm`: those of annotate, with their costs, and a panel for the selected function."""
    need("llvm-objdump", "llvm-objdump-19", "objdump")
    report(profile, tmp_path / "page.html", asm=True)
    found = fastprof.annotate(profile, asm=True, n=40)
    shown = {name: lines for _, name, _, _, lines in Page(tmp_path / "page.html").head["asm"]["found"]}
    assert {"leaf", "twice"} <= shown.keys() == {listing.name for listing in found.listings}
    for listing in found.listings:
        costs = {f"{one.address:x}": one.values[0] for one in instructions(listing) if one.values}
        assert {line[0]: line[2][0] for line in shown[listing.name] if line and line[2][0]} == costs
    choose = "fastprof.table.order.find(i => fastprof.view.name(i) === 'leaf')"
    rows = "[...document.querySelectorAll('.asm tbody tr')].map(row => row.children[1].textContent)"
    _, cells = drive(tmp_path / "page.html", value(f"fastprof.table.choose({choose})"), value(rows))
    assert cells == [f"{line[2][0]:,}" if line[2][0] else "" for line in shown["leaf"] if line]


def test_what_has_no_instructions(profile: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no effect: a picture has no source lines or instructions"):
        report(profile, tmp_path / "flame.svg", asm=True)
    with pytest.raises(UsageError, match="reads the profile twice"):
        report("-", tmp_path / "page.html", asm=True)
    (tmp_path / "a.callgrind").write_text("events: Ir\nfn=f\n1 5\n")
    with pytest.raises(FastprofError, match="no instruction addresses"):
        report(tmp_path / "a.callgrind", tmp_path / "page.html", asm=True)
    assert not (tmp_path / "page.html").exists()
