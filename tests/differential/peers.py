"""The tools that fastprof is compared with: a missing tool is a skip that names its package (in CI, a failure)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

VIEWERS = Path(__file__).resolve().parents[1] / "viewers"

# Debian package names that differ from the program's
PACKAGES = {
    "callgrind_annotate": "valgrind",
    "cg_annotate": "valgrind",
    "cg_diff": "valgrind",
    "cg_merge": "valgrind",
    "clang++-14": "clang-14 libclang-rt-14-dev",
    "clang++-19": "clang-19 libclang-rt-19-dev",
    "clang-14": "clang-14 libclang-rt-14-dev",
    "clang-19": "clang-19 libclang-rt-19-dev",
    "dbus-run-session": "dbus-daemon",
    "flamegraph.pl": "libdevel-nytprof-perl",
    "go": "golang-go",
    "groff": "groff-base",
    "google-pprof": "google-perftools",
    "jeprof": "libjemalloc-dev",
    "llvm-objdump": "llvm-19",
    "llvm-symbolizer-19": "llvm-19",
    "llvm-xray-19": "llvm-19",
    "nm": "binutils",
    "objcopy": "binutils",
    "objdump": "binutils",
    "ms_print": "valgrind",
    "munged": "munge",
    "perf": "linux-perf",
    "sbatch": "slurm-client",
    "timeout": "coreutils",
    "xvfb-run": "xvfb xauth",
}


def need(*names: str) -> str:
    """The path of the first of these programs that is installed."""
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(f"{names[0]} is missing: apt-get install {PACKAGES.get(names[0], names[0])}")


def node() -> str:
    """The Node.js installed by tests/viewers/install: Debian's is too old for some viewers."""
    if not (VIEWERS.parents[1] / ".viewers/installed").exists():
        pytest.skip("the viewers are missing: run tests/viewers/install")
    return str(VIEWERS.parents[1] / ".viewers/node")


def viewer(script: str, *arguments: str | Path, timeout: float = 300) -> Any:
    """The output (JSON) of tests/viewers/SCRIPT.mjs for a file that it loads with a viewer's own importer.

    Errors: RefusedError, with the viewer's message.
    """
    command = [node(), str(VIEWERS / f"{script}.mjs"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise RefusedError(done.stderr.strip())
    return json.loads(done.stdout)


class RefusedError(Exception):
    """A viewer's message when it refuses a file."""
