"""Batches of objects behind URLs."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.cli import main
from fastprof.core import remote
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.prefetch import AT_ONCE
from fastprof.store import listing
from fastprof.verbs.batch import remote_store
from fastprof.verbs.batch.archive import batch_archive
from fastprof.verbs.batch.convert import batch_convert, batch_plan
from fastprof.verbs.batch.merge import batch_merge
from fastprof.verbs.batch.status import batch_status
from tests.support.signals import heard
from tests.unit import test_remote
from tests.unit.test_remote import CPU, GRAPH, Bucket

bucket, server = test_remote.bucket, test_remote.server  # fixtures


def keys(bucket: Bucket) -> list[str]:
    return bucket.keys()


def test_a_batch_refuses_secrets_and_remote_outputs(tmp_path: Path) -> None:
    for inputs, out, why in (
        (["https://a:secret@host/x.prof?secret"], tmp_path / "out", "a batch records its inputs"),
        ([CPU], "https://host/out/", "has no listings"),
        (["s3://bucket/"], "s3://bucket/out", "outputs would be inputs of the next run"),
        (["https://host/dir/"], tmp_path / "out", "has no listings"),
    ):
        with pytest.raises(UsageError, match=f"//(host|bucket)/.*: .*{why}") as error:
            batch_convert(inputs, out, to="pprof")  # type: ignore[arg-type]
        assert "secret" not in str(error.value)


def test_a_batch_reads_objects(bucket: Bucket, tmp_path: Path) -> None:
    for key in ("in/a.callgrind", "in/deep/b.callgrind", "in/.hidden", "c.callgrind"):
        bucket.put(key, GRAPH.read_bytes())
    bucket.put("in/bad", b"?")
    out = tmp_path / "out"

    def run(**options: Any) -> dict[str, int]:
        log = batch_convert(["s3://bucket/in/", "s3://bucket/c.callgrind"], out, to="folded", **options)
        return {**log.statuses, "earlier": log.earlier}

    assert run(exclude=["bad"]) == {"ok": 3, "earlier": 0}
    names = {str(path.relative_to(out)) for path in out.rglob("*.folded")}
    assert names == {"a.callgrind.folded", "deep/b.callgrind.folded", "bucket/c.callgrind.folded"}
    gets = [line for line in bucket.proxy.seen if line.startswith("GET") and "list-type" not in line]
    assert len(gets) == 3  # one for each object
    assert run() == {"ok": 3, "error": 1, "earlier": 3}
    bucket.put("in/a.callgrind", GRAPH.read_bytes() + b"\n")
    assert run(exclude=["bad"]) == {"ok": 3, "earlier": 2}


def test_a_damaged_manifest_is_named_by_its_url(bucket: Bucket) -> None:
    bucket.put("in/a.callgrind", GRAPH.read_bytes())
    batch_convert(["s3://bucket/in/"], "s3://bucket/out", to="folded")
    bucket.put("out/.fastprof/1-of-1.jsonl/99999999999999999999.jsonl", b"{\n")
    for use in (batch_status, lambda out: batch_convert(["s3://bucket/in/"], out, to="folded")):
        with pytest.raises(
            FastprofError, match=r"^s3://bucket/out/\.fastprof/1-of-1\.jsonl: line \d+: .*expected JSON"
        ):
            use("s3://bucket/out")


def test_a_batch_writes_objects(bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest is there as well: the same command goes on where another one ended."""
    for key in ("in/a.callgrind", "in/deep/b.callgrind", "in/bad"):
        bucket.put(key, GRAPH.read_bytes() if "." in key else b"?")
    words = ["batch", "convert", "s3://bucket/in/", "-t", "folded", "-o", "s3://bucket/out", "-j", "2", "-q"]
    assert main([*words, "--exclude", "bad"]) == 0
    fastprof.convert(GRAPH, tmp_path / "want.folded")
    for name in ("a", "deep/b"):
        assert bucket.get(f"out/{name}.callgrind.folded") == (tmp_path / "want.folded").read_bytes()
    assert main(words) == 1
    log = batch_convert("s3://bucket/in/", "s3://bucket/out/", to="folded", jobs=1)
    assert log.statuses == {"ok": 2, "error": 1} and log.earlier == 3
    bucket.s3.delete_object(Bucket="bucket", Key="out/a.callgrind.folded")
    bucket.put("out/deep/b.callgrind.folded", b"short")
    assert batch_convert("s3://bucket/in/", "s3://bucket/out/", to="folded", jobs=1).earlier == 1
    assert {key.partition("/")[0] for key in keys(bucket)} == {"in", "out"}
    assert not [path for path in tmp_path.iterdir() if path.name != "want.folded"]
    with pytest.raises(UsageError, match="s3://bucket/shards/ has outputs of 2 shards"):
        batch_convert("s3://bucket/in/", "s3://bucket/shards/", to="folded", jobs=1, shard=(1, 2), exclude=["bad"])
        batch_convert("s3://bucket/in/", "s3://bucket/shards/", to="folded", jobs=1, shard=(1, 3), exclude=["bad"])
    capsys.readouterr()
    assert main(["batch", "status", "s3://bucket/out/"]) == 1
    assert "bad: unknown format" in capsys.readouterr().out
    with pytest.raises(FastprofError, match="s3://bucket/none/: no `fastprof batch` has written"):
        batch_status("s3://bucket/none/")


