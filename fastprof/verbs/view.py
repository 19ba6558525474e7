"""Opens a profile in the browser: the page of `report`, or a server on this machine with links to other viewers.

A viewer's web page fetches the profile from 127.0.0.1 in its documented way and shows it; the profile is not sent
anywhere.  It is converted when it is first fetched.  Addresses have a random part, so that other pages and other users
cannot find them.
"""

from __future__ import annotations

import base64
import hashlib
import html
import os
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import quote

from fastprof import bridges
from fastprof.core import newfile
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.html import STYLE
from fastprof.core.log import Log
from fastprof.core.model import Model
from fastprof.core.options import Options
from fastprof.core.urls import shown
from fastprof.inputs import open_reader
from fastprof.verbs.convert import convert
from fastprof.verbs.report import Path, detailed

_ANSWERED = 600.0  # seconds for a browser to receive a whole answer
PORT = 9001  # the only port from which Perfetto's page may fetch a trace


class Viewer(NamedTuple):
    """A web page that fetches a profile from an address and shows it."""

    title: str
    origin: str
    link: str  # after the origin, with {} for the address
    suffixes: tuple[str, str]  # of the file it gets: for a timeline, and for stacks or a graph


VIEWERS = (
    Viewer("Speedscope", "https://www.speedscope.app", "/#profileURL={}", (".speedscope.json", ".speedscope.json")),
    Viewer("Perfetto", "https://ui.perfetto.dev", "/#!/?url={}", (".pftrace", ".pb.gz")),
    Viewer("Firefox Profiler", "https://profiler.firefox.com", "/from-url/{}", (".profile.json", ".profile.json")),
)


def view(inputs: Any, *, from_: str | None = None, **options: Any) -> tuple[str, Log]:
    """Write the page of `report`, of one input or two, to a temporary file, which stays.  Returns its path and the log.
    Errors: those of `report`."""
    handle, name = tempfile.mkstemp(prefix="fastprof-", suffix=".html")
    made = os.fstat(handle)
    os.close(handle)
    try:
        return name, detailed(inputs, name, from_=from_, **options)
    except BaseException:
        newfile.remove(name, made)
        raise


class _HTTPServer(ThreadingHTTPServer):
    """Has at most MOST connections.  It closes a connection that has not sent its whole request within PATIENCE
    seconds, even if it sends single bytes."""

    MOST = 64
    PATIENCE = 20.0

    def __init__(self, *arguments: Any) -> None:
        self._open: set[Any] = set()
        self._waiting: dict[Any, float] = {}  # connections without a complete request, and their deadlines
        self._changing = Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changing:
            has_room = len(self._open) < self.MOST
            if has_room:
                self._open.add(request)
                self._waiting[request] = time.monotonic() + self.PATIENCE
        if has_room:
            super().process_request(request, client_address)
        else:
            super().shutdown_request(request)

    def has_arrived(self, request: Any) -> None:
        """Record that the whole request has arrived."""
        with self._changing:
            self._waiting.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        with self._changing:
            self._open.discard(request)
            self._waiting.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:  # is called twice a second
        now = time.monotonic()
        with self._changing:
            for request, until in self._waiting.items():
                if until < now:
                    with suppress(OSError):  # the peer closed it already
                        request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):  # a browser may leave before the answer
            super().handle_error(request, client_address)


_STYLE = f"{STYLE}li{{margin:6px 0}}"  # of the page with the links


def _digest() -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}"


