"""A program at twelve commits, one of which slows a function down, as callgrind profiles: for bench/agents.py.

What is right comes from callgrind_annotate's figures for each commit, not from fastprof: the commit from which on a
function runs more than a tenth more instructions, by how much in that commit, and which function that is.  Other
commits only change how much other work there is, by up to 2 %.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

N = 12
_SLOWED = 8
_PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile uint32_t sink;
__attribute__((noinline)) static uint32_t mix(uint32_t x) { return (x ^ (x >> 13)) * 0x5bd1e995u + COMMIT; }
__attribute__((noinline)) static uint32_t parse(uint32_t n) {
    uint32_t sum = sink;
    for (uint32_t i = 0; i < n; i++) sum = sum * 33 + (i & 0x7f);
    return sum;
}
__attribute__((noinline)) static uint32_t find(const uint32_t *table, uint32_t key) {
    uint32_t at = key & 63, step = STEP;
    for (uint32_t i = 0; i < 24; i++) {
        for (uint32_t k = 0; k < step; k++) sink = at;
        at = (at + table[at]) & 63;
    }
    return at;
}
__attribute__((noinline)) static void emit(uint32_t n) {
    for (uint32_t i = 0; i < n; i++) sink = mix(sink + i);
}
int main(void) {
    uint32_t table[64];
    for (uint32_t i = 0; i < 64; i++) table[i] = mix(i);
    for (uint32_t i = 0; i < 900; i++) {
        sink += parse(PARSED);
        sink += find(table, mix(i));
        emit(EMITTED);
    }
    return sink == 7;
}
"""


class Series(NamedTuple):
    """`files` in the order of commits, and what callgrind_annotate's figures show."""

    files: list[Path]
    function: str
    since: str  # name of a file
    percent: int  # more instructions, rounded


def made(folder: Path) -> Series:
    """Build and run the program at each commit, with cc and valgrind."""
    folder.mkdir()
    files = []
    for commit in range(1, N + 1):
        step = 5 if commit >= _SLOWED else 3
        defines = {"COMMIT": commit, "STEP": step, "PARSED": 100 + commit * 7 % 3, "EMITTED": 50 + commit * 5 % 2}
        binary, file = folder.parent / f"build{commit}" / "words", folder / f"commit{commit:02}.callgrind"
        binary.parent.mkdir()
        options = [f"-D{name}={value}" for name, value in defines.items()]
        subprocess.run(
            ["cc", "-g", "-O1", *options, "-x", "c", "-", "-o", binary], input=_PROGRAM, text=True, check=True
        )
        valgrind = [
            "valgrind",
            "-q",
            "--tool=callgrind",
            "--toggle-collect=main",
            f"--callgrind-out-file={file}",
            binary,
        ]
        subprocess.run(valgrind, check=True)
        files.append(file)
    costs = [_annotated(file) for file in files]
    found = [
        (costs[i][name] / costs[i - 1][name] - 1, name, files[i].name)
        for i in range(1, N)
        for name in costs[i]
        if costs[i - 1].get(name, 0) > 10_000
    ]
    (growth, function, since), *others = sorted(found, reverse=True)
    if growth < 0.1 or others[0][0] > 0.1:
        raise ValueError(f"not one change: {found}")
    return Series(files, function, since, round(100 * growth))


def _annotated(file: Path) -> dict[str, int]:
    """Self instructions by function, as callgrind_annotate prints them."""
    done = subprocess.run(
        ["callgrind_annotate", "--auto=no", "--threshold=100", file], capture_output=True, text=True, check=True
    )
    rows = re.findall(r"^ *([\d,]+) \([ \d.]+%\)  \S*:(\w+) \[", done.stdout, re.MULTILINE)
    return {name: int(cost.replace(",", "")) for cost, name in rows}