def test_plans_and_merge_trees_of_objects_alone(bucket: Bucket, tmp_path: Path) -> None:
    for i in range(5):
        bucket.put(f"in/{i}.callgrind", GRAPH.read_bytes())
    assert batch_plan("s3://bucket/in/", "s3://bucket/all.plan").files == 5
    for i in (1, 2):
        batch_convert([], "s3://bucket/out/", to="folded", plan="s3://bucket/all.plan", shard=(i, 2), jobs=1)
    assert batch_status("s3://bucket/out/").statuses == {"ok": 5}
    fastprof.merge([GRAPH] * 5, tmp_path / "want.callgrind")
    batch_merge("s3://bucket/in/", "s3://bucket/got.callgrind", jobs=2, fan_in=2)
    assert bucket.get("got.callgrind") == (tmp_path / "want.callgrind").read_bytes()
    assert not [key for key in keys(bucket) if "partials" in key]
    with pytest.raises(UsageError, match="names a folder, not an object"):
        batch_merge("s3://bucket/in/", "s3://bucket/sum/", jobs=2)


def test_a_bucket_as_a_folder(bucket: Bucket, tmp_path: Path) -> None:
    """Also one that holds what another program has written to the manifest."""
    convert = partial(batch_convert, [GRAPH], "s3://bucket/", to="folded", jobs=1)
    assert convert().statuses == {"ok": 1} and convert().earlier == 1
    for piece in [key for key in keys(bucket) if key.startswith(".fastprof/")]:
        lines = [json.loads(line) for line in bucket.get(piece).splitlines()]
        changed = [line | {"files": [5]} if "output" in line else line for line in lines]
        bucket.put(piece, b"".join(json.dumps(line).encode() + b"\n" for line in changed))
    assert convert().earlier == 0


def test_a_merge_tree_needs_listings() -> None:
    for url in ("http://me:secret@host/all.folded", "http://host/all.folded?v=secret"):
        with pytest.raises(UsageError, match=r"^http://host/all.folded: .* no listings") as error:
            batch_merge([CPU, CPU], url, jobs=2)
        assert "secret" not in str(error.value)


def test_outputs_made_by_two_runs_count_once(tmp_path: Path) -> None:
    """Runs behind URLs have no locks."""
    files = [tmp_path / f"{i}.callgrind" for i in range(2)]
    for file in files:
        file.write_bytes(GRAPH.read_bytes())
    batch_convert(files, tmp_path / "out", to="folded", jobs=1)
    (manifest,) = (tmp_path / "out" / ".fastprof").glob("*.jsonl")
    run, first, *_ = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(run + 2 * first)
    (shard,) = batch_status(tmp_path / "out").shards
    assert (shard.left, shard.state) == (1, "stopped")


