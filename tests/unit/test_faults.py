"""Failing system calls below Source, Sink and the store: the error names the file, and no output is left. Failing
allocations, in all compiled code.

Short reads and writes and EINTR change nothing.  tests/support/faults.py injects them in separate processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastprof import formats
from tests.support.chosen import cases
from tests.support.faults import PLANS
from tests.support.paths import REPO
from tests.support.preload import library


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    shim = library("shim", tmp_path_factory.mktemp("shim"), "-ldl")
    environment = os.environ | {"LD_PRELOAD": f"{shim} {os.environ.get('LD_PRELOAD', '')}"}
    command = [sys.executable, "-m", "tests.support.faults", str(shim)]
    with subprocess.Popen(
        command, cwd=REPO, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin
        process.stdin.close()


# By default, of those of each format a few
SOME = ("callgrind", "pprof", "xray", ".gz")
FEW = [plan for plan in PLANS if not plan.startswith(("reading ", "writing ")) or plan.split()[1] in SOME]


@pytest.mark.parametrize("plan", cases(PLANS, default=FEW))
def test_faults_name_the_file_and_leave_nothing(plan: str, server: subprocess.Popen[str], tmp_path: Path) -> None:
    assert server.stdin and server.stdout
    print(tmp_path, plan, sep="\t", file=server.stdin, flush=True)
    done = json.loads(server.stdout.readline())
    assert (done, (tmp_path / "stderr").read_text()) == ({"status": 0}, "")
    result = json.loads((tmp_path / "result").read_text())
    assert result["wrong"] == []
    assert result["made"] > 5


def test_every_format_has_its_faults() -> None:
    known = formats.formats()
    for of in "", " without memory":
        assert {f"writing {f.name}{of}" for f in known if f.writer} <= PLANS.keys()
        assert {f"reading {f.name}{of}" for f in known if f.reader} <= PLANS.keys()
