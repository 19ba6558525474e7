"""Texts of each format, and names in each verb, take linear time, whatever they repeat (tests/support/repeated.py)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fastprof import formats
from tests.support import repeated
from tests.support.paths import REPO

# test_long_lines.py has these
OTHERS = {"callgrind", "cachegrind", "folded", "gperftools"}
# Their texts are names, which `names` has.
BINARY = {"archive", "gmon", "jfr", "memray", "mojo", "oprofile", "perf", "perfetto", "pprof", "pstats", "xray"}
BINARY |= {"gpu-sqlite", "simpleperf", "stackprof", "tachyon", "uftrace", "xplane"}
TEXTS = {*repeated.TEMPLATES, *repeated.JSON}


def test_every_format_that_is_read_has_texts_or_is_binary() -> None:
    assert {f.name for f in formats.formats() if f.reader} == OTHERS | BINARY | TEXTS


@pytest.mark.parametrize("what", [*sorted(TEXTS), "names"])
def test_repeated(what: str) -> None:
    command = [sys.executable, "-m", "tests.support.repeated", what]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 40
