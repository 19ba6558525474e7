"""`fastprof batch`: every file gets the same output as alone, and finished files are not converted again."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.options import available
from fastprof.verbs.batch import convert as batch
from fastprof.verbs.batch.engines import begun
from fastprof.verbs.batch.files import File
from fastprof.verbs.batch.manifest import FOLDER, manifests, records_by_output
from fastprof.verbs.batch.shards import FileList, of_shard
from tests.contract.dump import files
from tests.support.chosen import cases
from tests.support.crashing import FUNCTION
from tests.support.paths import CORPUS, REPO
from tests.support.signals import heard

GRAPH = CORPUS / "callgrind/good/everything.callgrind"
CLI = [sys.executable, "-m", "fastprof", "batch", "convert"]
# by view: a timeline, stacks that need symbols, stacks, a graph
KINDS = ("xray/good/fdr5-pool-clang19.xray", "gperftools/good/small.prof", "pprof/good/everything.pb", GRAPH)


def dumps(folder: Path, n: int) -> Path:
    """`n` files of four formats, in folders of a hundred."""
    for number in range(n):
        source = CORPUS / KINDS[number % len(KINDS)]
        target = folder / f"host{number // 100}" / f"{number}{source.suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return folder


def outputs(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name != FOLDER
    }


def one_by_one(inputs: Path, folder: Path) -> dict[str, bytes]:
    for path in sorted(inputs.rglob("*.*")):
        output = folder / f"{path.relative_to(inputs)}.callgrind"
        output.parent.mkdir(parents=True, exist_ok=True)
        fastprof.convert(path, output)
    return outputs(folder)


def lines_of(outdir: Path, name: str = "1-of-1") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (outdir / FOLDER / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.exhaustive
def test_each_file_becomes_what_it_becomes_alone(tmp_path: Path) -> None:
    """500 files, two workers."""
    inputs = dumps(tmp_path / "in", 500)
    log = fastprof.batch_convert(inputs, tmp_path / "out", to="callgrind", jobs=2)
    assert repr(log) == "BatchLog(files=500, earlier=0, ok=500)"
    assert outputs(tmp_path / "out") == one_by_one(inputs, tmp_path / "alone")
    run, *records = lines_of(tmp_path / "out")
    assert run["run"]["files"] == len(records) == 500
    one = next(record for record in records if record["output"] == "host0/0.xray.callgrind")
    assert one["repairs"] == [{"code": "unwound-frames", "text": "unwound frames", "count": 3}]
    assert one["bytes"] == (tmp_path / "out/host0/0.xray.callgrind").stat().st_size
    assert (one["input"], one["status"], one["try"]) == (f"{inputs}/host0/0.xray", "ok", 1)
    assert one["cpu_seconds"] > 0


@pytest.mark.exhaustive
def test_every_file_of_the_corpus(tmp_path: Path) -> None:
    """Good and damaged files: the results are those of single conversions, and each error has its position."""
    log = fastprof.batch_convert(CORPUS, tmp_path / "out", to="folded", include=["*/good/*", "*/bad/*"])
    records = records_by_output(manifests(str(tmp_path / "out")))
    assert log.files == len(records) == len([p for p in CORPUS.glob("*/*/*") if p.parent.name in ("good", "bad")])
    for name in files("good"):
        record = records.get(f"{name}.folded")
        if record and record["status"] == "ok":
            fastprof.convert(CORPUS / name, tmp_path / "alone", to="folded")
            assert (tmp_path / "out" / record["output"]).read_bytes() == (tmp_path / "alone").read_bytes(), name
    for name in files("bad"):
        if (record := records.get(f"{name}.folded")) and record["status"] == "error":
            with pytest.raises(FastprofError) as error:
                fastprof.convert(CORPUS / name, tmp_path / "alone", to="folded")
            assert record["error"]["message"] == str(error.value)
            if isinstance(error.value, fastprof.FormatError):
                assert record["error"].get("offset") == error.value.offset
    assert log.errors > 50 and log.statuses["ok"] > 50


# ---- repeated runs ------------------------------------------------------------------


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A finished batch of twelve files, and a damaged thirteenth."""
    dumps(tmp_path / "in", 12)
    (tmp_path / "in/host0/bad.prof").write_bytes((CORPUS / KINDS[1]).read_bytes()[:100])
    assert again(tmp_path).todo_names == {f"{n}{(CORPUS / KINDS[n % 4]).suffix}" for n in range(12)} | {"bad.prof"}
    return tmp_path


