"""`fastprof batch archive`: workers compress, one process appends; added files are not added again."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core.errors import FastprofError, UsageError
from fastprof.formats.archive.sections import BASED, ROWS
from fastprof.store import adding, compact, pieces
from fastprof.store.listing import members
from fastprof.verbs.batch import archive as batch
from fastprof.verbs.batch.manifest import FOLDER, lines, manifest_of
from tests.support.archives import graph, stacks, write_archive
from tests.unit.test_archive import read_dump, sections

DUMP = "events: Ir\nfl=a.c\nfn=f{}\n1 {}\n"


def dumps(folder: Path, n: int) -> Path:
    for i in range(n):
        path = folder / f"host{i % 2}" / f"{i}.callgrind"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DUMP.format(i, i + 1))
    return folder


def totals(store: Path) -> dict[str, int]:
    return {member["name"]: member["totals"]["Ir"] for member in members(str(store))}


def records(store: Path) -> list[dict[str, Any]]:
    """The records of a store's manifest; the line that a killed process was writing does not count."""
    return [line for path in manifest_of(str(store)) for line in lines(path) if "run" not in line]


@pytest.mark.exhaustive
def test_alike_dumps_share_storage(tmp_path: Path) -> None:
    """Ten dumps that differ in 15 % of the rows, in two views: nearly as small as when added one after the other."""
    one_by_one, wanted = tmp_path / "one.fpa", {}
    with adding.adding(str(one_by_one)) as session:
        for i in range(10):
            for maker in (graph, stacks):
                path = tmp_path / "dumps" / maker.__name__ / f"{i}.fpa"
                path.parent.mkdir(parents=True, exist_ok=True)
                data, wanted[f"{maker.__name__}/{i}.fpa"] = write_archive(maker, rows=6000, changed=i)
                path.write_bytes(data)
                session.add(str(path), f"{maker.__name__}/{i}.fpa")
    store = tmp_path / "s.fpa"
    log = fastprof.batch_archive(tmp_path / "dumps", store, jobs=2)
    assert repr(log) == "BatchLog(files=20, earlier=0, ok=20)"
    whole = store.read_bytes()
    assert [bool(s.flags & BASED) for s in sections(whole) if s.type == ROWS].count(False) == 2
    # a dump that was compressed beside the first one may be compared with it in fewer ways
    assert len(whole) < 1.2 * one_by_one.stat().st_size
    for name, want in wanted.items():
        assert read_dump(whole, member=name)[0] == want
    assert compact.verify(str(store)) == []
    assert sorted(os.listdir(tmp_path)) == [FOLDER, "dumps", "one.fpa", "s.fpa"]


def test_what_is_added_is_not_added_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, store = dumps(tmp_path / "in", 12), tmp_path / "s.fpa"
    command = ["batch", "archive", str(inputs), "-o", str(store), "-j", "2"]
    assert main(command) == 0
    assert ": 12 files (" in capsys.readouterr().err
    want = {f"host{i % 2}/{i}.callgrind": i + 1 for i in range(12)}
    assert totals(store) == want
    before = store.read_bytes()
    assert main(command) == 0
    assert ": 12 files (0 bytes, 12 in earlier runs" in capsys.readouterr().err
    assert store.read_bytes() == before
    # a changed file replaces its old profile, a new one is added, a removed one comes back
    (inputs / "host0" / "0.callgrind").write_text(DUMP.format(0, 1000))
    (inputs / "host0" / "new.callgrind").write_text(DUMP.format(0, 2000))
    compact.remove(str(store), ["host1/1.callgrind"])
    assert main(command) == 0
    assert ", 10 in earlier runs" in capsys.readouterr().err
    assert totals(store) == want | {"host0/0.callgrind": 1000, "host0/new.callgrind": 2000}
    # all of them, if the options differ
    assert main([*command, "--level", "19"]) == 0
    assert ": 13 files (" in capsys.readouterr().err
    assert len(members(str(store))) == 13 and compact.verify(str(store)) == []
    assert main(["batch", "status", str(store)]) == 0
    assert "13 ok, 0 lossy, 0 error, 0 crashed" in capsys.readouterr().out
    assert main(["batch", "status", str(tmp_path / "absent.fpa")]) == 1


