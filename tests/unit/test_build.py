"""setup.py rebuilds only what changed, and reports the Python version that it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.once import made_once
from tests.support.paths import REPO

Build = Callable[..., list[str]]
EVERYTHING = ["_c.abi3.so", "fastprof.core._c.o", "libfpcore.a", "one.o", "two.o"]


@pytest.fixture
def tree(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    """A small tree in the layout of this repository, with its setup.py, built in place."""
    shutil.copytree(made_once(tmp_path_factory, "small-tree", make_tree), tmp_path, dirs_exist_ok=True)
    return tmp_path


def make_tree(folder: Path) -> None:
    shutil.copy(REPO / "setup.py", folder)
    files = {
        "csrc/core/one.h": "int one(void);\n",
        "csrc/core/one.c": '#include "core/one.h"\nint one(void) { return 1; }\n',
        "csrc/core/two.c": "int two(void);\nint two(void) { return 2; }\n",
        "csrc/build_core.py": (
            "from cffi import FFI\n"
            "ffibuilder = FFI()\n"
            "ffibuilder.cdef('int one(void);')\n"
            "ffibuilder.set_source('fastprof.core._c', 'int one(void);')\n"
        ),
        "csrc/make_pxd.py": "",
        "csrc/make_cython_stubs.py": "",
        "fastprof/__init__.py": "",
        "fastprof/core/__init__.py": "",
        "pyproject.toml": '[project]\nname = "fastprof"\nversion = "0"\n[tool.setuptools]\npackages = ["fastprof"]\n',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    made = {"cc": """$(echo " $*" | sed 's/.* -o \\([^ ]*\\).*/\\1/')""", "ar": "$2"}
    for tool, target in made.items():
        (folder / tool).write_text(f'#!/bin/sh\nbasename "{target}" >> log\nexec {shutil.which(tool)} "$@"\n')
        (folder / tool).chmod(0o755)
    assert run(folder) == EVERYTHING


def run(folder: Path, **variables: str) -> list[str]:
    """Build in place; returns the names of the files that compiler, archiver and linker wrote."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("FASTPROF_")} | variables
    env |= {"CC": "./cc", "AR": "./ar"}
    (folder / "log").write_text("")
    command = [sys.executable, "setup.py", "-q", "build_clib", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = "import fastprof.core._c as c; assert c.lib.one() == 1"
    subprocess.run([sys.executable, "-c", loaded], cwd=folder, env=env, check=True)
    return sorted((folder / "log").read_text().split())


@pytest.fixture
def build(tree: Path) -> Build:
    return partial(run, tree)


def test_nothing_changed(build: Build) -> None:
    assert build() == []


def test_one_c_file_is_one_object(tree: Path, build: Build) -> None:
    (tree / "csrc/core/two.c").touch()
    assert build() == ["_c.abi3.so", "libfpcore.a", "two.o"]


def test_a_header_is_the_objects_that_include_it(tree: Path, build: Build) -> None:
    (tree / "csrc/core/one.h").touch()
    assert build() == ["_c.abi3.so", "libfpcore.a", "one.o"]


def test_a_header_that_is_gone_is_an_error_not_an_old_object(tree: Path, build: Build) -> None:
    (tree / "csrc/core/one.h").unlink()
    with pytest.raises(AssertionError, match=r"one\.h"):
        build()


def test_a_source_that_is_gone_leaves_the_library(tree: Path, build: Build) -> None:
    (tree / "csrc/core/two.c").unlink()
    assert build() == ["_c.abi3.so", "libfpcore.a"]
    (library,) = tree.glob("build/*/libfpcore.a")
    assert subprocess.check_output(["ar", "t", library], text=True) == "one.o\n"


def test_ways_of_building_do_not_mix(tree: Path, build: Build) -> None:
    assert build(FASTPROF_DEBUG="1") == EVERYTHING
    assert build() == ["_c.abi3.so"]  # its objects still exist
    assert build(CFLAGS="-O1") == EVERYTHING


def test_another_variable_than_the_compilers_changes_nothing(tree: Path, build: Build) -> None:
    assert build(FASTPROF_TEST="1") == []


def test_an_older_python_is_told_so_before_anything_is_imported(tmp_path: Path) -> None:
    old = (
        "import sys, runpy\n"
        "sys.version_info, sys.version = (3, 10, 13), '3.10.13 (main)'\n"
        f"runpy.run_path({str(REPO / 'setup.py')!r})\n"
    )
    # -S and -I: only the standard library can be imported
    done = subprocess.run([sys.executable, "-I", "-S", "-c", old], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "fastprof needs Python 3.11 or later, this is 3.10.13\n")


@pytest.mark.parametrize(
    ("lack", "said"),
    [
        ("os.environ['CC'] = '/no/such/cc -pthread'", "a C compiler, and /no/such/cc is missing (apt-get install gcc "),
        (
            "sysconfig.get_path = lambda name: '/no/headers'",
            "the headers of Python, and /no/headers/Python.h is missing (apt-get install python3-dev;",
        ),
    ],
)
@pytest.mark.parametrize("command", ["bdist_wheel", "editable_wheel", "build_ext"])
def test_without_a_compiler_or_headers_the_build_is_one_line(lack: str, said: str, command: str, tree: Path) -> None:
    code = f"import os, runpy, sys, sysconfig\n{lack}\nsys.argv = ['setup.py', {command!r}]\nrunpy.run_path('setup.py')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"fastprof needs {said}") and done.stderr.count("\n") == 1


def test_an_sdist_needs_no_compiler(tree: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "egg_info"]
    done = subprocess.run(command, cwd=tree, env={**os.environ, "CC": "/no/such/cc"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
