"""The pool of `fastprof batch`: a crash in one file does not affect the others, and no process is left."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastprof.core.errors import FastprofError
from fastprof.verbs.batch.jobs import convert_one, options_key
from fastprof.verbs.batch.pool import Pool
from tests.support.crashing import FUNCTION
from tests.support.paths import CORPUS, REPO

GOOD = CORPUS / "callgrind/good/everything.callgrind"


def job(path: Path, output: Path, **options: Any) -> dict[str, Any]:
    status = path.stat()
    return {
        "input": str(path),
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "output": str(output / f"{path.name}.folded"),
        "to": "folded",
        "from": None,
        "options": options,
        "key": options_key("folded", None, options),
        "durable": False,
    }


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(20):
        shutil.copy(GOOD, folder / f"good{number:02}")
    return folder


def run(folder: Path, output: Path, n: int = 2, **keywords: Any) -> dict[str, dict[str, Any]]:
    jobs = [job(path, output) for path in sorted(folder.iterdir())]
    with Pool(n, function=FUNCTION, **keywords) as pool:
        records = list(pool.run(jobs))
    assert sorted(record["input"] for record in records) == [one["input"] for one in jobs]
    return {os.path.basename(record["input"]): record for record in records}


def test_one_job() -> None:
    found = convert_one(job(GOOD, Path("/dev/null/no")))
    assert found["status"] == "error" and "/dev/null/no" in found["error"]["message"]


def test_a_file_that_kills_is_tried_again_and_given_up(files: Path, tmp_path: Path) -> None:
    for name in ("segfault", "exit", "once", "prints"):
        shutil.copy(GOOD, files / name)
    found = run(files, tmp_path)
    crashed = {name: record for name, record in found.items() if record["status"] != "ok"}
    assert {name: record["try"] for name, record in found.items() if record["try"] > 1} == {
        "segfault": 2,
        "exit": 2,
        "once": 2,
    }
    assert {name: record["error"]["message"] for name, record in crashed.items()} == {
        "segfault": f"{files}/segfault: the process that read it was killed by SIGSEGV",
        "exit": f"{files}/exit: the process that read it exited with code 7",
    }
    assert {record["status"] for record in crashed.values()} == {"crashed"}


@pytest.mark.parametrize("retries", [0, 2])
def test_retries(files: Path, tmp_path: Path, retries: int) -> None:
    shutil.copy(GOOD, files / "segfault")
    assert run(files, tmp_path, retries=retries)["segfault"]["try"] == retries + 1


def test_a_file_that_hangs_is_given_up(files: Path, tmp_path: Path) -> None:
    os.mkfifo(files / "fifo")  # it has no writer
    shutil.copy(GOOD, files / "hang")
    found = run(files, tmp_path, timeout=1.0, retries=0)
    late = {name: record["error"]["message"] for name, record in found.items() if record["status"] == "crashed"}
    assert late == {name: f"{files}/{name}: timed out after 1 s" for name in ("fifo", "hang")}


@pytest.mark.exhaustive
def test_each_file_kills(files: Path, tmp_path: Path) -> None:
    for path in [*files.iterdir()]:
        path.rename(files / f"segfault{path.name}")
    assert {record["status"] for record in run(files, tmp_path).values()} == {"crashed"}


def test_a_worker_that_cannot_begin_is_an_error(files: Path, tmp_path: Path) -> None:
    with (
        Pool(2, function="fastprof.no_such_module:work") as pool,
        pytest.raises(FastprofError, match=r"cannot start a worker: .*exited with code 1"),
    ):
        list(pool.run([job(GOOD, tmp_path)]))


# A process that prints its workers' ids in the middle of its work.
PARENT = """
import json, sys
from fastprof.verbs.batch.pool import Pool
from tests.support.crashing import FUNCTION
with Pool(2, function=FUNCTION) as pool:
    records = pool.run(json.loads(sys.stdin.read()))
    next(records)
    print(*(worker.process.pid for worker in pool._workers), flush=True)
    next(records)
"""


def test_workers_die_with_their_parent(files: Path, tmp_path: Path) -> None:
    """During an endless file, and while they wait."""
    for path in [*files.iterdir()][1:]:
        path.unlink()
    for name in ("hang1", "hang2"):
        shutil.copy(GOOD, files / name)
    jobs = [job(path, tmp_path) for path in sorted(files.iterdir())]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPO, text=True
    ) as parent:
        assert parent.stdin and parent.stdout
        parent.stdin.write(json.dumps(jobs))
        parent.stdin.close()
        workers = [*map(int, parent.stdout.readline().split())]
        assert len(workers) == 2
        # a handle for each process, which becomes readable when that process ends
        handles = [os.pidfd_open(pid) for pid in workers]
        os.kill(parent.pid, signal.SIGKILL)
        for handle in handles:
            assert select.select([handle], [], [], 60)[0], "the worker lives on"
            os.close(handle)
