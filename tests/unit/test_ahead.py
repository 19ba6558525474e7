"""Many objects behind URLs: requested side by side, small ones once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core import prefetch
from fastprof.core.errors import FastprofError
from fastprof.core.prefetch import Prefetch


class Server:
    """Answers requests of /N.folded; holds them back until `together` are there, if more than 1."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.together = 1
        self.at_once = self.most = 0
        self.sizes: dict[str, int] = {}
        self.cut: set[str] = set()  # paths of live profiles whose connection ends within the answer
        self._changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                with outer._changed:
                    outer.seen.append(self.path)
                    outer.at_once += 1
                    outer.most = max(outer.most, outer.at_once)
                    outer._changed.notify_all()
                    if not outer._changed.wait_for(lambda: outer.most >= outer.together, 20):
                        outer.together = 1
                body = outer.body(self.path)
                with outer._changed:
                    outer.at_once -= 1
                self.send_response(404 if "gone" in self.path else 200)
                if "live" in self.path:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for part in (body[:3], body[3:]):
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                    self.wfile.write(b"9\r\n" if "cut" in self.path or self.path in outer.cut else b"0\r\n\r\n")
                    self.close_connection = True
                    return
                self.send_header("Content-Length", str(len(body) + 9 * ("short" in self.path)))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = "short" in self.path

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def body(self, path: str) -> bytes:
        number = int("".join(filter(str.isdecimal, path)) or 0)
        return (f"main;f{number % 7} {number + 1}\n" * self.sizes.get(path, 1)).encode()

    def urls(self, n: int) -> list[str]:
        return [f"{self.url}/{i}.folded" for i in range(n)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def merged(inputs: list[str], output: Path) -> bytes:
    fastprof.merge(inputs, output)
    return output.read_bytes()


def test_a_merge_requests_objects_side_by_side_and_once(server: Server, tmp_path: Path) -> None:
    files = [tmp_path / f"{i}.folded" for i in range(40)]
    for i, file in enumerate(files):
        file.write_bytes(server.body(f"/{i}.folded"))
    server.together = prefetch.AT_ONCE
    got = merged(server.urls(40), tmp_path / "got.folded")
    assert got == merged([*map(str, files)], tmp_path / "want.folded")
    assert server.most == server.together == prefetch.AT_ONCE
    assert sorted(server.seen) == sorted(f"/{i}.folded" for i in range(40))


def test_memory_is_bounded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "SMALL", 100)
    monkeypatch.setattr(prefetch, "MOST", 300)
    server.sizes = {"/3.folded": 1000}
    urls = server.urls(12)
    objects = Prefetch(urls)
    for _ in range(3):
        for url in urls:
            assert objects.open(url).read() == server.body(url.removeprefix(server.url))
            assert objects._nbytes == sum(one.size for one in objects._kept.values())
            assert objects._expected <= 300 + 100  # the object at hand is requested in any case
    assert urls[3] in objects._large and server.seen.count("/3.folded") == 3
    objects.close()


def test_objects_in_any_order(server: Server) -> None:
    urls = server.urls(5)
    objects = Prefetch(urls)
    for url in (urls[4], urls[4], urls[0], urls[2]):
        one = objects.open(url)
        assert one.read(5) + one.read() == server.body(url.removeprefix(server.url))
    objects.open(urls[1])
    objects.open(urls[3])  # all have been received
    assert len(server.seen) == 5


def test_an_object_that_fails_is_the_error_of_its_turn(server: Server, tmp_path: Path) -> None:
    urls = [*server.urls(3), f"{server.url}/gone"]
    with pytest.raises(FastprofError, match="/gone: "):
        fastprof.merge(urls, tmp_path / "x.folded")
    log = fastprof.top(urls, keep_going=True)
    assert log.total == 1 + 2 + 3 and log.log.losses.total() == 1


@pytest.mark.parametrize(("path", "requests"), [("/debug/pprof/profile?live=1&seconds=4", 1), ("/live/4", 2)])
def test_an_answer_without_a_length_is_read_once(path: str, requests: int, server: Server, tmp_path: Path) -> None:
    """A request that fails for lack of a length is one more, except where Go's servers take profiles."""
    live = server.url + path
    assert fastprof.top(live, from_="folded").total > 0
    assert len(server.seen) == requests
    server.seen.clear()
    found = fastprof.top([live, *server.urls(3)], from_="folded", keep_going=True)
    assert found.total == fastprof.top(live, from_="folded").total + 6
    assert server.seen.count(path) == 2 * requests


def test_an_answer_that_is_cut_off(server: Server) -> None:
    with pytest.raises(FastprofError, match=r"/debug/pprof/live-cut: the connection ended within the answer$"):
        fastprof.top(f"{server.url.replace('://', '://me:secret@')}/debug/pprof/live-cut?secret", from_="folded")
    with pytest.raises(FastprofError, match=r"/debug/pprof/short: the connection ended within the answer$"):
        fastprof.top(f"{server.url}/debug/pprof/short", from_="folded")
    with pytest.raises(FastprofError, match=r"/debug/pprof/gone: the server answered 404 Not Found$"):
        fastprof.top(f"{server.url}/debug/pprof/gone")
    server.close()
    with pytest.raises(FastprofError, match=r"/debug/pprof/live: Connection refused$"):
        fastprof.top(f"{server.url}/debug/pprof/live")
