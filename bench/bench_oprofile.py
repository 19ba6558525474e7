"""OProfile sessions: MB of sample files per CPU-second, and peak memory, compared with opreport where it is installed.

python -m pytest bench/bench_oprofile.py                       200 images of 100,000 keys and 25,000 arcs, 655 MB
FASTPROF_BENCH_IMAGES=20 python -m pytest bench/bench_oprofile.py      a tenth of it

The session is made by shared/tools/make_big_oprofile.py.  `opreport -l` reads the samples and prints them by symbol, -c
the arcs as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.peers import Run, fastprof, peer
from tests.support.paths import SHARED

IMAGES = os.environ.get("FASTPROF_BENCH_IMAGES", "200")


@pytest.fixture(scope="module")
def arcs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session with samples and arcs, its images below root/."""
    if SHARED is None:
        pytest.skip("no shared/tools next to the repository")
    path = tmp_path_factory.mktemp("bench") / "arcs"
    tool = SHARED / "tools" / "make_big_oprofile.py"
    command = [sys.executable, str(tool), str(path), "--elf", "--cg", "--images", IMAGES]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def flat(arcs: Path) -> Path:
    """The same session without arcs."""
    path = arcs.with_name("flat")
    shutil.copytree(arcs, path, copy_function=os.link, ignore=shutil.ignore_patterns("{cg}"))
    return path


def _record(benchmark: Any, session: Path, command: list[str]) -> None:
    best = min((Run(command) for _ in range(3)), key=lambda r: r.cpu_seconds)
    benchmark.pedantic(lambda: None, rounds=1)
    size = sum(file.stat().st_size for file in (session / "samples").rglob("*") if file.is_file())
    benchmark.extra_info["MB per CPU-second"] = round(size / 1e6 / best.cpu_seconds)
    benchmark.extra_info["peak MB"] = round(best.peak_bytes / 1e6)


@pytest.mark.parametrize("target", ["callgrind", "cachegrind", "archive", "pprof"])
@pytest.mark.parametrize("name", ["flat", "arcs"])
def test_convert(benchmark: Any, request: pytest.FixtureRequest, name: str, target: str) -> None:
    session: Path = request.getfixturevalue(name)
    root = session / "root"
    _record(
        benchmark, session, fastprof("convert", "-q", session, "--sysroot", root, "-o", "/dev/null", "--to", target)
    )


@pytest.mark.parametrize("verb", ["info", "top"])
@pytest.mark.parametrize("name", ["flat", "arcs"])
def test_look_at(benchmark: Any, request: pytest.FixtureRequest, name: str, verb: str) -> None:
    session: Path = request.getfixturevalue(name)
    _record(benchmark, session, fastprof(verb, session, "--sysroot", session / "root"))


@pytest.mark.parametrize(("name", "option"), [("flat", "-l"), ("arcs", "-c")])
def test_opreport(benchmark: Any, request: pytest.FixtureRequest, name: str, option: str) -> None:
    session: Path = request.getfixturevalue(name)
    command = ["opreport", f"--session-dir={session}", "-R", str(session / "root"), option]
    _record(benchmark, session, peer(command))
