"""The inputs of bench.growth, and limits of what once grew too fast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.grown import DIMENSIONS
from bench.grown_formats import FORMATS
from fastprof.cli import main
from tests.support.paths import REPO
from tests.support.peak import peak

ALL = DIMENSIONS | FORMATS


@pytest.mark.parametrize("name", ALL)
def test_each_input_is_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"in{ALL[name].suffix}"
    ALL[name].make(path, 4)
    assert main(["info", str(path)]) == 0
    assert "warning" not in capsys.readouterr().err


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
from fastprof.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("name", ["clock snapshots", "clock snapshots before events"])
def test_many_clock_snapshots(name: str, tmp_path: Path) -> None:
    """Each event looked through all snapshots, which took minutes."""
    path = tmp_path / "in.pftrace"
    FORMATS[name].make(path, 100_000)
    subprocess.run([sys.executable, "-c", LIMITED, "info", "-q", str(path)], cwd=REPO, check=True, capture_output=True)


def test_threads_of_a_firefox_profile_take_little(tmp_path: Path) -> None:
    """They took 57 KB, as 4 KiB for each column."""
    peaks = []
    for n in (200, 2200):
        FORMATS["threads of a Firefox profile"].make(tmp_path / f"{n}.json", n)
        peaks.append(peak("info", "-q", str(tmp_path / f"{n}.json")))
    assert peaks[1] - peaks[0] < 2000 * 12_000
