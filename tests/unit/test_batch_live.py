"""Batches of live endpoints: each profile is taken by one request, which is never repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import UsageError
from fastprof.core.urls import is_recordable
from fastprof.verbs.batch.partial_key import seen
from tests.unit import test_ahead
from tests.unit.test_ahead import Server

server = test_ahead.server  # a fixture


def live(server: Server, n: int) -> list[str]:
    return [f"{server.url}/debug/pprof/live/{i}" for i in range(n)]


def outputs(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)).partition("/")[2]: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".fastprof" not in path.parts
    }


def test_each_run_takes_each_profile_once(server: Server, tmp_path: Path) -> None:
    urls = [*live(server, 3), f"{server.url}/debug/pprof/live?seconds=4"]
    options: dict[str, Any] = {"to": "folded", "from_": "folded", "jobs": 1}
    assert len(fastprof.batch_convert(urls, tmp_path, dry_run=True, **options).todo) == 4
    fastprof.batch_plan(urls, tmp_path / "live.plan")
    assert seen(urls[0]) == [0, 0]
    assert not server.seen
    log = fastprof.batch_convert(urls, tmp_path / "out", **options)
    assert log.statuses == {"ok": 4} and log.bytes_written > 0
    paths = [url.removeprefix(server.url) for url in urls]
    assert sorted(server.seen) == sorted(paths)
    want = {path[1:].partition("?")[0] + ".folded": server.body(path) for path in paths}
    assert outputs(tmp_path / "out") == want
    parts = [
        fastprof.batch_convert([], tmp_path / "out", plan=tmp_path / "live.plan", shard=(i, 2), **options)
        for i in (1, 2)
    ]
    assert [part.files for part in parts] == [2, 2] and not any(part.earlier for part in parts)
    assert sorted(server.seen) == sorted(paths * 2) and outputs(tmp_path / "out") == want


def test_a_dropped_connection_is_an_error_without_output(server: Server, tmp_path: Path) -> None:
    cut = [f"{server.url}/debug/pprof/{name}" for name in ("live-cut/8", "short/9")]
    log = fastprof.batch_convert([*live(server, 1), *cut], tmp_path, to="folded", from_="folded", jobs=1, lenient=True)
    assert log.statuses == {"ok": 1, "error": 2}
    assert {record["error"]["message"] for record in log.failed} == {
        f"{url}: the connection ended within the answer" for url in cut
    }
    assert [*outputs(tmp_path)] == ["debug/pprof/live/0.folded"] and len(server.seen) == 3


@pytest.mark.parametrize("lenient", [False, True])
def test_a_rerun_that_fails_keeps_the_earlier_profile(server: Server, tmp_path: Path, lenient: bool) -> None:
    urls, store = live(server, 2), tmp_path / "st.fpa"
    options: dict[str, Any] = {"from_": "folded", "jobs": 1, "lenient": lenient}

    def run() -> tuple[dict[str, int], dict[str, int]]:
        converted = fastprof.batch_convert(urls, tmp_path / "out", to="folded", **options)
        return dict(converted.statuses), dict(fastprof.batch_archive(urls, store, **options).statuses)

    assert run() == ({"ok": 2}, {"ok": 2})
    earlier = outputs(tmp_path / "out")
    server.cut = {urls[1].removeprefix(server.url)}
    assert run() == ({"ok": 1, "error": 1}, {"ok": 1, "error": 1})
    assert outputs(tmp_path / "out") == earlier and len(earlier) == 2
    assert fastprof.top(f"{store}:*").total == 1 + 2
    server.cut = set()
    assert run() == ({"ok": 2}, {"ok": 2})
    assert outputs(tmp_path / "out") == earlier


def test_other_answers_without_a_length(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        log = fastprof.batch_convert(f"{server.url}/live/3", tmp_path, to="folded", from_="folded", jobs=1)
        assert log.statuses == {"ok": 1} and not log.earlier
    assert outputs(tmp_path) == {"live/3.folded": server.body("/live/3")}


def test_profiles_are_merged_and_added_to_stores(server: Server, tmp_path: Path) -> None:
    urls = live(server, 3)
    fastprof.batch_merge(urls, tmp_path / "all.folded", from_="folded")
    assert fastprof.top(tmp_path / "all.folded").total == 1 + 2 + 3
    with pytest.raises(UsageError, match=r"live/0: each request takes another profile, and a merge tree reads"):
        fastprof.batch_merge(urls, tmp_path / "tree.folded", from_="folded", jobs=2)
    log = fastprof.batch_archive(urls, tmp_path / "st.fpa", from_="folded", jobs=1)
    assert log.statuses == {"ok": 3} and len(server.seen) == 6
    assert fastprof.top(f"{tmp_path}/st.fpa:*").total == 1 + 2 + 3


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("http://h:6060/debug/pprof/profile", True),
        ("http://h/debug/pprof/profile?seconds=30&debug=0", True),
        ("http://h/debug/pprof/profile?seconds=30&token=1", False),
        ("http://h/debug/pprof/profile?seconds=x", False),
        ("http://h/debug/pprof/profile?seconds=3#x", False),
        ("http://me:secret@h/debug/pprof/profile?seconds=3", False),
        ("http://h/a.prof?seconds=/debug/pprof/", False),
        ("http://h/a.prof?seconds=30", False),
        ("s3://b/debug/pprof/a?seconds=x", True),
    ],
)
def test_queries_that_may_be_recorded(url: str, may: bool) -> None:
    assert is_recordable(url) is may
