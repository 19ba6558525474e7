"""Type checkers refuse plausible mistakes: tests/typing/mistakes.py."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.support.paths import REPO

FILE = REPO / "tests" / "typing" / "mistakes.py"
WRONG = {n for n, line in enumerate(FILE.read_text().splitlines(), 1) if line.endswith("# wrong")}


def output(*words: str) -> str:
    return subprocess.run([sys.executable, "-m", *words, str(FILE)], capture_output=True, text=True, cwd=REPO).stdout


def test_mypy() -> None:
    told = output("mypy", "--strict", "--follow-imports=silent")
    assert len(WRONG) == 14
    assert {int(n) for n in re.findall(r"^[^:\n]*mistakes\.py:(\d+): error", told, re.MULTILINE)} == WRONG, told


def test_pyright() -> None:
    pytest.importorskip("pyright", reason="pip install 'pyright[nodejs]'")
    told = json.loads(output("pyright", "--outputjson", "--pythonpath", sys.executable))["generalDiagnostics"]
    assert {one["range"]["start"]["line"] + 1 for one in told if one["severity"] == "error"} == WRONG, told