def test_a_file_that_cannot_be_added_stops_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, store = dumps(tmp_path / "in", 6), tmp_path / "s.fpa"
    bad = inputs / "host0" / "2.callgrind"
    bad.write_text("events: Ir\nfn=f\n1 x\n")
    adding.add(str(store), [str(inputs / "host1" / "1.callgrind")], name="host1/3.callgrind")
    log = fastprof.batch_archive(inputs, store, jobs=2)
    assert repr(log) == "BatchLog(files=6, earlier=0, error=2, ok=4)"
    said = sorted(record["error"]["message"] for record in log.failed)
    assert said[0].startswith(f"{bad}: callgrind: line 3")
    assert said[1] == f"{inputs}/host1/3.callgrind: {store} already has a profile " + (
        "'host1/3.callgrind' from another file"
    )
    assert main(["batch", "archive", str(inputs), "-o", str(store), "--retry-errors", "-q"]) == 1
    (inputs / "unknown").write_text("nothing\n")
    assert main(["batch", "archive", str(inputs), "-o", str(store)]) == 1
    assert "name it with --from, see" in capsys.readouterr().err
    (inputs / "unknown").unlink()
    assert totals(store)["host1/3.callgrind"] == 2 and len(totals(store)) == 5
    assert fastprof.batch_archive(inputs, store).earlier == 6
    bad.write_text(DUMP.format(2, 3))
    compact.remove(str(store), ["host1/3*"])
    log = fastprof.batch_archive(inputs, store, retry_errors=True)
    assert (log.earlier, log.errors) == (4, 0)
    assert totals(store) == {f"host{i % 2}/{i}.callgrind": i + 1 for i in range(6)}


def test_a_file_that_was_damaged_for_a_while_is_replaced(tmp_path: Path) -> None:
    inputs, store = dumps(tmp_path / "in", 2), tmp_path / "s.fpa"
    file, found = inputs / "host0" / "0.callgrind", []
    for text in (DUMP.format(0, 1), "events: Ir\nfn=f\n1 x\n", DUMP.format(0, 70)):
        file.write_text(text)
        log = fastprof.batch_archive(inputs, store, jobs=1)
        found.append((log.errors, totals(store)["host0/0.callgrind"]))
    assert found == [(0, 1), (1, 1), (0, 70)]


def test_what_a_killed_batch_added_but_did_not_say_is_its_own(tmp_path: Path) -> None:
    inputs, store = dumps(tmp_path / "in", 6), tmp_path / "s.fpa"
    fastprof.batch_archive(inputs, store)
    manifest = tmp_path / FOLDER / "s.fpa.jsonl"
    run, *lines = manifest.read_text().splitlines(keepends=True)
    manifest.write_text(run + "".join(lines[:2]))
    log = fastprof.batch_archive(inputs, store)
    assert (log.earlier, log.errors) == (2, 0)
    assert totals(store) == {f"host{i % 2}/{i}.callgrind": i + 1 for i in range(6)}


@pytest.mark.exhaustive
def test_kill_9_loses_only_what_is_in_work(tmp_path: Path) -> None:
    inputs, store = dumps(tmp_path / "in", 1500), tmp_path / "s.fpa"
    command = [sys.executable, "-m", "fastprof", "batch", "archive", str(inputs), "-o", str(store), "-q", "-j", "2"]
    process = subprocess.Popen(command, start_new_session=True)
    manifest = tmp_path / FOLDER / "s.fpa.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (manifest.exists() and manifest.read_bytes().count(b"\n") > 100):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    said = {record["output"].partition(":")[2] for record in records(store)}
    assert 100 <= len(said) < 1500
    assert said <= totals(store).keys()
    assert compact.verify(str(store)) == []
    log = fastprof.batch_archive(inputs, store)
    assert (log.files, log.errors) == (1500, 0) and log.earlier >= 100
    assert totals(store) == {f"host{i % 2}/{i}.callgrind": i + 1 for i in range(1500)}
    assert sorted(os.listdir(tmp_path)) == [FOLDER, "in", "s.fpa"]


