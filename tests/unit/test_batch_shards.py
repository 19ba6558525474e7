"""`fastprof batch status` as a gate: a batch is done when all shards are, all with the same number of shards."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.verbs.batch import shards
from fastprof.verbs.batch.files import without_collisions
from fastprof.verbs.batch.manifest import FOLDER, Manifest, manifests, records_by_output, shard_of
from fastprof.verbs.batch.shards import FileList, of_shard
from tests.support.paths import CORPUS, REPO

GRAPH = CORPUS / "callgrind/good/everything.callgrind"
RUN = {"files": 1, "earlier": 0, "todo": 1, "began": 1e12}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for number in range(12):
        shutil.copy(GRAPH, tmp_path / f"in/{number}.callgrind")
    return tmp_path


def convert(*words: str, code: int = 0) -> None:
    assert main(["batch", "convert", "in", "-t", "folded", "-o", "out", "-q", "-j", "1", *words]) == code


def states() -> dict[str, str]:
    return {shard.shard: shard.state for shard in fastprof.batch_status("out").shards}


def status() -> int:
    return main(["batch", "status", "out"])


def test_shards_that_were_never_begun_are_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert("--shard", "2/4")
    convert("--shard", "4/4")
    assert states() == {"1-of-4": "missing", "2-of-4": "done", "3-of-4": "missing", "4-of-4": "done"}
    assert status() == 1
    printed = capsys.readouterr().out
    assert "\n3-of-4      0             0     0  missing\n" in printed
    assert printed.endswith("\n2 of 4 shards not done\n")
    assert main(["batch", "status", "out", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["unfinished"] == ["1-of-4", "3-of-4"]
    convert("--shard", "1/4")
    assert status() == 1
    convert("--shard", "3/4")
    assert status() == 0 and {*states().values()} == {"done"}
    assert fastprof.batch_status("out").statuses == {"ok": 12}


@pytest.mark.parametrize("cut", [0, 1, 3])
def test_a_shard_that_was_stopped_is_not_done(folder: Path, cut: int) -> None:
    """Even if it stopped before its first line."""
    convert("--shard", "1/2")
    convert("--shard", "2/2")
    manifest = folder / "out" / FOLDER / "1-of-2.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    assert len(lines) > 4
    manifest.write_bytes(b"".join(lines[:cut]))
    assert states() == {"1-of-2": "stopped", "2-of-2": "done"} and status() == 1
    convert("--shard", "1/2")
    assert status() == 0


def test_a_shard_at_work_is_not_done(folder: Path) -> None:
    convert("--shard", "1/2")
    with Manifest("out", "2-of-2", RUN):
        assert states() == {"1-of-2": "done", "2-of-2": "running"} and status() == 1


def test_another_number_of_shards_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert("--shard", "1/4")
    before = sorted(os.listdir("out")), sorted(os.listdir(f"out/{FOLDER}"))
    capsys.readouterr()
    for words in (["--shard", "1/8"], ["--shard", "1/3"], ["--shard", "1/8", "--dry-run"]):
        convert(*words, code=2)
        said = f"{words[0]}={words[1]}: out has outputs of 4 shards; use --shard=I/4, no --shard for all that remain, "
        assert capsys.readouterr().err == f"fastprof: {said}or remove out/{FOLDER} to start over\n"
    with pytest.raises(UsageError, match=r"^shard=1/8: out has outputs of 4 shards; use shard=I/4, no shard= for "):
        fastprof.batch_convert("in", "out", to="folded", shard=(1, 8))
    assert (sorted(os.listdir("out")), sorted(os.listdir(f"out/{FOLDER}"))) == before
    shutil.rmtree(f"out/{FOLDER}")
    convert("--shard", "1/8")
    assert len(states()) == 8


def test_all_at_once_goes_on_where_shards_ended(folder: Path) -> None:
    convert("--shard", "1/4")
    convert()
    assert states() == {"1-of-1": "done", "1-of-4": "done"} and status() == 0
    # and in the reverse order
    convert("--shard", "2/4")
    assert states()["3-of-4"] == "missing" and status() == 1
    convert("--shard", "1/4")
    convert("--shard", "3/4")
    convert("--shard", "4/4")
    assert status() == 0 and fastprof.batch_status("out").statuses == {"ok": 12}


def test_what_was_stopped_and_done_by_a_later_run_is_done(folder: Path) -> None:
    convert("--shard", "1/4")
    manifest = folder / "out" / FOLDER / "1-of-4.jsonl"
    manifest.write_bytes(b"".join(manifest.read_bytes().splitlines(keepends=True)[:2]))
    convert()
    assert states() == {"1-of-1": "done", "1-of-4": "replaced"} and status() == 0


def test_not_both_at_the_same_time(folder: Path) -> None:
    with Manifest("out", "1-of-4", RUN), pytest.raises(FastprofError, match=r"1-of-4\.jsonl: another batch is running"):
        fastprof.batch_convert("in", "out", to="folded")
    shutil.rmtree("out")
    with Manifest("out", "1-of-1", RUN), pytest.raises(FastprofError, match=r"1-of-1\.jsonl: another batch is running"):
        fastprof.batch_convert("in", "out", to="folded", shard=(1, 4))
    assert os.listdir(f"out/{FOLDER}") == ["1-of-1.jsonl"]
    with Manifest("out", "2-of-4", RUN | {"began": 0}):  # concurrent shards
        convert("--shard", "1/4")


def test_an_input_that_cannot_be_listed_is_in_the_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkdir("void")
    capsys.readouterr()
    assert main(["batch", "convert", "in", "void", "-t", "folded", "-o", "out2", "-q"]) == 1
    assert main(["batch", "status", "out2"]) == 1
    assert capsys.readouterr().out.endswith("12 ok, 0 lossy, 1 error, 0 crashed; " + last("out2"))
    (folder / "void/x").write_bytes(GRAPH.read_bytes())
    assert main(["batch", "convert", "in", "void", "-t", "folded", "-o", "out2", "-q"]) == 0
    assert main(["batch", "status", "out2"]) == 0


def last(outdir: str) -> str:
    found = fastprof.batch_status(outdir)
    (failed,) = found.failed
    assert failed["error"]["message"] == "void: the directory has no files"
    return f"{found.bytes_written:,} bytes in {found.cpu_seconds:,.1f} CPU seconds\n{failed['error']['message']}\n"


def test_names_of_manifests() -> None:
    for name, want in {
        "1-of-1": (1, 1),
        "3-of-8": (3, 8),
        "9-of-8": None,
        "0-of-8": None,
        "1-of-0": None,
        "01-of-8": None,
        "1-of-99999999999": None,
        "1-of-9999999": None,
        "s.fpa": None,
    }.items():
        assert shard_of(f"out/{FOLDER}/{name}.jsonl") == want


ASKING = """
import fastprof, sys
while True:
    fastprof.batch_status(sys.argv[1])
    print(flush=True)
