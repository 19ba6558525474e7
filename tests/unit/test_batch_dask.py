"""Dask workers on machines that see other files: other workers do what they cannot, and nothing is lost.

The machines are processes in mount namespaces in which a folder or a file is replaced.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError
from fastprof.verbs.batch import engines, partial_key
from fastprof.verbs.batch.manifest import FOLDER
from tests.support.paths import CORPUS, REPO
from tests.unit import test_remote
from tests.unit.test_remote import Bucket

bucket, server = test_remote.bucket, test_remote.server  # fixtures

GRAPH = CORPUS / "callgrind/good/everything.callgrind"
N = 12
Worker = Callable[[str], str]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed: Any = pytest.importorskip("distributed", reason="pip install distributed")
    quiet = {"dashboard_address": None, "silence_logs": "CRITICAL"}
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", **quiet) as made:
        yield made


@pytest.fixture
def worker(cluster: Any, folder: Path) -> Iterator[Worker]:
    """Start a worker after a shell command, in its own mount namespace.  Returns its address."""
    distributed: Any = pytest.importorskip("distributed", reason="pip install distributed")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("unshare -m is not permitted: needs root")
    with ExitStack() as stack:
        client = stack.enter_context(distributed.Client(cluster, set_as_default=False))

        def begin(mounts: str) -> str:
            before = {*client.nthreads()}
            command = f'{mounts}\nexec "$@"'
            dask = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-nanny"]
            dask += ["--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", "0"]
            process = stack.enter_context(
                subprocess.Popen(
                    ["unshare", "-m", "sh", "-ec", command, "sh", *dask],
                    cwd="/",
                    env=os.environ | {"PYTHONPATH": str(REPO), "DASK_TEMPORARY_DIRECTORY": str(folder)},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            stack.callback(process.kill)
            client.wait_for_workers(len(before) + 1, timeout=60)
            (address,) = {*client.nthreads()} - before
            return str(address)

        yield begin
        left = {*client.nthreads()}
        stack.pop_all().close()
    with distributed.Client(cluster, set_as_default=False) as client:
        while left & {*client.nthreads()}:  # until the scheduler has noticed
            time.sleep(0.01)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(engines, "_LEAST", 3 * engines._START)  # enough tasks for all workers
    monkeypatch.setattr(engines, "_SECONDS_TO_SEE", 0.3)
    for number in range(N):
        path = tmp_path / f"in/host{number % 2}/{number}.callgrind"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"events: Ir\nfn=f{number}\n1 {number + 1}\n")
    (tmp_path / "out/host0").mkdir(parents=True)
    (tmp_path / "out/host1").mkdir()
    return tmp_path


def convert(cluster: Any, folder: Path, **options: Any) -> Any:
    engine = cluster.scheduler_address.replace("tcp://", "dask://")
    return fastprof.batch_convert(folder / "in", folder / "out", to="folded", engine=engine, **options)


def assert_all_are_here(folder: Path) -> None:
    for number in range(N):
        path = folder / f"out/host{number % 2}/{number}.callgrind.folded"
        assert path.read_text() == f"f{number} {number + 1}\n"
    assert not [*folder.rglob("*.token")]


@pytest.mark.parametrize(
    ("mounts", "why"),
    [
        (
            "mount -t tmpfs none {folder}/out",
            r"{folder}/out/\.fastprof is a different folder there, or none: No such file",
        ),
        ("mount -t tmpfs none {folder}/in", r"{folder}/in/host[01]/\d+\.callgrind: No such file or directory"),
        # another copy of the inputs, with the same sizes
        (
            "cp -r {folder}/in {folder}/other; sed -i s/Ir/Dr/ {folder}/other/*/*; mount -B {folder}/other {folder}/in",
            r"{folder}/in/host[01]/\d+\.callgrind is a different file there",
        ),
    ],
    ids=["outputs", "inputs", "other inputs"],
)
def test_a_worker_without_proof_is_left_out(cluster: Any, worker: Worker, folder: Path, mounts: str, why: str) -> None:
    bad = worker(mounts.format(folder=folder))
    with pytest.raises(FastprofError, match="Dask: no worker sees the files of this machine; " + bad):
        convert(cluster, folder)
    status = fastprof.batch_status(folder / "out")
    assert not status.statuses and not status.failed and [shard.state for shard in status.shards] == ["stopped"]
    worker(":")
    log = convert(cluster, folder)
    assert repr(log) == f"BatchLog(files={N}, earlier=0, ok={N})"
    (warning,) = log.warnings
    assert re.match(f"Dask: worker {bad} is not used: {why.format(folder=re.escape(str(folder)))}", warning)
    assert_all_are_here(folder)


@pytest.mark.parametrize(
    ("mounts", "what"),
    [
        ("mount -t tmpfs none {folder}/out/host1", "callgrind.folded is not what the worker wrote"),
        ("mount -B /dev/null {folder}/in/host1/9.callgrind", "9.callgrind"),
        (
            "echo x >{folder}/x; mount -B {folder}/x {folder}/in/host1/9.callgrind",
            "9.callgrind is a different file there",
        ),
        ("mount -t tmpfs -o ro none {folder}/out/host1", "Read-only file system"),
    ],
    ids=["some outputs", "a device for an input", "another input", "read-only"],
)
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "of two"])
def test_what_one_worker_cannot_do_is_done_elsewhere(
    cluster: Any, worker: Worker, folder: Path, mounts: str, what: str, alone: bool
) -> None:
    """The worker sees the compared files first.  `alone`: no other worker exists, only this machine."""
    bad = worker(mounts.format(folder=folder))
    if not alone:
        worker(":")
    log = convert(cluster, folder)
    assert repr(log) == f"BatchLog(files={N}, earlier=0, ok={N})"
    assert_all_are_here(folder)
    assert len(log.warnings) <= 1 and (log.warnings or not alone)
    for warning in log.warnings:
        assert warning.startswith(f"Dask: worker {bad}: ") and what in warning
    assert main(["batch", "status", f"{folder}/out"]) == 0


def test_errors_of_a_file_are_its_own(cluster: Any, worker: Worker, folder: Path) -> None:
    """They are recorded and not retried elsewhere."""
    worker(":")
    (folder / "in/host0/bad.callgrind").write_text("events: Ir\nfn=f\n1 x\n")
    log = convert(cluster, folder)
    assert (log.statuses["ok"], log.statuses["error"], log.warnings) == (N, 1, [])
    assert_all_are_here(folder)
    assert convert(cluster, folder).earlier == N + 1
    # a file that no machine can read is an error of this run; the next run tries it again
    (folder / "in/host0/gone.callgrind").symlink_to("nowhere")
    fastprof.batch_plan([folder / "in", folder / "in/host0/gone.callgrind"], folder / "plan", exclude=["*bad*"])
    engine = cluster.scheduler_address.replace("tcp://", "dask://")
    for _ in range(2):
        log = fastprof.batch_convert([], folder / "out", to="folded", plan=str(folder / "plan"), engine=engine)
        assert (log.statuses["error"], len(log.todo)) == (1, 1)
        assert log.failed[0]["error"] == {
            "message": f"{folder}/in/host0/gone.callgrind: No such file or directory",
            "retry": True,
        }


def test_merging(cluster: Any, worker: Worker, folder: Path) -> None:
    bad = worker(f"mount -t tmpfs none {folder}/in")
    worker(":")
    engine = cluster.scheduler_address.replace("tcp://", "dask://")
    log = fastprof.batch_merge(folder / "in", folder / "all.folded", engine=engine, fan_in=4)
    assert sorted((folder / "all.folded").read_text().split("\n")) == sorted(
        ["", *(f"f{number} {number + 1}" for number in range(N))]
    )
    assert len(log.warnings) == 1 and bad in log.warnings[0]
    assert not [*folder.glob("*.partials")]


def test_objects(bucket: Bucket, cluster: Any, worker: Worker, folder: Path) -> None:
    """A worker proves that it sees the same bucket; inputs, outputs, manifest and partial merges are objects."""
    worker(":")
    for path in (folder / "in").rglob("*.callgrind"):
        bucket.put(str(path.relative_to(folder)), path.read_bytes())
    engine = cluster.scheduler_address.replace("tcp://", "dask://")

    def run() -> Any:
        return fastprof.batch_convert("s3://bucket/in/", "s3://bucket/out/", to="folded", engine=engine)

    log = run()
    assert log.statuses == {"ok": N} and not log.warnings
    for number in range(N):
        assert bucket.get(f"out/host{number % 2}/{number}.callgrind.folded") == b"f%d %d\n" % (number, number + 1)
    assert run().earlier == N
    fastprof.batch_merge("s3://bucket/in/", "s3://bucket/all.folded", engine=engine, fan_in=4)
    lines = sorted(b"f%d %d" % (number, number + 1) for number in range(N))
    assert sorted(bucket.get("all.folded").splitlines()) == lines
    left = bucket.keys()
    assert not [key for key in left if key.endswith(".token") or ".partials" in key]


def test_files_of_options_are_proven(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    shutil.copy(CORPUS / "xray/pool-clang19", "server")
    job = {"input": str(folder / "in/host0/0.callgrind"), "options": {"symbols": ["server"], "function": "in"}}
    with partial_key.proof_of([job], str(folder / "out" / FOLDER)) as made:
        assert [path for path, _ in made["files"]] == [job["input"], "server"]
        assert partial_key.why_unproven(made) is None
        os.rename("server", "moved")
        assert partial_key.why_unproven(made) == "server: No such file or directory"
        Path("server").write_bytes(Path("moved").read_bytes()[:-1])
        assert partial_key.why_unproven(made) == "server is a different file there"
        assert "expected" in str(partial_key.why_unproven({**made, "version": "0"}))
    assert "a different folder there, or none" in str(partial_key.why_unproven(made))


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 20])
def test_what_is_compared_of_a_file(tmp_path: Path, size: int) -> None:
    """The whole file up to 1 MiB; in longer files both ends and blocks in between."""
    path = tmp_path / "file"
    data = bytearray(size)
    path.write_bytes(data)
    before = partial_key.seen(str(path))
    places = {0, size // 2, size - 1} if size <= 1 << 20 else {0, 65535, size - 65536, size - 1}
    for place in places if size else ():
        data[place] ^= 1
        path.write_bytes(data)
        assert partial_key.seen(str(path)) != before
        data[place] ^= 1
    path.write_bytes(data + b"\0")
    assert partial_key.seen(str(path)) != before