class Again:
    def __init__(self, log: batch.BatchLog) -> None:
        self.log = log
        self.todo_names = {os.path.basename(job["input"]) for job in log.todo}


def again(folder: Path, **options: Any) -> Again:
    return Again(fastprof.batch_convert(folder / "in", folder / "out", to="callgrind", jobs=1, **options))


def test_what_is_done_is_not_done_again(done: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (done / "out").rglob("*.callgrind")}
    found = again(done)
    assert not found.todo_names
    assert repr(found.log) == "BatchLog(files=13, earlier=13, ok=12, error=1)"
    assert [record["input"] for record in found.log.failed] == [f"{done}/in/host0/bad.prof"]
    assert {path: path.stat().st_mtime_ns for path in (done / "out").rglob("*.callgrind")} == before


def test_what_is_missing_or_changed_is_done_again(done: Path) -> None:
    (done / "out/host0/0.xray.callgrind").unlink()
    (done / "out/host0/1.prof.callgrind").write_text("cut")
    os.utime(done / "in/host0/2.pb", ns=(0, 12345))
    with (done / "in/host0/3.callgrind").open("a") as file:
        file.write("\n")
    shutil.copy(GRAPH, done / "in/new.callgrind")
    assert again(done).todo_names == {"0.xray", "1.prof", "2.pb", "3.callgrind", "new.callgrind"}
    assert not again(done).todo_names


def test_other_options_are_another_batch(done: Path) -> None:
    assert len(again(done, lenient=True).todo_names) == 13
    assert not again(done, lenient=True).todo_names
    assert len(again(done).todo_names) == 13


def test_workers_share_the_cores(done: Path) -> None:
    """The number of threads does not affect the output, so it does not start another batch."""
    assert not again(done, cores=3).todo_names
    for workers, given, cores in ((1, {}, available()), (available(), {}, 1), (1000, {}, 1), (1, {"cores": 7}, 7)):
        log = fastprof.batch_convert(done / "in", done / "new", to="folded", jobs=workers, dry_run=True, **given)
        assert {job["options"]["cores"] for job in log.todo} == {cores}


def test_errors_are_tried_again_if_asked(done: Path) -> None:
    assert again(done, retry_errors=True).todo_names == {"bad.prof"}


def test_errors_that_are_not_of_the_bytes_are_tried_again(done: Path) -> None:
    """Here: no permission to write; root lacks it only if the folder does not exist."""
    shutil.rmtree(done / "out/host0")
    (done / "out/host0").symlink_to("/proc/self/nothing")
    log = again(done).log
    assert log.statuses["error"] == 13 and log.earlier == 1
    assert sum(record["error"].get("retry", False) for record in log.failed) == 12
    (done / "out/host0").unlink()
    assert len(again(done).todo_names) == 12 and again(done).log.earlier == 13


