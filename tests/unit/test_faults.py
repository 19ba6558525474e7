"""Calls of the system that fail, under Source, Sink and the store: an error that names the file, and nothing is left.
And allocations that fail, under everything that is compiled.

Short reads and writes and EINTR change nothing.  tests/support/faults.py makes them in processes of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastprof import formats
from tests.support.faults import PLANS
from tests.support.paths import REPO
from tests.support.preload import library


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library("shim", tmp_path_factory.mktemp("shim"), "-ldl")


@pytest.mark.parametrize("plan", PLANS)
def test_faults_name_the_file_and_leave_nothing(plan: str, shim: Path, tmp_path: Path) -> None:
    environment = os.environ | {"LD_PRELOAD": f"{shim} {os.environ.get('LD_PRELOAD', '')}"}
    command = [sys.executable, "-m", "tests.support.faults", str(shim), str(tmp_path), plan]
    done = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=500)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["wrong"] == []
    assert said["made"] > 5


def test_every_format_has_its_faults() -> None:
    known = formats.formats()
    for of in "", " without memory":
        assert {f"writing {f.name}{of}" for f in known if f.writer} <= PLANS.keys()
        assert {f"reading {f.name}{of}" for f in known if f.reader} <= PLANS.keys()
