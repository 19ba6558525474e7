"""The tools that fastprof is compared with: a missing one is a skip that says what to install (in CI, a failure)."""

from __future__ import annotations

import shutil

import pytest

# Debian's names, where they are not the program's
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
    "google-pprof": "google-perftools",
    "llvm-objdump": "llvm-19",
    "llvm-symbolizer-19": "llvm-19",
    "llvm-xray-19": "llvm-19",
    "nm": "binutils",
    "objcopy": "binutils",
    "objdump": "binutils",
    "timeout": "coreutils",
    "xvfb-run": "xvfb xauth",
}


def need(*names: str) -> str:
    """The path of the first of these programs that is installed."""
    for name in names:
        if path := shutil.which(name):
            return path
    pytest.skip(f"{names[0]} is missing: apt-get install {PACKAGES.get(names[0], names[0])}")