def test_a_crash_is_tried_again(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(GRAPH, done / "in/segfault")
    with monkeypatch.context() as patch:
        patch.setattr(batch, "begun", partial(begun, function=FUNCTION))
        crashed = again(done).log
    assert crashed.statuses["crashed"] == 1 and crashed.errors == 2
    assert again(done).todo_names == {"segfault"}
    assert again(done).log.statuses["crashed"] == 0


def test_a_torn_line_is_no_line(done: Path) -> None:
    path = done / "out" / FOLDER / "1-of-1.jsonl"
    whole = path.read_bytes()
    last = json.loads(whole.splitlines()[-1])
    path.write_bytes(whole[:-20])
    assert again(done).todo_names == {os.path.basename(last["input"])}
    assert not again(done).todo_names
    path.write_bytes(b"{" + whole)
    with pytest.raises(FastprofError, match=r"1-of-1.jsonl: line 1: .*expected JSON"):
        again(done)


def test_one_batch_at_a_time(done: Path) -> None:
    with (
        batch.Manifest(str(done / "out"), "1-of-1", {"files": 0, "earlier": 0, "todo": 0}),
        pytest.raises(FastprofError, match="another batch is running here"),
    ):
        again(done)


def test_a_dry_run_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dumps(tmp_path / "in", 4)
    assert main(["batch", "convert", f"{tmp_path}/in", "-t", "folded", "-o", f"{tmp_path}/out", "--dry-run"]) == 0
    assert not (tmp_path / "out").exists()
    printed = capsys.readouterr()
    assert f"{tmp_path}/in/host0/1.prof -> {tmp_path}/out/host0/1.prof.folded\n" in printed.out
    assert len(printed.out.splitlines()) == 4


# ---- kill -9 ---------------------------------------------------------------------------


def processes_of(pid: int) -> list[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


@pytest.mark.parametrize("n_lines", cases([1, 2, 200], default=[2]))
def test_nothing_is_lost_when_all_are_killed(tmp_path: Path, n_lines: int) -> None:
    """Killed before the first file is done, in the middle, near the end: files in the manifest are not converted
    again."""
    n = 400
    inputs = dumps(tmp_path / "in", n)
    out = tmp_path / "out"
    os.mkfifo(tmp_path / "fifo")  # it has no writer, so some work is always left, however slow this process is
    command = [*CLI, str(inputs), str(tmp_path / "fifo"), "-t", "callgrind", "-o", str(out), "-j", "2"]
    manifest = out / FOLDER / "1-of-1.jsonl"
    with subprocess.Popen(command, cwd=REPO, stderr=subprocess.PIPE) as parent:
        while not manifest.exists() or manifest.read_bytes().count(b"\n") < n_lines or not processes_of(parent.pid):
            assert parent.poll() is None
            time.sleep(0.001)  # leaves the processors to the workers
        handles = [os.pidfd_open(pid) for pid in processes_of(parent.pid)]
        parent.kill()
    for handle in handles:
        assert select.select([handle], [], [], 60)[0], "a worker lives on"
        os.close(handle)
    n_done = len(records_by_output(manifests(str(out))))
    assert n_lines - 1 <= n_done <= n
    log = fastprof.batch_convert(inputs, out, to="callgrind", jobs=2)
    assert (log.earlier, log.statuses["ok"]) == (n_done, n)
    assert outputs(out) == one_by_one(inputs, tmp_path / "alone")


def test_interrupts_end_all_processes(tmp_path: Path) -> None:
    dumps(tmp_path / "in", 4)
    os.mkfifo(tmp_path / "fifo")  # it has no writer
    command = [*CLI, str(tmp_path / "in"), str(tmp_path / "fifo"), "-t", "callgrind", "-o", str(tmp_path / "out")]
    command += ["-j", "1"]
    with subprocess.Popen(command, cwd=REPO, stderr=subprocess.PIPE, preexec_fn=heard) as parent:
        manifest = tmp_path / "out" / FOLDER / "1-of-1.jsonl"
        while not manifest.exists() or manifest.read_bytes().count(b"\n") < 5:
            assert parent.poll() is None
            time.sleep(0.001)
        (handle,) = [os.pidfd_open(pid) for pid in processes_of(parent.pid)]
        parent.send_signal(signal.SIGINT)
        assert parent.wait() == -signal.SIGINT
    assert select.select([handle], [], [], 60)[0], "the worker lives on"
    os.close(handle)


# ---- inputs ---------------------------------------------------------------------------


def test_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dumps(tmp_path / "in", 4)
    (tmp_path / "in/memory").symlink_to("/proc/self/mem")
    (tmp_path / "in/truncated.prof").write_bytes((CORPUS / KINDS[1]).read_bytes()[:100])
    given = ["batch", "convert", f"{tmp_path}/in", f"{tmp_path}/absent", "-t", "folded", "-o", f"{tmp_path}/out"]
    assert main(given) == 1
    printed = capsys.readouterr().err
    assert f"fastprof: {tmp_path}/in/memory: Invalid argument\n" in printed
    assert f"fastprof: {tmp_path}/absent: No such file or directory\n" in printed
    assert f"fastprof: {tmp_path}/in/truncated.prof: gperftools: at byte " in printed
    assert ": 4 of 7 files (" in printed
    assert len(outputs(tmp_path / "out")) == 4
    assert main([*given, "--lenient", "-q"]) == 1  # /proc/self/mem
    printed = capsys.readouterr().err
    assert f"fastprof: {tmp_path}/in/memory: Invalid argument\n" in printed and "done" not in printed
    (tmp_path / "in/memory").unlink()
    given.remove(f"{tmp_path}/absent")
    assert main([*given, "--lenient", "-q"]) == 3
    found = re.fullmatch(r"fastprof: .*/out: 1 file with losses, \d+ warnings, see .*\n", capsys.readouterr().err)
    assert found


def test_a_folder_that_vanishes(tmp_path: Path) -> None:
    dumps(tmp_path / "in", 104)
    fastprof.batch_plan(tmp_path / "in", tmp_path / "plan")
    shutil.rmtree(tmp_path / "in/host0")
    log = fastprof.batch_convert([], tmp_path / "out", to="folded", plan=str(tmp_path / "plan"))
    assert (log.statuses["ok"], log.statuses["error"]) == (4, 100)
    assert {record["error"]["message"].partition(": ")[2] for record in log.failed} == {"No such file or directory"}


def test_an_unreadable_folder_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated, because root may read everything."""
    inputs = dumps(tmp_path / "in", 204)
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if path == f"{inputs}/host1":
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    log = fastprof.batch_convert(inputs, tmp_path / "out", to="folded")
    assert repr(log) == "BatchLog(files=105, earlier=0, error=1, ok=104)"
    assert log.failed == [{"status": "error", "error": {"message": f"{inputs}/host1: Permission denied"}}]


@pytest.mark.parametrize("name", ["batch_convert", "batch_merge", "batch_archive"])
def test_what_has_no_path_is_refused(name: str, tmp_path: Path) -> None:
    of_name = {"to": "folded"} if name == "batch_convert" else {}
    for inputs in (io.BytesIO(b"f 1\n"), [io.BytesIO(b"f 1\n")], b"f 1\n"):
        with pytest.raises(fastprof.UsageError, match="a batch takes paths"):
            getattr(fastprof, name)(inputs, tmp_path / "out", **of_name)


def test_collisions_are_refused_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/x", "b/x", "c/x.folded/y", "c/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(GRAPH, tmp_path / name)
    out = tmp_path / "out"
    for inputs, why in {
        ("a", "b"): f"{tmp_path}/a/x and {tmp_path}/b/x would both become {out}/x.folded: pass a folder that has both",
        ("c",): f"{tmp_path}/c/x would become {out}/x.folded, which is the folder of another output",
    }.items():
        with pytest.raises(UsageError) as error:
            fastprof.batch_convert([tmp_path / name for name in inputs], out, to="folded")
        assert str(error.value) == why
    assert not out.exists()
    shutil.copy(GRAPH, tmp_path / "a/x.folded")
    monkeypatch.chdir(tmp_path / "a")
    with pytest.raises(UsageError, match=r"a/x would become .*a/x\.folded, which is an input"):
        fastprof.batch_convert(["x", "x.folded"], ".", to="folded")
    for inside in ("a", "a/out"):
        with pytest.raises(UsageError, match="is inside the input"):
            fastprof.batch_convert(tmp_path / "a", tmp_path / inside, to="folded")


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in a given folder is named after its path in it; other files after the given path."""
    dumps(tmp_path / "runs", 4)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    def names(*inputs: str, **options: Any) -> set[str]:
        log = fastprof.batch_convert(inputs, "out", to="folded", dry_run=True, **options)
        return {os.path.relpath(job["output"], "out") for job in log.todo}

    assert names("runs", include=["*.prof"]) == {"host0/1.prof.folded"}
    assert names("runs/host0", include=["*.prof"]) == {"1.prof.folded"}
    assert names("./runs/host0/1.prof", "runs/host0/1.prof") == {"runs/host0/1.prof.folded"}
    assert names("elsewhere/../runs/host0/1.prof") == {"runs/host0/1.prof.folded"}
    assert names(str(tmp_path / "runs/host0/1.prof")) == {str(tmp_path / "runs/host0/1.prof.folded")[1:]}
    assert names("runs", include=["*.p*"], exclude=["host0/1*"]) == {"host0/2.pb.folded"}
    with pytest.raises(UsageError, match="no input files match"):
        names("runs", include=["*.nothing"])


def test_any_name_is_a_name(tmp_path: Path) -> None:
    """Including names that are not valid text, or contain a newline."""
    (tmp_path / "in").mkdir()
    for name in (b"a\nb", b"\xff\xfe", '"ü"'.encode(), b" "):
        shutil.copy(GRAPH, os.path.join(os.fsencode(tmp_path / "in"), name))
    for n_earlier in (0, 4):
        log = fastprof.batch_convert(tmp_path / "in", tmp_path / "out", to="folded", shard=(1, 1))
        assert (log.earlier, log.statuses["ok"]) == (n_earlier, 4)
    assert len(outputs(tmp_path / "out")) == 4
    fastprof.batch_plan(tmp_path / "in", tmp_path / "plan")
    assert fastprof.batch_convert([], tmp_path / "out", to="folded", plan=str(tmp_path / "plan")).earlier == 4


def test_names_from_a_file(tmp_path: Path) -> None:
    dumps(tmp_path / "in", 4)
    names = b"".join(os.fsencode(path) + b"\0" for path in (tmp_path / "in").rglob("*.*"))
    command = [*CLI, "--files0-from", "-", "-t", "folded", "-o", str(tmp_path / "out")]
    done = subprocess.run(command, input=names, cwd=REPO, capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(outputs(tmp_path / "out")) == 4


def test_options_for_some_of_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Symbols apply only to files with addresses; but a filter that cannot be applied is an error."""
    dumps(tmp_path / "in", 4)
    given = ["batch", "convert", f"{tmp_path}/in", "-t", "folded", "-o", f"{tmp_path}/out"]
    assert main([*given, "-s", str(CORPUS / "xray/pool-clang19")]) == 0
    assert "did nothing" not in capsys.readouterr().err
    folded = (tmp_path / "out/host0/0.xray.folded").read_text()
    assert "Pool::worker" in folded
    shutil.rmtree(tmp_path / "out")
    only = [*given, "-s", str(CORPUS / "xray/pool-clang19"), "--include", "*.callgrind"]
    assert main(only) == 0
    assert "warning: --symbols had no effect on any of these files\n" in capsys.readouterr().err
    assert main([*given, "--time-range", "0:1000000000000000"]) == 1
    assert "3.callgrind: --time-range has no effect from callgrind to folded" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--shard", "0/8"], "0 is not a whole number from 1"),
        (["--shard", "9/8"], "9/8 is not a shard: I goes from 1 to 8"),
        (["--shard", "1"], "'1' is not a shard such as 1/8, the first of eight"),
        (["--timeout", "0"], "0.0 is not a number of seconds"),
        (["--timeout", "soon"], "'soon' is not a number of seconds"),
        (["-j", "0"], "0 is not a whole number from 1 to 4096"),
        (["--plan", "plan"], "not allowed, --plan=plan lists all inputs"),
        (["--plan", "plan", "--include", "*"], "--include is for `fastprof batch plan`"),
        (["-"], "standard input has no name"),
    ],
)
def test_usage(words: list[str], says: str, tmp_path: Path) -> None:
    command = [*CLI, str(GRAPH), *words, "-t", "folded", "-o", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 2 and says in done.stderr
    assert not (tmp_path / "out").exists()


# ---- shards ---------------------------------------------------------------------------


@pytest.mark.parametrize("planned", [False, True])
def test_shards_have_each_file_once(tmp_path: Path, planned: bool) -> None:
    inputs = dumps(tmp_path / "in", 120)
    given: dict[str, Any] = {"inputs": inputs}
    if planned:
        assert fastprof.batch_plan(inputs, tmp_path / "plan").files == 120
        given = {"inputs": [], "plan": str(tmp_path / "plan")}
    counts = []
    for number in range(1, 6):
        log = fastprof.batch_convert(outdir=tmp_path / "out", to="callgrind", shard=(number, 5), jobs=1, **given)
        counts.append(log.files)
        assert log.earlier == 0
    assert sum(counts) == 120 and min(counts) > 5
    assert outputs(tmp_path / "out") == one_by_one(inputs, tmp_path / "alone")
    status = fastprof.batch_status(tmp_path / "out")
    assert [shard.shard for shard in status.shards] == [f"{number}-of-5" for number in range(1, 6)]
    assert {shard.state for shard in status.shards} == {"done"} and status.statuses == {"ok": 120}
    assert fastprof.batch_convert(inputs, tmp_path / "out", to="callgrind").earlier == 120


def test_a_plan_shares_bytes() -> None:
    files_ = [File(f"/{n}", str(n), 1 << (20 - n % 20), 0) for n in range(1000)]
    files_.sort(key=lambda file: -file.size)
    shares = [of_shard(files_, (number, 7), frozen=True) for number in range(1, 8)]
    assert sorted(file.path for share in shares for file in share) == sorted(file.path for file in files_)
    loads = [sum(file.size for file in share) for share in shares]
    assert max(loads) - min(loads) <= 1 << 20
    assert [file.size for file in shares[0]] == sorted((file.size for file in shares[0]), reverse=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "0 files, expected a plan"),
        ("nonsense\n", "line 1: not a plan by `fastprof batch plan`"),
        ('{"plan": 1, "files": 2}\n{"path": "a", "name": "a", "size": 1, "mtime_ns": 1}\n', "1 file, expected 2"),
        ('{"plan": 1, "files": 1}\n{"path": 7}\n', "line 2: not a file of a plan, expected path, name, size, mtime_ns"),
    ],
)
def test_a_plan_that_is_none(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "plan").write_text(text)
    with pytest.raises(FastprofError) as error:
        [*FileList(str(tmp_path / "plan"))]
    assert str(error.value) == f"{tmp_path}/plan: {says}"


# ---- messages ---------------------------------------------------------------------------


def test_status(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["batch", "status", f"{done}/out"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("shard   files  done earlier  left  state\n1-of-1     13             0     0  done\n\n")
    assert "12 ok, 0 lossy, 1 error, 0 crashed; " in printed
    assert printed.splitlines()[-1].startswith(f"{done}/in/host0/bad.prof: gperftools: at byte ")
    manifest = done / "out" / FOLDER / "1-of-1.jsonl"
    manifest.write_bytes(b"".join(manifest.read_bytes().splitlines(keepends=True)[:-3]))
    assert fastprof.batch_status(done / "out").shards == [("1-of-1", 13, 0, 3, "stopped")]
    with batch.Manifest(str(done / "out"), "1-of-1", {"files": 13, "earlier": 10, "todo": 3}):
        assert fastprof.batch_status(done / "out").shards == [("1-of-1", 13, 10, 3, "running")]
    with pytest.raises(FastprofError, match="no `fastprof batch` has written to this folder"):
        fastprof.batch_status(done / "in")


def test_json_and_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dumps(tmp_path / "in", 4)
    given = ["batch", "convert", f"{tmp_path}/in", "-t", "folded", "-o", f"{tmp_path}/out"]
    assert main([*given, "--json"]) == 0
    said = json.loads(capsys.readouterr().err)
    assert (said["files"], said["ok"], said["failed"], said["earlier"]) == (4, 4, [], 0)
    assert main([*given, "-q"]) == 0
    out, err = capsys.readouterr()
    assert out == "" and re.fullmatch(r"fastprof: .*/out: \d+ warnings, see .*\n", err)


def test_progress_is_for_terminals(tmp_path: Path) -> None:
    dumps(tmp_path / "in", 4)
    (tmp_path / "in/bad.prof").write_bytes((CORPUS / KINDS[1]).read_bytes()[:100])
    words = ["batch", "convert", str(tmp_path / "in"), "-t", "folded", "-o", str(tmp_path / "out")]
    at_once = "from fastprof.cli import bar; bar._FIRST = 0; from fastprof.cli import main; raise SystemExit(main())"
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (25, 100))
    shown = b""
    with subprocess.Popen([sys.executable, "-c", at_once, *words], cwd=REPO, stderr=slave) as process:
        os.close(slave)
        while True:
            try:
                shown += os.read(master, 1 << 16)
            except OSError:
                break
    os.close(master)
    assert process.returncode == 1
    assert b"B/s" in shown and b": 4 of 5 files (" in shown
    quiet = subprocess.run([sys.executable, "-c", at_once, *words, "--retry-errors"], cwd=REPO, capture_output=True)
    assert b"B/s" not in quiet.stderr
