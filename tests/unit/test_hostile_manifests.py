"""Foreign data in a batch's manifest or plan is an error with its line, or its file is converted again."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastprof.core.errors import FastprofError
from fastprof.verbs.batch.convert import batch_convert
from fastprof.verbs.batch.shards import FileList
from fastprof.verbs.batch.status import batch_status
from tests.support.paths import CORPUS, REPO

INPUT = CORPUS / "gperftools/good/small.prof"
DEEP = "[" * 200_000


@pytest.fixture
def done(tmp_path: Path) -> Path:
    batch_convert(INPUT, tmp_path / "out", to="folded", jobs=1)
    return tmp_path / "out"


def replaced(line: bytes, **values: Any) -> bytes:
    return json.dumps(json.loads(line) | values).encode() + b"\n"


@pytest.mark.parametrize(
    ("number", "values"),
    [
        (1, {"run": 7}),
        (1, {"run": {"files": "x", "earlier": 0, "todo": 0}}),
        (1, {"run": {}}),
        (2, {"time": "now"}),
        (2, {"output": ["x"]}),
        (2, {"status": {}}),
        (2, {"status": "error"}),
        (2, {"status": "error", "error": {"message": 7}}),
        (2, {"bytes": "many"}),
        (2, {"cpu_seconds": []}),
        (2, {"warnings": 3}),
    ],
)
def test_a_line_of_other_things(done: Path, number: int, values: dict[str, Any]) -> None:
    manifest = done / ".fastprof/1-of-1.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    lines[number - 1] = replaced(lines[number - 1], **values)
    manifest.write_bytes(b"".join(lines))
    for attempt in (lambda: batch_status(done), lambda: batch_convert(INPUT, done, to="folded", jobs=1)):
        with pytest.raises(FastprofError, match=rf"1-of-1.jsonl: line {number}: neither a run nor a record"):
            attempt()


@pytest.mark.parametrize("files", [[7], [{}], [{"output": 7, "bytes": 1}], [{"output": "a\0b", "bytes": 1}]])
def test_outputs_that_make_no_sense_are_made_again(done: Path, files: list[Any]) -> None:
    manifest = done / ".fastprof/1-of-1.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    lines[1] = replaced(lines[1], files=files)
    manifest.write_bytes(b"".join(lines))
    log = batch_convert(INPUT, done, to="folded", jobs=1)
    assert (log.earlier, dict(log.statuses)) == (0, {"ok": 1})


def test_brackets_without_end(done: Path, tmp_path: Path) -> None:
    """json raises RecursionError, which named no file."""
    manifest = done / ".fastprof/1-of-1.jsonl"
    manifest.write_bytes(manifest.read_bytes() + DEEP.encode() + b"\n")
    with pytest.raises(FastprofError, match=r"1-of-1.jsonl: line 3: .*expected JSON"):
        batch_status(done)
    plan = tmp_path / "plan"
    plan.write_text('{"plan": 1, "files": 1}\n' + DEEP + "\n")
    with pytest.raises(FastprofError, match="plan: line 2: not a file of a plan"):
        [*FileList(str(plan))]


def test_no_file_is_left_for_a_worker(tmp_path: Path) -> None:
    """The message was "[Errno 24] Too many open files"."""
    out = tmp_path / "out"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "fastprof",
            "batch",
            "convert",
            str(INPUT),
            "-o",
            str(out),
            "-t",
            "folded",
            "--jobs",
            "1",
        ],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)),
    )
    assert done.returncode == 1
    assert done.stderr == "fastprof: cannot start a worker: Too many open files\n"
