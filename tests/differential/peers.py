"""The tools that fastprof is compared with: a missing tool is a skip that names its package (in CI, a failure)."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

VIEWERS = Path(__file__).resolve().parents[1] / "viewers"

# Debian package names that differ from the program's
PACKAGES = {
    "ar": "binutils",
    "as": "binutils",
    "c++": "g++",
    "callgrind_annotate": "valgrind",
    "cc": "gcc",
    "cg_annotate": "valgrind",
    "cg_diff": "valgrind",
    "cg_merge": "valgrind",
    "clang++-14": "clang-14 libclang-rt-14-dev",
    "clang++-19": "clang-19 libclang-rt-19-dev",
    "clang-14": "clang-14 libclang-rt-14-dev",
    "clang-19": "clang-19 libclang-rt-19-dev",
    "create_gcov": "autofdo",
    "dump_gcov": "autofdo",
    "dbus-run-session": "dbus-daemon",
    "flamegraph.pl": "libdevel-nytprof-perl",
    "go": "golang-go",
    "groff": "groff-base",
    "heaptrack_print": "heaptrack",
    "google-pprof": "google-perftools",
    "jeprof": "libjemalloc-dev",
    "ld": "binutils",
    "llvm-objdump": "llvm-19",
    "llvm-profdata-19": "llvm-19",
    "llvm-profgen-19": "llvm-19",
    "llvm-symbolizer-19": "llvm-19",
    "llvm-xray-19": "llvm-19",
    "nm": "binutils",
    "objcopy": "binutils",
    "objdump": "binutils",
    "ms_print": "valgrind",
    "munged": "munge",
    "perf": "linux-perf",
    "perf2bolt-19": "bolt-19",
    "ps": "procps",
    "sbatch": "slurm-client",
    "ruby": "ruby-stackprof",
    "stackprof": "ruby-stackprof",
    "setsid": "util-linux",
    "strip": "binutils",
    "tar": "tar",
    "timeout": "coreutils",
    "unshare": "util-linux",
    "xvfb-run": "xvfb xauth",
}


def need(*names: str) -> str:
    """The path of the first of these programs that is installed."""
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(missing(names[0]))


def missing(name: str) -> str:
    """Why a test of a program that is not installed is skipped."""
    return f"{name} is missing: apt-get install {PACKAGES.get(name, name)}"


def node() -> str:
    """The Node.js installed by tests/viewers/install: Debian's is too old for some viewers."""
    if not (VIEWERS.parents[1] / ".viewers/installed").exists():
        pytest.skip("the viewers are missing: run tests/viewers/install")
    return str(VIEWERS.parents[1] / ".viewers/node")


def viewer(script: str, *arguments: str | Path, timeout: float = 300) -> Any:
    """What tests/viewers/SCRIPT.mjs finds in a file that it loads with a viewer's own importer.

    Errors: RefusedError, with the viewer's message.
    """
    command = node()
    if not _opened:
        _opened.append(_Viewers(command))
    answer = _opened[0].ask([script, *map(str, arguments)], timeout)
    if "refused" in answer:
        raise RefusedError(answer["refused"])
    return answer["value"]


class _Viewers:
    """A process that answers all requests of this one: browsers and engines start once."""

    def __init__(self, command: str) -> None:
        self.process = subprocess.Popen(
            [command, str(VIEWERS / "viewer.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self.end)

    def ask(self, request: list[str], timeout: float) -> Any:
        assert self.process.stdin and self.process.stdout
        late = threading.Timer(timeout, self.process.kill)
        late.start()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        finally:
            late.cancel()
        if not line:
            _opened.remove(self)
            pytest.fail(f"no answer within {timeout:.0f} s: {request}")
        return json.loads(line)

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


_opened: list[_Viewers] = []


class RefusedError(Exception):
    """A viewer's message when it refuses a file."""
