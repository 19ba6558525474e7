"""Stores behind URLs: threads, servers that can do little, and secrets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core import remote
from fastprof.core.errors import FastprofError
from fastprof.formats.archive import index
from fastprof.formats.archive.tree import EMPTY
from fastprof.inputs.state import State, open_store
from fastprof.store import adding, compact, listing
from tests.support.paths import CORPUS

GRAPH = CORPUS / "callgrind/good/xdebug.callgrind"


class Plain:
    """A server that answers with `data` by path, and HEAD with the status `head`."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.head, self.ranges, self.seen = 200, True, [""][:0]
        plain = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                plain.seen.append(f"{self.command} {self.path}")
                data = plain.data[self.path.partition("?")[0]]
                wanted = self.headers.get("Range", "") if plain.ranges else ""
                if self.command == "HEAD" and plain.head != 200:
                    self.send_response(plain.head)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                first, end = 0, len(data)
                if wanted:
                    first, last = map(int, wanted.removeprefix("bytes=").split("-"))
                    end = last + 1
                self.send_response(206 if wanted else 200)
                if wanted:
                    self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(data)}")
                self.send_header("Content-Length", str(end - first))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(data[first:end])

            do_HEAD = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,)).start()


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plain]:
    monkeypatch.setitem(remote.RETRIES, "max_retries", 0)
    made = Plain()
    yield made
    made.server.shutdown()
    made.server.server_close()


def store_of(path: Path, names: list[str]) -> bytes:
    with adding.adding(str(path)) as session:
        for name in names:
            session.add(str(GRAPH), name)
    return path.read_bytes()


def test_sources_of_a_store_have_their_own_positions(
    plain: Plain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = plain.data["/st.fpa"] = store_of(tmp_path / "st.fpa", ["a", "b"])
    monkeypatch.setattr(remote, "_BLOCK", 512)
    monkeypatch.setattr(remote, "_KEPT", 2)
    state = State(f"http://{plain.address}/st.fpa")
    one, two = state.source("one"), state.source("two")
    one.select(0)
    two.select(900)
    one.refill()
    assert bytes(one._ffi.buffer(one.in_.p, one.in_.n)) == data[: one.in_.n]

    wrong: list[Any] = []

    def read(start: int) -> None:
        try:
            source = state.source("x")
            wrong.extend(at for at in range(start, len(data), 700) if source.read_at(at, 90) != data[at : at + 90])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read, args=(n * 50,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_store_without_ranges_is_requested_once(
    plain: Plain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{n:03}{'x' * 400}" for n in range(40)]  # an index of several pages
    plain.data["/st.fpa"] = store_of(tmp_path / "st.fpa", names)
    plain.ranges = False
    url = f"http://{plain.address}/st.fpa"
    assert len(listing.members(url)) == 40
    assert compact.verify(url) == []
    plain.seen.clear()
    fastprof.merge(f"{url}:00*", tmp_path / "got.folded")
    fastprof.merge(f"{tmp_path}/st.fpa:00*", tmp_path / "want.folded")
    assert (tmp_path / "got.folded").read_bytes() == (tmp_path / "want.folded").read_bytes()
    assert sum(seen.startswith("GET") for seen in plain.seen) <= 3  # two of them ask for a range
    monkeypatch.setattr(State, "_most", 0)
    assert compact.verify(url) == []


@pytest.mark.parametrize("head", [403, 405, 501])
def test_a_url_that_is_signed_for_get_alone(head: int, plain: Plain, tmp_path: Path) -> None:
    plain.data["/st.fpa"] = store_of(tmp_path / "st.fpa", ["a", "b"])
    plain.head = head
    url = f"http://{plain.address}/st.fpa?signature"
    assert [entry["name"] for entry in listing.members(url)] == ["a", "b"]
    assert fastprof.info(url).facts["profiles"] == 2


def test_an_index_is_that_of_its_address(plain: Plain, tmp_path: Path) -> None:
    """Without ETag and Last-Modified, two objects of one size differ only by their URLs."""
    for name in "ab":
        plain.data[f"/{name}.fpa"] = store_of(tmp_path / f"{name}.fpa", [name])
    assert len(plain.data["/a.fpa"]) == len(plain.data["/b.fpa"])
    for name in "ab":
        with open_store(f"http://{plain.address}/{name}.fpa") as (source, archive):
            assert [one.name for one in archive.listed(source)] == [name]
    plain.data["/b.fpa"] = plain.data["/a.fpa"]
    assert [entry["name"] for entry in listing.members(f"http://{plain.address}/b.fpa")] == ["a"]


def test_pages_are_kept_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_PAGES", 2)
    archive = index.Archive(EMPTY, 0, 0, 0, 0, None)
    assert archive._lock.acquire(blocking=False)
    keeping = threading.Thread(target=archive.keep, args=(1, EMPTY))
    keeping.start()
    keeping.join(0.05)
    assert not archive.pages  # it waits
    archive._lock.release()
    keeping.join()
    assert archive.pages


def test_secrets_of_stores_are_not_shown(plain: Plain, tmp_path: Path) -> None:
    plain.data["/st.fpa"] = store_of(tmp_path / "st.fpa", ["a", "b", "../c"])
    url = f"http://me:secret@{plain.address}/st.fpa"
    state = State(f"{url}?secret")
    assert state.source(f"{url}?secret").name == f"http://{plain.address}/st.fpa"
    assert state.source(state.input("what?")).name == f"http://{plain.address}/st.fpa:what?"
    asks: list[Callable[[], Any]] = [
        lambda: fastprof.archive_extract(f"{url}?secret", ["a", "../c"], tmp_path / "out", to="folded"),
        lambda: fastprof.info(f"{url}:a", member="b"),
        lambda: fastprof.info(f"{url}:none"),
    ]
    for ask in asks:
        with pytest.raises(FastprofError) as caught:
            ask()
        assert plain.address in str(caught.value) and "secret" not in str(caught.value)