def test_what_a_failed_commit_loses_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, store = dumps(tmp_path / "in", 6), tmp_path / "s.fpa"
    real, n = adding.packed_index, count(1)

    def full(*index: Any) -> Any:
        if next(n) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*index)

    monkeypatch.setattr(adding, "packed_index", full)
    monkeypatch.setattr(batch, "_PROFILES", 2)
    monkeypatch.setattr(batch, "_SECONDS", 1e9)
    with pytest.raises(FastprofError, match=f"^{store}: No space left on device$"):
        fastprof.batch_archive(inputs, store, jobs=1)
    said = {record["output"].partition(":")[2] for record in records(store)}
    assert said == totals(store).keys() and len(said) == 2
    assert fastprof.batch_archive(inputs, store, jobs=1).earlier == 2
    assert totals(store) == {f"host{i % 2}/{i}.callgrind": i + 1 for i in range(6)}


def test_ctrl_c_keeps_what_was_appended(tmp_path: Path) -> None:
    inputs, store = dumps(tmp_path / "in", 20), tmp_path / "s.fpa"

    def interrupted(log: Any, record: Any) -> None:
        if log.statuses["ok"] == 7:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            fastprof.batch_archive(inputs, store, progress=interrupted, jobs=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(totals(store)) == len(records(store)) == 7
    assert fastprof.batch_archive(inputs, store).earlier == 7
    assert len(totals(store)) == 20


def test_a_dry_run_and_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs, store = dumps(tmp_path / "in", 3), tmp_path / "s.fpa"
    assert main(["batch", "archive", str(inputs), "-o", str(store), "--dry-run"]) == 0
    assert f"{inputs}/host1/1.callgrind -> s.fpa:host1/1.callgrind\n" in capsys.readouterr().out
    assert not store.exists()
    (inputs / "host2").mkdir()
    (inputs / "host2" / "0.callgrind").write_text(DUMP.format(0, 1))
    with pytest.raises(UsageError, match=r"would both be named '0\.callgrind'"):
        fastprof.batch_archive([inputs / "host0", inputs / "host2"], store)
    with pytest.raises(UsageError, match="plain file, not compressed"):
        fastprof.batch_archive(inputs, tmp_path / "s.fpa.gz")
    assert sorted(os.listdir(tmp_path)) == ["in"]
    # a store within its own inputs is skipped
    log = fastprof.batch_archive(inputs, inputs / "s.fpa")
    assert log.files == 4 and fastprof.batch_archive(inputs, inputs / "s.fpa").earlier == 4


def test_options_are_those_of_archive_add() -> None:
    names = {option.name for option in batch.options()}
    assert {option.name for option in pieces.adding_options()} < names
    assert "shard" not in names and "retries" in names


def test_workers_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of cores does not cause files to be added again."""
    given = []
    monkeypatch.setattr(batch, "cores_of_each", lambda workers: 8 // workers)
    real = batch.Pool.run
    monkeypatch.setattr(batch.Pool, "run", lambda self, jobs, *more: real(self, noted(jobs), *more))

    def noted(jobs: Any) -> Any:
        for job in jobs:
            given.append(job["options"]["cores"])
            yield job

    folder, store = dumps(tmp_path / "in", 2), tmp_path / "s.fpa"
    fastprof.batch_archive(folder, store, jobs=2)
    assert given == [4, 4]
    assert fastprof.batch_archive(folder, store, jobs=1).earlier == 2