class Server:
    """Serves the page of a profile on 127.0.0.1, and the profile to VIEWERS.

    `url` is its address, `log` the log of the page; `run` serves until interrupted.  The files are in `folder`, which
    is the caller's.
    Errors: those of `report`; UsageError if the port is taken, or for standard input, which cannot be read again.
    """

    def __init__(self, path: Path, folder: str, port: int = PORT, *, from_: str | None = None, **options: Any) -> None:
        self._path, self._folder, self._from, self._options = os.fspath(path), folder, from_, options
        if self._path == "-":
            raise UsageError("--serve reads its input again for each viewer; standard input (-) can be read only once")
        self._is_timeline = _view_of(self._path, from_) == "timeline"
        self._lock = Lock()
        self._token = secrets.token_urlsafe(12)
        self.log = detailed(self._path, os.path.join(folder, "page.html"), from_=from_, **options)
        try:
            self._http = _HTTPServer(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise UsageError(f"--port={port}: {error.strerror}; choose another one, or 0 for any") from None
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}/{self._token}/"

    def private_page(self) -> str:
        """The path of a page that redirects to `url`, for the command line of a browser, which every user can read."""
        path, address = os.path.join(self._folder, "open.html"), html.escape(self.url)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(
                f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">'
                f'<title>fastprof view</title><p><a href="{address}">The profile</a></p>\n'
            )
        return path

    def run(self) -> None:
        self._http.serve_forever()

    def close(self) -> None:
        """Stop; the folder may then be removed."""
        self._http.server_close()
        with self._lock:  # wait for an unfinished file
            pass

    def links(self) -> list[tuple[str, str]]:
        """Titles and addresses of the viewers that may fetch from this port."""
        found = []
        for viewer in VIEWERS:
            if viewer.title != "Perfetto" or self.port == PORT:
                address = quote(self.url + self._file_of(viewer), safe="")
                found.append((viewer.title, viewer.origin + viewer.link.format(address)))
        return found

    def _file_of(self, viewer: Viewer) -> str:
        return "profile" + viewer.suffixes[not self._is_timeline]

    def _index(self) -> bytes:
        links = "".join(
            f'<li><a href="{html.escape(address)}" target="_blank" rel="noreferrer">{title}</a></li>'
            for title, address in self.links()
        )
        name = html.escape(os.path.basename(shown(self._path)).encode("utf-8", "backslashreplace").decode())
        text = (
            '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>fastprof view</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<style>{_STYLE}</style><h1>{name}</h1><p><a href="page.html">The page of fastprof report</a></p>'
            "<p>In other viewers, whose pages fetch the profile from this machine and send it to no server:</p>"
            f"<ul>{links}</ul>"
        )
        if self.port != PORT:
            text += f"<p>Perfetto may only fetch from port {PORT}.</p>"
        return text.encode()

    def _content(self, name: str) -> bytes | None:
        """A file below the random part; None if there is no such file."""
        if name == "":
            return self._index()
        if name != "page.html" and name not in map(self._file_of, VIEWERS):
            return None
        target = os.path.join(self._folder, name)
        with self._lock:
            if not os.path.exists(target):
                # only the page is pruned; a viewer's format reports other options that it does not use
                rest = {name: value for name, value in self._options.items() if name != bridges.PRUNE.name}
                rest["from_"] = self._from
                convert(self._path, target, **rest)
        with open(target, "rb") as file:
            return file.read()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        return _handler(self._token, self._content, lambda: self.port)


def _view_of(path: str, from_: str | None) -> str:
    if os.path.isdir(path):
        return "stacks"  # several files become one profile, which has no times
    reader = open_reader(path, from_, Model(), Options(), Log())
    with reader.source:
        return reader.view


def _handler(
    token: str, content: Callable[[str], bytes | None], port: Callable[[], int]
) -> type[BaseHTTPRequestHandler]:
    origins = {viewer.origin for viewer in VIEWERS}

    class Handler(BaseHTTPRequestHandler):
        timeout = _HTTPServer.PATIENCE  # of one read

        def parse_request(self) -> bool:
            is_one = super().parse_request()
            server: Any = self.server
            server.has_arrived(self.connection)
            return is_one

        def do_GET(self) -> None:
            # another host name comes from a page that resolves its own name to this address (DNS rebinding)
            named = self.headers.get("Host", "") == f"127.0.0.1:{port()}"
            before, _, name = self.path.partition("?")[0].removeprefix("/").partition("/")
            found = None
            status = 404
            if named and secrets.compare_digest(before.encode(), token.encode()):
                try:
                    found = content(name)
                    status = 200 if found is not None else 404
                except (FastprofError, MemoryError, OSError) as error:
                    found, status = f"{error}\n".encode("utf-8", "backslashreplace"), 500
            body = found if found is not None else b"not found\n"
            self.send_response(status)
            is_page = status == 200 and name in ("", "page.html")
            self.send_header("Content-Type", "text/html; charset=utf-8" if is_page else "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cache-Control", "no-store")
            if status == 200 and not name:
                self.send_header("Content-Security-Policy", f"default-src 'none'; style-src '{_digest()}'")
            self._allow_origin()
            self.end_headers()
            self.connection.settimeout(_ANSWERED)
            self.wfile.write(body)

        def do_OPTIONS(self) -> None:
            """The preflight request of a browser: may a public page fetch from this machine?"""
            self.send_response(204)
            self._allow_origin()
            self.end_headers()

        def _allow_origin(self) -> None:
            origin = self.headers.get("Origin", "")
            if origin in origins:
                self.send_header("Access-Control-Allow-Origin", origin)
                self.send_header("Access-Control-Allow-Private-Network", "true")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
