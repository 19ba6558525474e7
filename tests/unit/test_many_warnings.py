"""Each of many warnings is said once, found without looking at all others."""

from __future__ import annotations

import subprocess
import sys

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
