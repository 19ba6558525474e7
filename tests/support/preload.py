"""C code of this folder as a library that the loader preloads before libc (LD_PRELOAD)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.differential.peers import need
from tests.support.paths import REPO


def library(name: str, folder: Path, *flags: str) -> Path:
    """NAME.c compiled into `folder`."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs Linux: the loader puts a library in front of libc")
    path = folder / f"{name}.so"
    source = str(REPO / f"tests/support/{name}.c")
    subprocess.run([need("gcc", "cc"), "-shared", "-fPIC", "-O1", "-o", str(path), source, *flags], check=True)
    return path
