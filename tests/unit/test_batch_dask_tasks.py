"""Tasks of Dask: as large as each other, in processes that outlive them; lost workers and schedulers are errors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FastprofError
from fastprof.verbs.batch import engines, task
from fastprof.verbs.batch.pool import Pool

N = 20


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A scheduler, and a worker in a thread of this process."""
    distributed: Any = pytest.importorskip("distributed", reason="pip install distributed")
    quiet = {
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": "CRITICAL",
        "processes": False,
        "threads_per_worker": 1,
    }
    with distributed.LocalCluster(n_workers=1, host="tcp://127.0.0.1", **quiet) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(engines, "_LEAST", 2 * engines._START)
    (tmp_path / "in").mkdir()
    for number in range(N):
        (tmp_path / f"in/{number}.folded").write_text(f"main {number + 1}\n")
    return tmp_path


def convert(cluster: Any, folder: Path, **options: Any) -> Any:
    engine = cluster.scheduler_address.replace("tcp://", "dask://")
    return fastprof.batch_convert(folder / "in", folder / "out", to="pprof", engine=engine, **options)


@pytest.mark.parametrize(
    ("sizes", "threads", "tasks"),
    [
        ([100] * 9, 4, [9]),
        ([100] * 10_000, 32, [79] * 16 + [78] * 112),
        ([10**9] * 20, 4, [1] * 20),
        ([10**9] + [100] * 1000, 2, [16] * 55 + [15] * 8 + [1]),
        ([], 4, []),
    ],
)
def test_tasks_are_as_large_as_each_other(sizes: list[int], threads: int, tasks: list[int]) -> None:
    jobs = [{"size": size, "output": str(i)} for i, size in enumerate(sizes)]
    found = engines.tasks_of(jobs, threads)
    assert sorted(map(len, found), reverse=True) == tasks
    assert sorted(job["output"] for one in found for job in one) == sorted(job["output"] for job in jobs)
    assert all(one == sorted(one, key=lambda job: -job["size"]) for one in found)


def test_a_process_does_all_tasks_of_a_thread(cluster: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, begun = [], []

    class Counted(Pool):
        def _begin(self) -> Any:
            begun.append(super()._begin())
            return begun[-1]

        def run(self, jobs: Any) -> Any:
            tasks.append(jobs)
            return super().run(jobs)

    monkeypatch.setattr(task, "Pool", Counted)
    assert convert(cluster, folder).statuses == {"ok": N}
    assert len(tasks) == 10 and len(begun) == 1
    assert not task._idle and begun[0].process.returncode is not None  # the end of the run ended it


def test_processes_of_a_killed_client_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "_SECONDS_IDLE", 0.04)
    monkeypatch.setattr(task, "_is_ending", False)  # the thread of an earlier test may still wait
    ended = []

    class Fake:
        def __init__(self, *_: object) -> None: ...

        def __exit__(self, *_: object) -> None:
            ended.append(self)

    monkeypatch.setattr(task, "Pool", Fake)
    with task._pool("run", {}) as pool:
        assert not ended
    deadline = time.monotonic() + 10
    while task._idle and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended == [pool] and not task._idle


def test_no_workers(cluster: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_SECONDS_WITHOUT_WORKERS", 0.5)
    cluster.scale(0)
    while cluster.scheduler.workers:
        time.sleep(0.01)
    with pytest.raises(FastprofError, match=r"Dask: tcp://127\.0\.0\.1:\d+ has had no workers for 0\.5 s; start some"):
        convert(cluster, folder)
    assert not [*(folder / "out").rglob("*.token")]


def test_a_lost_scheduler(cluster: Any, folder: Path) -> None:
    def lose(log: Any, record: Any) -> None:
        if record is not None:
            cluster.close()

    with pytest.raises(FastprofError, match="Dask: the scheduler is lost; run the same command again to continue"):
        convert(cluster, folder, progress=lose)
    done = len([*(folder / "out").glob("*.pb.gz")])
    assert 0 < done < N and not [*(folder / "out").rglob("*.token")]
    assert fastprof.batch_convert(folder / "in", folder / "out", to="pprof", jobs=1).statuses == {"ok": N}
    assert os.listdir(folder / "out/.fastprof") == ["1-of-1.jsonl"]
