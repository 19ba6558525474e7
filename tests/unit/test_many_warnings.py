"""Each of many warnings is said once, found without looking at all others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fastprof.cli.messages import say_warnings
from fastprof.core.report import Report
from tests.support.paths import REPO

CODE = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
from fastprof.core.report import Report
report, other = Report(), Report()
for i in range(200_000):
    report.warn(f"/lib/x{i // 2}: No such file or directory")
other.take(report)
other.take(report)
assert len(other.warnings) == 100_000 and other.warnings[1] == "/lib/x1: No such file or directory"
assert "warnings=['/lib/x0" in repr(other)
"""


def test_a_hundred_thousand() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_the_first_of_a_kind_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    said = [f"/lib/x{i}.so: {i} addresses without a symbol" for i in range(1, 1_241)]
    said.insert(3, "a.callgrind: line 7: unknown key 'x'")
    said.append("a.callgrind: line 9: unknown key 'y'")
    report = Report()
    for warning in said:
        report.warn(warning)
    say_warnings(report.warnings)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        *(f"fastprof: warning: {warning}" for warning in said[:6]),
        "fastprof: warning: and 1,235 more like it",
        f"fastprof: warning: {said[-1]}",
    ]
    assert report.as_dict()["warnings"] == said
