"""The recipes of docs/batch.md for many machines: on a Slurm of one node, with GNU parallel and xargs; the commands of
those for Kubernetes and Ray, without them.

Each file is converted once.
"""

from __future__ import annotations

import os
import pickle
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.verbs.batch.manifest import FOLDER
from tests.differential.peers import need
from tests.support.paths import CORPUS, PYTHON, REPO

CONFIG = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def free_ports(n: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture
def slurm() -> Iterator[dict[str, str]]:
    """The environment for Slurm's commands; its daemons run as long as the test."""
    programs = [need(name) for name in ("munged", "slurmctld", "slurmd", "sbatch")]
    # short, because it holds a socket, and not below a folder that others can write to, which munged refuses
    with (
        tempfile.TemporaryDirectory(dir="/run" if os.access("/run", os.W_OK) else Path.home()) as name,
        ExitStack() as stack,
    ):
        folder = Path(name)
        folder.chmod(0o755)
        for made in ("state", "spool"):
            (folder / made).mkdir()
        (folder / "key").write_bytes(os.urandom(1024))
        (folder / "key").chmod(0o400)
        host = socket.gethostname().partition(".")[0]
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        config = folder / "slurm.conf"
        config.write_text(CONFIG.format(host=host, user=user, ports=free_ports(2), folder=folder))
        names = {name: f"--{name}={folder}/munge.{name}" for name in ("socket", "pid-file", "log-file", "seed-file")}
        for command in (
            [programs[0], "--foreground", "--force", f"--key-file={folder}/key", *names.values()],
            [programs[1], "-D", "-f", str(config), "-i"],
            [programs[2], "-D", "-f", str(config)],
        ):
            log = stack.enter_context((folder / "log").open("ab"))
            daemon = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
            stack.callback(daemon.terminate)
            while command[0] == programs[0] and not (folder / "munge.socket").exists():
                assert daemon.poll() is None
        yield os.environ | {"SLURM_CONF": str(config)}


def recipe(fence: str) -> str:
    """The first block of docs/batch.md that contains this text."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", (REPO / "docs/batch.md").read_text(), re.DOTALL | re.MULTILINE)
    return next(block for block in blocks if fence in block)


def dumps(folder: Path) -> Path:
    for number in range(60):
        folder.mkdir(exist_ok=True)
        shutil.copy(CORPUS / "gperftools/good/plain.prof", folder / f"{number}.prof")
    return folder


def assert_each_was_done_once(out: Path, n_shards: int) -> None:
    shards = [out / FOLDER / f"{number}-of-{n_shards}.jsonl" for number in range(1, n_shards + 1)]
    n_records = [path.read_text().count('"status": "ok"') for path in shards]
    assert sum(n_records) == 60 and min(n_records) > 0
    assert len([*out.glob("*.prof.pb.gz")]) == 60


def adapted(text: str, folder: Path) -> str:
    """A recipe with this test's files and this fastprof."""
    for documented, ours in {
        "fastprof batch": f"{PYTHON} -m fastprof batch",
        "dumps.plan": str(folder / "plan"),
        "/data/dumps": str(folder / "dumps"),
        "/data/out": str(folder / "out"),
        "-o out": f"-o {folder / 'out'}",
        "/data/server": shlex.quote(str(CORPUS / "xray/pool-clang19")),
    }.items():
        text = text.replace(documented, ours)
    return text


def test_slurm(slurm: dict[str, str], tmp_path: Path) -> None:
    fastprof.batch_plan(dumps(tmp_path / "dumps"), tmp_path / "plan")
    script = recipe("#SBATCH --array=1-8")
    assert "exec fastprof batch convert --plan dumps.plan" in script
    command = ["sbatch", "--wait", f"--output={tmp_path}/%a.log", "--chdir", str(REPO)]
    done = subprocess.run(
        command, input=adapted(script, tmp_path), env=slurm, capture_output=True, text=True, timeout=300
    )
    logs = "".join(path.read_text() for path in sorted(tmp_path.glob("*.log")))
    assert done.returncode == 0, done.stderr + logs
    assert logs.count("fastprof: wrote ") == 8
    assert_each_was_done_once(tmp_path / "out", 8)
    again = subprocess.run(
        command, input=adapted(script, tmp_path), env=slurm, capture_output=True, text=True, timeout=300
    )
    assert again.returncode == 0
    assert_each_was_done_once(tmp_path / "out", 8)


def test_kubernetes(tmp_path: Path) -> None:
    """The command of each pod, of two instead of eight."""
    dumps(tmp_path / "dumps")
    fastprof.batch_plan(tmp_path / "dumps", tmp_path / "plan")
    command = " ".join(recipe("kind: Job").partition("- exec ")[2].split())
    command = command.replace("s3://profiles/dumps.plan", "dumps.plan").replace("s3://profiles/out/", "/data/out")
    assert command.endswith('--shard "$((JOB_COMPLETION_INDEX + 1))/8"')
    for index, code in (("0", 1), ("1", 0)):
        command_of_two = adapted(command.replace("/8", "/2"), tmp_path)
        environment = os.environ | {"JOB_COMPLETION_INDEX": index}
        subprocess.run(["sh", "-c", command_of_two], cwd=REPO, env=environment, check=True, capture_output=True)
        assert main(["batch", "status", str(tmp_path / "out")]) == code
    assert_each_was_done_once(tmp_path / "out", 2)


def test_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for Ray, which only sends arguments and results through pickle."""

    class Task:
        def __init__(self, function: Callable[..., Any]) -> None:
            self.function = function

        def remote(self, *arguments: Any) -> bytes:
            return pickle.dumps(self.function(*pickle.loads(pickle.dumps(arguments))))

    ray = SimpleNamespace(remote=lambda **_: Task, get=lambda done: [*map(pickle.loads, done)])
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    monkeypatch.chdir(dumps(tmp_path / "dumps").parent)
    blocks = re.findall(r"^```python\n(.*?)^```$", (REPO / "docs/batch.md").read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(next(block for block in blocks if "import ray" in block), names)
    assert [record["status"] for record in names["records"]] == ["ok"] * 60
    assert len([*(tmp_path / "out").glob("*.prof.callgrind")]) == 60


def test_parallel(tmp_path: Path) -> None:
    """On this machine only, which it calls `:`, two at a time; others would need ssh."""
    program = need("parallel")
    fastprof.batch_plan(dumps(tmp_path / "dumps"), tmp_path / "plan")
    command = next(line for line in recipe("| parallel").splitlines() if "parallel" in line)
    assert " -S node1,node2 " in command
    command = command.replace("-S node1,node2", "-S 2/:").replace("parallel", program, 1)
    subprocess.run(["sh", "-c", adapted(command, tmp_path)], cwd=REPO, check=True, capture_output=True)
    assert_each_was_done_once(tmp_path / "out", 8)


def test_xargs(tmp_path: Path) -> None:
    dumps(tmp_path / "dumps")
    lines = recipe("xargs").splitlines()
    command = next(line for line in lines if "xargs" in line)
    subprocess.run(["sh", "-c", adapted(command, tmp_path)], cwd=REPO, check=True, capture_output=True)
    assert_each_was_done_once(tmp_path / "out", 2)
