"""Massif and DHAT against the output of ms_print and Valgrind for the same run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import fastprof
from tests.differential.peers import need
from tests.support.paths import CORPUS, SHARED, needs_shared, shared_data

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
char *kept[64];
__attribute__((noinline)) static char *make(int n) { return memset(malloc((size_t)n), 1, (size_t)n); }
__attribute__((noinline)) static void grow(int n) { for (int i = 0; i < 32; i++) kept[i] = make(n + i); }
int main(void) { grow(1000); for (int i = 0; i < 16; i++) free(kept[i]); free(make(50)); return !kept[20]; }
"""


def massifs() -> list[Path]:
    found = sorted((CORPUS / "massif" / "good").iterdir())
    found = [path for path in found if path.read_bytes().startswith(b"desc:")]  # ms_print wants that
    if SHARED:
        found += sorted(shared_data("massif-dhat").glob("*.out"))
    return found


def check_with_ms_print(path: Path) -> None:
    """The table of snapshots, and the share of each child of the peak's root."""
    printed = subprocess.run([need("ms_print"), str(path)], capture_output=True, text=True, check=True).stdout
    snapshots = fastprof.info(str(path)).facts["snapshots"]
    table = re.findall(r"^ *(\d+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) *$", printed, re.MULTILINE)
    assert [[int(n.replace(",", "")) for n in row] for row in table] == [
        [s["number"], s["time"], s["total_bytes"], s["heap_bytes"], s["extra_bytes"], s["stacks_bytes"]]
        for s in snapshots
    ]
    read = next((s for s in snapshots if s["read"]), None)
    if read:
        assert fastprof.top(str(path), symbolize=False).total == read["heap_bytes"]
        assert not re.search(r"\d+ \(peak\)", printed) or f"{read['number']} (peak)" in printed


@pytest.mark.parametrize("path", massifs(), ids=lambda p: p.name)
def test_massif_is_what_ms_print_prints(path: Path, tmp_path: Path) -> None:
    plain = tmp_path / "massif.out.1"  # ms_print does not support carriage returns
    plain.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    check_with_ms_print(plain)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "mem.c").write_text(PROGRAM)
    subprocess.run([need("gcc", "cc"), "-g", "-O0", "-o", "mem", "mem.c"], cwd=folder, check=True)
    return folder / "mem"


def test_a_run_of_massif(program: Path) -> None:
    out = program.parent / "massif.out.1"
    command = [need("valgrind"), "--tool=massif", "--time-unit=B", f"--massif-out-file={out}", str(program)]
    subprocess.run(command, check=True, capture_output=True)
    check_with_ms_print(out)
    folded = program.parent / "o.folded"
    fastprof.convert(str(out), str(folded), symbolize=False)
    assert re.search(r"main;grow;make \d+", folded.read_text())


def test_a_run_of_dhat(program: Path) -> None:
    out = program.parent / "dhat.out.1"
    command = [need("valgrind"), "--tool=dhat", f"--dhat-out-file={out}", str(program)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    totals = fastprof.info(str(out)).facts["totals"]
    for words, name in (("Total:", "total"), ("At t-gmax:", "at_gmax"), ("At t-end:", "at_end")):
        m = re.search(rf"{words} +([\d,]+) bytes in ([\d,]+) blocks", said)
        assert m, said
        numbers = [int(n.replace(",", "")) for n in m.groups()]
        assert numbers == [totals[f"{name}_bytes"], totals[f"{name}_blocks"]]


@needs_shared
@pytest.mark.parametrize("mode", ["heap", "copy", "adhoc"])
def test_dhat_has_the_true_sums(mode: str, tmp_path: Path) -> None:
    path = shared_data("massif-dhat") / f"dhat.{mode}.json"
    truth = json.loads((shared_data("massif-dhat") / f"dhat.{mode}.truth.json").read_text())
    totals = fastprof.info(str(path)).facts.get("totals", {})  # adhoc has no points
    keys = {"total_bytes": "tb", "total_blocks": "tbk", "at_gmax_bytes": "gb", "at_gmax_blocks": "gbk"}
    keys |= {"at_end_bytes": "eb", "at_end_blocks": "ebk", "read_bytes": "rb", "written_bytes": "wb", "lifetimes": "tl"}
    assert totals == {name: truth["totals"][key] for name, key in keys.items() if name in totals} | {
        name: truth["totals"][key] for name, key in (("max_bytes", "mb"), ("max_blocks", "mbk")) if name in totals
    }
    out = tmp_path / "o.folded"
    fastprof.convert(str(path), str(out), symbolize=False, value="total_bytes")
    found: dict[str, int] = {}
    for line in out.read_text().splitlines():
        stack, _, n = line.rpartition(" ")
        # equal names are told apart by file or object, which the reference does not do
        stack = ";".join(re.sub(r" \([\w.+-]+\)$", "", frame) for frame in stack.split(";"))
        found[stack] = found.get(stack, 0) + int(n)
    expected: dict[str, int] = {}
    for stack, n in truth["folded_tb"].items():
        names = ";".join(re.sub(r" \([^()]*\)$", "", frame) for frame in stack.split(";"))
        expected[names] = expected.get(names, 0) + n
    assert found == expected
