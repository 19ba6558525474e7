"""Peak memory does not grow with the length of a profile, only with its names; sums stay within `--max-memory`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fastprof
from fastprof.core.errors import FormatError
from tests.support.paths import REPO

SCRIPT = """
import re, sys
from fastprof.core.options import Options
from fastprof import convert, info
if sys.argv[2] == "info":
    info(sys.argv[1])
else:
    options = {"aggregate": True, "max_memory": 1 << 20} if sys.argv[2] == "aggregate" else {}
    convert([sys.argv[1]], "/dev/null", to="callgrind", **options)
# not ru_maxrss: that starts with the size of the parent
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


def peak(path: Path, verb: str) -> int:
    """The peak memory of a separate process in KiB."""
    command = [sys.executable, "-c", SCRIPT, str(path), verb]
    return int(subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("verb", ["info", "convert", "aggregate"])
def test_ten_times_the_rows_need_no_more_memory(verb: str, tmp_path: Path) -> None:
    header = b"version: 1\npositions: instr line\nevents: Ir Dr\n"
    names = b"".join(b"fl=(%d) file%d.c\nfn=(%d) function%d\n0x%x 1 5\n" % (i, i, i, i, i * 64) for i in range(1, 500))
    block = b"".join(b"fl=(%d)\nfn=(%d)\n0x%x 7 3 4\n+4 * 1\n+3 +1 12\n" % (i, i, i * 64) for i in range(1, 500))
    peaks = []
    for times in (100, 1000):  # at 40 the sums are still below their limit
        path = tmp_path / f"{times}.callgrind"
        path.write_bytes(header + names + block * times)
        peaks.append(peak(path, verb))
    assert peaks[1] < peaks[0] + 2048
    assert peaks[1] < 64 * 1024


def test_sums_keep_to_the_limit(tmp_path: Path) -> None:
    """One function with ever more places, in order and shuffled."""
    header = b"version: 1\npositions: instr line\nevents: Ir Dr\nfl=(1) a.c\nfn=(1) f\n"
    peaks = []
    for places, step in ((50_000, 1), (800_000, 1), (800_000, 7)):
        path = tmp_path / f"{places}-{step}.callgrind"
        with path.open("wb") as file:
            file.write(header)
            numbers = (n * step % places for n in range(places))
            file.writelines(b"0x%x %d 7 3\n" % (0x401000 + 4 * n, n % 1000) for n in numbers)
        peaks.append(peak(path, "aggregate"))
    # blocks for sorting and merging, and windows of runs
    assert max(peaks) < peaks[0] + 6 * 1024, peaks


@pytest.mark.parametrize(
    "head", [b"version: 1\ncreator: callgrind-3\n", b"desc: x\ncmd: x\n"], ids=["callgrind", "cachegrind"]
)
def test_a_line_of_events_asks_for_no_more_than_other_lines(head: bytes, tmp_path: Path) -> None:
    """Each event is a column of every batch: a megabyte of names required gigabytes."""

    def text(n: int) -> bytes:
        return head + b"events: " + b" ".join(b"e%d" % i for i in range(n)) + b"\nfl=a\nfn=f\n1 1\nsummary: 1\n"

    path = tmp_path / "wide"
    for n in (1025, 150_000):
        path.write_bytes(text(n))
        with pytest.raises(
            FormatError, match=f"line 3, byte {len(head)}: .*{n:,} events are named, expected up to 1,024"
        ):
            fastprof.info(path)
    path.write_bytes(text(1024))
    assert len(fastprof.info(path).facts["totals"]) == 1024
    assert peak(path, "info") < 64 * 1024
