"""Peak memory does not grow with the length of a profile, only with its names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import REPO

SCRIPT = """
import re, sys
from fastprof.pipeline import convert, info
if sys.argv[2] == "info":
    info(sys.argv[1])
else:
    convert([sys.argv[1]], "/dev/null", to="callgrind")
# not ru_maxrss: that starts with the size of the parent
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def peak(path: Path, verb: str) -> int:
    """KiB of a process of its own."""
    command = [sys.executable, "-c", SCRIPT, str(path), verb]
    return int(subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("verb", ["info", "convert"])
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
