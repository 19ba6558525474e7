"""Threads and processes are called the same in all verbs, pages and conversions (fastprof/core/thread_names.py)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import fastprof
from tests.support.pages import Page
from tests.support.paths import CORPUS

ANSWERS = CORPUS / "answers"
X = {"name": "f", "ph": "X", "ts": 1, "dur": 5}


def named(of: str, name: str, pid: object, tid: object = 0) -> dict[str, object]:
    return {"name": f"{of}_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def trace(path: Path, *events: dict[str, object]) -> Path:
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def tops(*paths: Path, **options: object) -> list[str]:
    return sorted(row.name for row in fastprof.top(list(paths), by="thread", **options).rows)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["named.json", "two_threads.json", "sw.data"])
def test_verbs_agree(name: str, tmp_path: Path) -> None:
    source, page, archive = ANSWERS / name, tmp_path / "x.html", tmp_path / "x.fpa"
    names = tops(source)
    assert len(names) > 1 and all(re.search(r"\(\d+\): ", one) for one in names)
    assert sorted(fastprof.info(source).facts["thread_names"]) == names
    fastprof.report(source, page)
    assert sorted(Page(page).head["threads"]) == names
    fastprof.convert(source, archive)
    assert tops(archive) == names == sorted(fastprof.info(archive).facts["thread_names"])
    fastprof.convert(source, tmp_path / "x.speedscope.json")
    titles = {
        one["name"].rpartition(": ")[0] for one in json.loads((tmp_path / "x.speedscope.json").read_text())["profiles"]
    }
    assert titles == {*names} or titles == {one.rpartition(": ")[0] for one in names}
    for one in names:
        for text in (one, one.rpartition(": ")[2]):
            assert tops(source, threads=[text]) == [one]


def test_ids_are_those_of_the_source(tmp_path: Path) -> None:
    big = 1 << 40
    events = [named("thread", "worker", "ren-1", big), X | {"pid": "ren-1", "tid": big}, X | {"pid": 3, "tid": "io"}]
    path = trace(tmp_path / "x.json", *events)
    assert tops(path) == ["process 3, thread io", f"process ren-1, worker ({big})"]
    assert tops(path, threads=[big]) == tops(path, threads=["worker"]) == [f"process ren-1, worker ({big})"]
    fastprof.convert(path, tmp_path / "x.fpa")
    assert tops(tmp_path / "x.fpa") == tops(path)
    fastprof.convert(path, tmp_path / "y.trace.json")
    written = json.loads((tmp_path / "y.trace.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in written if event["ph"] == "M"}
    assert {f"worker ({big})", "thread io"} <= names


def test_comms_without_process_ids(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    sample = "{} {:>7} [000] 1.000000:     100 cycles: \n\t          401136 f+0x5 (/bin/x)\n\n"
    path.write_text(sample.format("sh", 7) + sample.format("wrk-1", 8))
    assert tops(path) == ["sh (7)", "wrk-1 (8)"]
    fastprof.convert(path, tmp_path / "x.json", to="firefox")
    threads = json.loads((tmp_path / "x.json").read_text())["threads"]
    assert {thread["processName"] for thread in threads} == {"sh", "wrk-1"}


def test_64_ranks(tmp_path: Path) -> None:
    paths = [
        trace(tmp_path / f"r{rank}.trace.json", named("process", "python", 10), X | {"pid": 10, "tid": 1})
        for rank in range(64)
    ]
    assert tops(*paths, n=0) == sorted(f"python (10) [r{rank}.trace.json]: thread 1" for rank in range(64))
    fastprof.merge(paths, tmp_path / "all.fpa")
    assert tops(tmp_path / "all.fpa", n=0) == tops(*paths, n=0)
    fastprof.merge(paths, tmp_path / "all.trace.json", label_path="r{rank}.trace.json")
    events = json.loads((tmp_path / "all.trace.json").read_text())["traceEvents"]
    names = {event["args"]["name"]: event["pid"] for event in events if event["name"] == "process_name"}
    assert len({*names.values()}) == 64 and names.pop("python [rank=0]") == 10
    assert {*names} == {f"python (10) [rank={rank}]" for rank in range(1, 64)}


def test_concatenated_documents_have_their_own_names(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    documents = ([named("thread", name, 1, 1), X | {"pid": 1, "tid": 1}] for name in "ab")
    path.write_text("".join(map(json.dumps, documents)))
    assert tops(path) == ["process 1, a (1)", "process 1, b (1)"]
