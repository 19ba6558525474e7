"""Peak memory does not grow with the length of a profile, only with its names; summed up, with its places."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import REPO

SCRIPT = """
import re, sys
from fastprof.core.options import Options
from fastprof import convert, info
if sys.argv[2] == "info":
    info(sys.argv[1])
else:
    convert([sys.argv[1]], "/dev/null", to="callgrind", aggregate=sys.argv[2] == "aggregate")
# not ru_maxrss: that starts with the size of the parent
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def peak(path: Path, verb: str) -> int:
    """KiB of a process of its own."""
    command = [sys.executable, "-c", SCRIPT, str(path), verb]
    return int(subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("verb", ["info", "convert", "aggregate"])
def test_ten_times_the_rows_need_no_more_memory(verb: str, tmp_path: Path) -> None:
    header = b"version: 1\npositions: instr line\nevents: Ir Dr\n"
    names = b"".join(b"fl=(%d) file%d.c\nfn=(%d) function%d\n0x%x 1 5\n" % (i, i, i, i, i * 64) for i in range(1, 500))
    block = b"".join(b"fl=(%d)\nfn=(%d)\n0x%x 7 3 4\n+4 * 1\n+3 +1 12\n" % (i, i, i * 64) for i in range(1, 500))
    peaks = []
    for times in (40, 400):
        path = tmp_path / f"{times}.callgrind"
        path.write_bytes(header + names + block * times)
        peaks.append(peak(path, verb))
    assert peaks[1] < peaks[0] + 2048
    assert peaks[1] < 64 * 1024


def test_summing_up_needs_memory_for_distinct_places_only(tmp_path: Path) -> None:
    """Three sizes of as many places each twice the one before, and the last of them eight times over."""
    header = b"version: 1\npositions: instr line\nevents: Ir Dr\nfl=(1) a.c\nfn=(1) f\n"
    peaks = []
    for places, times in ((100_000, 1), (200_000, 1), (400_000, 1), (400_000, 8)):
        path = tmp_path / f"{places}-{times}.callgrind"
        with path.open("wb") as file:
            file.write(header)
            for _ in range(times):
                file.writelines(b"0x%x %d 7 3\n" % (0x401000 + 4 * n, n % 1000) for n in range(places))
        peaks.append(peak(path, "aggregate"))
    base = peak(tmp_path / "100000-1.callgrind", "convert")
    kib_per_place = [(p - base) / n for p, n in zip(peaks, (100_000, 200_000, 400_000), strict=False)]
    # docs/formats/callgrind.md: 32 bytes, 8 a value and some 16, of which tables that grow by doubling waste half
    assert all(each * 1024 < 2 * (32 + 2 * 8 + 16) for each in kib_per_place), kib_per_place
    assert peaks[3] < peaks[2] + 2048
