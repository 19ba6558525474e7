"""Each of many warnings is printed once, without comparing it with all others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fastprof.cli.messages import print_warnings
from fastprof.core.log import Log
from fastprof.core.reported import Entry
from tests.support.paths import REPO

CODE = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
from fastprof.core.log import Log
from fastprof.core.reported import SHARED
report, other = Log(), Log()
for i in range(200_000):
    report.warn(SHARED["object-notes"], path=f"/lib/x{i // 2}", note="No such file or directory")
other.take(report)
other.take(report)
assert len(other.warnings) == 100_000 and other.warnings[1] == "/lib/x1: No such file or directory"
assert "warnings=['/lib/x0" in repr(other)
"""


def test_a_hundred_thousand() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


MISSING = Entry("missing-symbols", "warnings", "", "{path}: {n} addresses without a symbol")
UNKNOWN = Entry("unknown-key", "warnings", "", "{file}: line {line}: unknown key {key!r}")


def test_only_the_first_of_a_code_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log()
    for i in range(1, 1_241):
        log.warn(MISSING, path=f"/lib/x{i}.so", n=i)
        if i == 3:
            log.warn(UNKNOWN, file="a.callgrind", line=7, key="x")
    log.warn(UNKNOWN, file="a.callgrind", line=9, key="y")
    print_warnings(log.warned())
    lines = capsys.readouterr().err.splitlines()
    said = log.warnings
    assert said[3] == "a.callgrind: line 7: unknown key 'x'"
    assert lines == [
        *(f"fastprof: warning: {warning}" for warning in said[:6]),
        "fastprof: warning: and 1,235 more like it",
        f"fastprof: warning: {said[-1]}",
    ]
    assert [one["text"] for one in log.as_dict()["warnings"]] == said
    assert {one["code"] for one in log.as_dict()["warnings"]} == {"missing-symbols", "unknown-key"}