"""


def test_asking_for_the_status_does_not_stop_a_batch(folder: Path) -> None:
    """It tests whether manifests are locked by locking them."""
    convert()
    environment: dict[str, Any] = os.environ | {"PYTHONPATH": str(REPO)}
    command = [sys.executable, "-c", ASKING, "out"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as asking:
        assert asking.stdout
        try:
            for _ in range(100):
                asking.stdout.readline()
                with Manifest("out", "1-of-1", RUN):
                    pass
                (folder / "out" / FOLDER / "1-of-1.jsonl").write_bytes(b"")
        finally:
            asking.kill()


def test_a_shard_reads_its_own_manifest(folder: Path) -> None:
    fastprof.batch_plan("in", "plan")
    for shard in ("1/3", "2/3", "3/3"):
        assert main(["batch", "convert", "--plan", "plan", "-t", "folded", "-o", "out", "-qj1", "--shard", shard]) == 0
    other = folder / "out" / FOLDER / "2-of-3.jsonl"
    other.write_bytes(other.read_bytes() + b"not JSON\n")
    log = fastprof.batch_convert([], "out", to="folded", plan="plan", shard=(1, 3), jobs=1)
    assert (log.files, log.earlier) == (4, 4)
    with pytest.raises(FastprofError, match=r"2-of-3\.jsonl: line 6: "):
        fastprof.batch_convert([], "out", to="folded", plan="plan", jobs=1)


def test_files_that_another_plan_moves_to_other_shards_are_done(folder: Path) -> None:
    for plan, files in (("a", 12), ("b", 13)):
        fastprof.batch_plan("in", plan)
        logs = [
            fastprof.batch_convert([], "out", to="folded", plan=plan, shard=(i, 2), jobs=1, retries=0)
            for i in range(1, 3)
        ]
        assert sum(log.files for log in logs) == files
        shutil.copy(GRAPH, folder / "in/another-and-larger.callgrind")
        with open(folder / "in/another-and-larger.callgrind", "ab") as file:
            file.write(b"\n")
    assert sum(log.earlier for log in logs) == 12
    assert len(records_by_output(manifests("out"))) == 13


def test_a_plan_and_the_status_of_many_files_take_little_memory(folder: Path) -> None:
    """Only a hash of each file, not its path and record."""
    n = 5000
    os.makedirs(f"out/{FOLDER}")
    with open("plan", "w") as plan, open(f"out/{FOLDER}/1-of-1.jsonl", "w") as manifest:
        plan.write(json.dumps({"plan": 1, "files": n}) + "\n")
        manifest.write(json.dumps({"run": {**RUN, "todo": n}}) + "\n")
        for i in range(n):
            file = {"path": f"/dumps/host{i % 200}/{i:040}", "name": f"host{i % 200}/{i:040}", "size": 9, "mtime_ns": 9}
            plan.write(json.dumps(file) + "\n")
            record = {**file, "output": file["name"], "status": "ok", "time": i, "bytes": 2, "cpu_seconds": 0.5}
            manifest.write(json.dumps(record) + "\n")

    def shard() -> int:
        return len(of_shard(without_collisions(FileList("plan"), "out", ".folded"), (3, 100), frozen=True))

    def total() -> int:
        return fastprof.batch_status("out").bytes_written

    assert peak(shard) == (n // 100, True)
    assert peak(total) == (2 * n, True)


def peak(of: Callable[[], int]) -> tuple[int, bool]:
    """The result, and whether computing it takes less than 1 MB."""
    tracemalloc.start()
    try:
        return of(), tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_memory_of_a_shard_and_of_a_plan_does_not_grow_with_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,500 files in 50 folders against 1,500: less than 40 bytes for each more."""
    monkeypatch.setattr(shards, "_RUN", 1000)
    peaks: dict[str, list[int]] = {"shard": [], "plan": []}
    for n in (30, 30, 90):  # the first time allocates what is kept
        for folder in range(50):
            (tmp_path / f"dumps/{folder}").mkdir(parents=True, exist_ok=True)
            for number in range(n):
                (tmp_path / f"dumps/{folder}/a file with a long name {number}.folded").write_text("a 1\n")
        for what, peak in peaks.items():
            tracemalloc.start()
            if what == "shard":
                log = fastprof.batch_convert(
                    tmp_path / "dumps", tmp_path / "out", to="pprof", shard=(1, 1000), dry_run=True
                )
                assert log.files < n
            else:
                assert fastprof.batch_plan(tmp_path / "dumps", tmp_path / "plan").files == 50 * n
            peak.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    for _, few, many in peaks.values():
        assert many < few + 50 * (90 - 30) * 40
    names = [json.loads(line)["name"] for line in (tmp_path / "plan").read_text().splitlines()[1:]]
    assert names == sorted(names) and len({*names}) == 4500