def test_lines_of_an_object(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_CHUNK", 3)
    for data in (b"", b"a", b"a\n", b"ab\r\ncd\re\n\nf", b"\n\n", b"abcdefgh\nij"):
        assert [*remote.lines(bucket.put("x", data))] == [*io.BytesIO(data)]


def test_a_store_of_objects_alone(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = "s3://bucket/deep/s.fpa"

    def run(**options: Any) -> tuple[dict[str, int], int]:
        log = batch_archive("s3://bucket/deep/", store, jobs=1, **options)
        return dict(log.statuses), log.earlier

    for i in range(3):
        bucket.put(f"deep/{i}.callgrind", GRAPH.read_bytes())
    assert run(dry_run=True)[1] == 0 and "deep/s.fpa" not in keys(bucket)
    assert run() == ({"ok": 3}, 0)
    assert {m["name"] for m in listing.members(store)} == {f"{i}.callgrind" for i in range(3)}
    bucket.put("deep/3.callgrind", b"?")
    assert run() == ({"ok": 3, "error": 1}, 3)
    bucket.put("deep/3.callgrind", GRAPH.read_bytes())
    before = bucket.get("deep/s.fpa")
    assert run() == ({"ok": 4}, 3)
    assert len([*listing.members(store)]) == 4
    assert not [*tmp_path.iterdir()]
    bucket.put("deep/4.callgrind", GRAPH.read_bytes())
    download = remote_store._download

    def other(url: str, path: str) -> Any:
        found = download(url, path)
        bucket.put("deep/s.fpa", before)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(remote_store, "_download", other)
        with pytest.raises(FastprofError, match=r"s\.fpa: changed while the batch ran"):
            run()
    replace = remote.replace

    def late(url: str, data: bytes, identity: Any) -> Any:
        bucket.put("deep/s.fpa", before + b"x")
        return replace(url, data, identity)

    now = bucket.get("deep/s.fpa")
    with monkeypatch.context() as patch:
        patch.setattr(remote, "replace", late)
        with pytest.raises(FastprofError, match=r"s\.fpa: changed while the batch ran"):
            run()
    bucket.put("deep/s.fpa", now)
    assert batch_status(store).statuses == {"ok": 4}
    # an append that a killed process left unfinished: adding begins by cutting it off, and the store may become smaller
    bucket.put("deep/s.fpa", bucket.get("deep/s.fpa") + bytes(100_000))
    assert run()[0]["ok"] == 5
    assert "4.callgrind" in {m["name"] for m in listing.members(store)}
    bucket.put("deep/x.fpa", b"?")
    for url, why in (("s3://bucket/deep/x.fpa", "not an archive"), ("s3://bucket/deep/x", "must end in .fpa")):
        with pytest.raises(FastprofError, match=f"^{url}: .*{why}"):
            batch_archive("s3://bucket/deep/", url, jobs=1)


def test_objects_without_a_time_are_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.folded"
    file.write_text("main 1\n")
    for seconds, earlier in ((1, 1), (0, 0)):
        os.utime(file, (seconds, seconds))
        batch_convert([str(file)], tmp_path / "out", to="callgrind", jobs=1)
        assert batch_convert([str(file)], tmp_path / "out", to="callgrind", jobs=1).earlier == earlier


def test_an_interrupt_does_not_wait_for_many_servers(bucket: Bucket) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        urls = [f"http://127.0.0.1:{silent.getsockname()[1]}/{i}.folded" for i in range(20)]
        command = [sys.executable, "-m", "fastprof", "batch", "convert", *urls, "-t", "folded", "-o", "out"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=heard) as process:
            accepted = [silent.accept()[0] for _ in range(AT_ONCE)]
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == -signal.SIGINT
            assert time.monotonic() - begun < 30  # otherwise it ends after 60 s of silence, several times
            for one in accepted:
                one.close()


def test_plans_merges_and_stores_of_objects(bucket: Bucket, tmp_path: Path) -> None:
    keys = [f"in/{i}.callgrind" for i in range(5)]
    for key in keys:
        bucket.put(key, GRAPH.read_bytes())
    assert batch_plan("s3://bucket/in/", tmp_path / "plan").files == 5
    shards = [
        batch_convert([], tmp_path / "out", to="folded", plan=str(tmp_path / "plan"), shard=(i, 2)) for i in (1, 2)
    ]
    assert sum(log.statuses["ok"] for log in shards) == len([*(tmp_path / "out").rglob("*.folded")]) == 5
    fastprof.merge([GRAPH] * 5, tmp_path / "want.callgrind")
    for jobs in (1, 2):
        batch_merge("s3://bucket/in/", tmp_path / "got.callgrind", jobs=jobs)
        assert (tmp_path / "got.callgrind").read_bytes() == (tmp_path / "want.callgrind").read_bytes()
    assert batch_archive("s3://bucket/in/", tmp_path / "s.fpa", jobs=1).statuses == {"ok": 5}
    assert {m["name"] for m in listing.members(str(tmp_path / "s.fpa"))} == {f"{i}.callgrind" for i in range(5)}
