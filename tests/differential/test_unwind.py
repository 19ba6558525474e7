"""Unwinding beside ../shared/tools/perf/unwind_ref.py: the rules of real files, address by address."""

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
from tests.support.paths import SHARED, needs_shared
from tests.support.unwinding import NAMES, rules_of

pytestmark = needs_shared

LIBRARIES = ["libc.so.6", "ld-linux-x86-64.so.2", "libstdc++.so.6"]
FOLDERS = ["perf-data/recorded/symfs", "heap/elf", "gperftools/bin", "xray"]


def files() -> list[Path]:
    found = [path for name in LIBRARIES for folder in ("/lib", "/usr/lib") for path in Path(folder).glob(f"*/{name}")]
    for folder in FOLDERS if SHARED else ():
        found += sorted(SHARED.joinpath("data", folder).rglob("*"))
    unique = {path.resolve(): path for path in [*found, Path(sys.executable)] if path.is_file()}
    return [path for path in unique if path.open("rb").read(5) == b"\x7fELF\2"]


def reference_rows(path: Path) -> Iterator[tuple[int, int, str]]:
    command = [sys.executable, str(SHARED / "tools/perf/unwind_ref.py"), "--rows", str(path)]  # type: ignore[operator]
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if not line.startswith("#"):
            start, end, rule = line.split(" ", 2)
            yield int(start, 16), int(end, 16), rule


def sleb(data: bytes) -> int:
    value = sum((byte & 127) << 7 * i for i, byte in enumerate(data))
    return value - (1 << 7 * len(data)) if data[-1] & 64 else value


def expected(rule: str, machine: int) -> str:
    """A row of unwind_ref.py in our words; only what the program counter, sp and fp need."""
    sp, fp = NAMES[machine]
    link = "x30" if machine == 183 else "ra"
    cfa, *others = rule.split()
    if cfa == "!":
        return "damaged"
    is_signal = others[-1:] == ["S"]
    rules = dict(other.split("=", 1) for other in others[: -1 if is_signal else None])
    ra, saved = rules.get(link), rules.get(fp)
    if ra and ra.startswith("undef"):
        return "last"
    block = bytes.fromhex(cfa[5:-1]) if cfa.startswith("expr") else b""
    sp_code, fp_code = (0x77, 0x76) if machine == 62 else (0x8F, 0x8D)
    blocks = [bytes.fromhex(x[5:-1]) if x and x.startswith("expr") else b"" for x in (ra, saved)]
    if is_signal and block[:1] == bytes([sp_code]) and block[-1] == 6:
        words = [sleb(block[1:-1]), sleb(blocks[1][1:]), sleb(blocks[0][1:])]
        return "signal " + " ".join(f"{n}=*({sp}{w:+})" for n, w in zip(("cfa", "fp", "ra"), words, strict=True))
    tail = f" ra={ra or ('link' if machine == 183 else 'lost')}" + (" S" if is_signal else "")
    if block[:1] == bytes([fp_code]) and block[-1] == 6 and blocks[1][:1] == bytes([fp_code]):
        return f"*({fp}{sleb(block[1:-1]):+}) fp=*({fp}{sleb(blocks[1][1:]):+}){tail}"
    if len(block) == 11 and block.startswith(bytes.fromhex("770880003f1a")):
        return f"plt{block[6] - 0x30} fp=same{tail}"
    plain = re.fullmatch(rf"({sp}|{fp})([+-]\d+)", cfa)
    known = (ra is None or ra.startswith("c")) and (saved is None or saved.startswith(("c", "undef", "same")))
    if not plain or not known or sp in rules:
        return "slow"
    popped = saved and saved.startswith("c") and plain[1] == sp and int(saved[1:]) < -int(plain[2])
    how = "lost" if saved and saved.startswith("undef") else saved if saved and saved.startswith("c") else "same"
    return f"{cfa} fp={'same' if popped else how}{tail}"


@pytest.mark.parametrize("path", files(), ids=lambda path: path.name)
def test_rows(path: Path) -> None:
    elf = ElfFile(path)
    ours = list(rules_of(UnwindTable(elf, 1), elf.machine))
    starts = [start for start, _ in ours]
    rows = sorted(reference_rows(path))
    wrong = []
    edges = set(starts)
    for start, end, rule in rows:
        i = bisect.bisect_right(starts, start) - 1
        want = expected(rule, elf.machine)
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
