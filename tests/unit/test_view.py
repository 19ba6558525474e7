"""`fastprof view`: the temporary page, and the requests that the local server answers."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from threading import Thread
from typing import IO
from urllib.parse import unquote

import pytest

from fastprof import UsageError, formats, report
from fastprof.cli import main
from fastprof.verbs.page import html
from fastprof.verbs.view import VIEWERS, Server, view
from tests.support.pages import Page
from tests.support.signals import heard
from tests.unit.test_report_page import FOLDED, timeline


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "t.xray").write_bytes(timeline())
    (tmp_path / "served").mkdir()
    found = Server(tmp_path / "t.xray", str(tmp_path / "served"), port=0)
    thread = Thread(target=found.run)
    thread.start()
    yield found
    found._http.shutdown()
    thread.join()
    found.close()


def get(server: Server, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.headers), answer.read()


def address_in(said: IO[str]) -> str:
    """The address of the page: the last word of its line, which follows warnings."""
    return next(line for line in said if "http://" in line).split()[-1]


def below(server: Server) -> str:
    return "/" + server.url.split("/", 3)[3]


def test_the_page_and_the_links(server: Server, tmp_path: Path) -> None:
    status, headers, index = get(server, below(server))
    style = index.split(b"<style>")[1].split(b"</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
    assert headers["Content-Security-Policy"] == f"default-src 'none'; style-src 'sha256-{digest}'"
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    links = re.findall(r'href="(https://[^"]*)"', index.decode())
    assert [link for _, link in server.links()] == links
    assert len(links) == len(VIEWERS) - 1  # Perfetto may only fetch from port 9001
    assert all(server.url + "profile." in unquote(link) for link in links)
    status, _, page = get(server, below(server) + "page.html")
    (tmp_path / "page.html").write_bytes(page)
    assert status == 200 and Page(tmp_path / "page.html").head["rows"] == 3


def test_a_page_that_is_not_sent_holds_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastprof.verbs.report._LARGEST", len(html(b"")) + 8_000)
    rng = random.Random(3)
    (tmp_path / "a.folded").write_text(
        "".join(f"main;a{a};b{b};c{c} {rng.randrange(1, 10**6)}\n" for a, b, c in product(range(20), repeat=3))
    )
    report(tmp_path / "a.folded", tmp_path / "page.html")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    name, _ = view(tmp_path / "a.folded")
    sent, kept = Page(tmp_path / "page.html"), Page(Path(name))
    assert sent.head["cut"][0] > 0 and kept.head["cut"] == [0]
    assert len(sent.columns["context up"]) < len(kept.columns["context up"]) == 2 + 20 + 400 + 8000


@pytest.mark.parametrize("viewer", VIEWERS, ids=lambda viewer: viewer.title)
def test_each_viewer_may_fetch_its_file(viewer: object, server: Server) -> None:
    name = server._file_of(viewer)  # type: ignore[arg-type]
    status, headers, data = get(server, below(server) + name, Origin=viewer.origin)  # type: ignore[attr-defined]
    assert (status, headers["Access-Control-Allow-Origin"]) == (200, viewer.origin)  # type: ignore[attr-defined]
    assert len(data) > 100
    assert formats.for_output(name).writer
    if name.endswith(".json"):
        json.loads(data)


def test_nobody_else_gets_anything(server: Server) -> None:
    page = below(server) + "page.html"
    assert "Access-Control-Allow-Origin" not in get(server, page, Origin="https://example.com")[1]
    assert get(server, page, Host="example.com")[0] == 404
    assert get(server, "/page.html")[0] == get(server, "/")[0] == get(server, "/x/page.html")[0] == 404
    assert get(server, below(server) + "../t.xray")[0] == get(server, below(server) + "served")[0] == 404


@pytest.mark.parametrize(
    "host", ["", "localhost:{}", "127.0.0.1", "127.0.0.1.example.com:{}", "[::1]:{}", "0.0.0.0:{}"]
)
def test_other_names_of_this_machine_get_nothing(host: str, server: Server) -> None:
    """A page whose host name is rebound to this machine sends that name."""
    assert get(server, below(server), Host=host.format(server.port))[0] == 404


@pytest.mark.parametrize("path", ["../t.xray", "..%2ft.xray", "%2e%2e/t.xray", "//etc/passwd", "page.html/../t.xray"])
def test_no_path_leads_out_of_what_is_served(path: str, server: Server) -> None:
    assert get(server, below(server) + path)[0] == get(server, "/" + path)[0] == 404


def test_a_browser_that_leaves_is_no_news(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    request = f"GET {below(server)}page.html HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    with server._lock, socket.create_connection(("127.0.0.1", server.port)) as leaving:  # the answer has to wait
        leaving.sendall(request)
        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset, do not close
    for _ in range(3):
        assert get(server, below(server) + "page.html")[0] == 200
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_server_ends_without_a_trace(number: int, status: int, tmp_path: Path) -> None:
    (tmp_path / "t.xray").write_bytes(timeline())
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "fastprof", "view", "--serve", "--no-browser", "--port", "0", "t.xray"]
    environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    ) as process:
        assert process.stderr is not None
        url = address_in(process.stderr)
        port, path = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)", url).groups()  # type: ignore[union-attr]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        connection.request("GET", path + "profile.speedscope.json")
        assert connection.getresponse().status == 200
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == status
        assert all(line.startswith("fastprof: ") for line in said.splitlines())  # warnings, and no traceback
    assert [*(tmp_path / "tmp").iterdir()] == []


def test_the_command_line_of_the_browser_has_no_secret(tmp_path: Path) -> None:
    """All users can read it.  It names a page that only this user can read."""
    (tmp_path / "t.xray").write_bytes(timeline())
    browser = tmp_path / "browser"
    browser.write_text(
        '#!/bin/sh\nstat -c %a "${1#file://}" "$(dirname "${1#file://}")" > modes\n'
        'echo "$@" > words.new; mv words.new words\n'
    )
    browser.chmod(0o755)
    command = [sys.executable, "-m", "fastprof", "view", "--serve", "--port", "0", "t.xray"]
    environment = os.environ | {"BROWSER": f"{browser} %s"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=heard
    ) as process:
        assert process.stderr is not None
        url = address_in(process.stderr)
        token = url.split("/")[3]
        while not (tmp_path / "words").exists() and process.poll() is None:
            time.sleep(0.01)
        words = (tmp_path / "words").read_text().strip()
        page = Path(unquote(words.removeprefix("file://"))).read_text()
        process.send_signal(signal.SIGINT)
    assert words.startswith("file:///") and token not in words
    assert f'content="0; url={url}"' in page
    assert (tmp_path / "modes").read_text().split() == ["600", "700"]


def test_a_request_that_does_not_come_is_not_waited_for(server: Server) -> None:
    server._http.PATIENCE = 0.2
    slow, silent = (socket.create_connection(("127.0.0.1", server.port)) for _ in range(2))
    with slow, silent, pytest.raises(ConnectionError):
        while True:  # a byte from time to time does not help
            slow.sendall(b"G")
            time.sleep(0.05)
    assert get(server, below(server))[0] == 200
    while server._http._open:
        time.sleep(0.01)


def test_connections_are_bounded(server: Server) -> None:
    server._http.MOST = 3
    for _ in range(2):
        with ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            with socket.create_connection(("127.0.0.1", server.port)) as too_many:
                assert too_many.recv(1) == b""
        while server._http._open:
            time.sleep(0.01)
    assert get(server, below(server))[0] == 200


def test_what_cannot_be_served_is_said(tmp_path: Path, server: Server) -> None:
    with pytest.raises(UsageError, match="reads its input again"):
        Server("-", str(tmp_path))
    (tmp_path / "second").mkdir()
    with pytest.raises(UsageError, match=f"--port={server.port}: .*in use; choose another one"):
        Server(tmp_path / "t.xray", str(tmp_path / "second"), port=server.port)


def test_the_temporary_page_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    (tmp_path / "a.folded").write_text(FOLDED)
    assert main(["view", str(tmp_path / "a.folded")]) == 0
    (page,) = tmp_path.glob("fastprof-*.html")
    assert opened == [page.as_uri()]
    assert capsys.readouterr().err == f"fastprof: {page.as_uri()}\n"
    assert Page(page).head["rows"] == 4
    assert main(["view", str(tmp_path / "none")]) == 1
    assert len([*tmp_path.glob("fastprof-*.html")]) == 1


def test_options_of_the_server_need_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tmp_path / "a"), "--port", "1"]) == 2
    assert main(["view", str(tmp_path / "a"), "--serve", "--port", "70000"]) == 2
    assert "expected 0 to 65535" in capsys.readouterr().err
