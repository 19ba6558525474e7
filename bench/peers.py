"""Whole programs as a bench sees them: CPU seconds (user and system, children too) and peak memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.paths import REPO, SHARED


class Run:
    """One run of a command, which must succeed."""

    def __init__(
        self, command: list[str], folder: Path | None = None, environment: dict[str, str] | None = None
    ) -> None:
        # modules are compiled once, as an installation's are
        environment = environment or os.environ | {"PYTHONPATH": str(REPO), "PYTHONDONTWRITEBYTECODE": ""}
        begun = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.peak_bytes = usage.ru_maxrss * 1024


def fastprof(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "fastprof", *map(str, arguments)]


def peer(command: list[str]) -> list[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    return command


def big_profile(folder: Path, name: str, *options: str) -> Path:
    """A profile of FASTPROF_BENCH_SIZE (default 100M) made by shared/tools/make_big_gperf.py."""
    if SHARED is None:
        pytest.skip("no shared/tools next to the repository")
    path = folder / name
    size = os.environ.get("FASTPROF_BENCH_SIZE", "100M")
    tool = SHARED / "tools" / "make_big_gperf.py"
    subprocess.run([sys.executable, tool, path, "--size", size, *options], check=True, capture_output=True)
    return path
