"""An HTTP server on 127.0.0.1 that forwards requests to another one and fails on demand."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Fault:
    """The failure of the next `times` requests of `method` whose target contains `target`.

    `status`: the answer's status.  `cut`: the body ends after this many bytes, although its header states more.
    `meanwhile` is called before that.  `skip`: this many of these requests pass first.
    """

    method: str = "GET"
    target: str = ""
    status: int = 0
    cut: int | None = None
    times: float = 1
    meanwhile: Callable[[], object] = lambda: None
    skip: int = 0


class Faulty:
    """`url` is the address on which it listens.  `seen` has the method and target of each request, `authorized` its
    user; `faults` are the ones to come."""

    def __init__(self, upstream: str) -> None:
        self.faults: list[Fault] = []
        self.seen: list[str] = []
        self.authorized: list[str] = []
        self._upstream = upstream.removeprefix("http://")
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, method: str, target: str) -> Fault | None:
        with self._lock:
            self.seen.append(f"{method} {target}")
            for fault in self.faults:
                if fault.method == method and fault.target in target and fault.times > 0:
                    if fault.skip > 0:
                        fault.skip -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        faulty = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                faulty.authorized.append(self.headers.get("Authorization", ""))
                fault = faulty._next(self.command, self.path)
                if fault is not None and fault.status:
                    fault.meanwhile()
                    self.send_response(fault.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                there = http.client.HTTPConnection(faulty._upstream)
                there.request(self.command, self.path, body, dict(self.headers))
                answer = there.getresponse()
                data = answer.read()
                there.close()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("connection", "transfer-encoding", "date", "server", "content-length"):
                        self.send_header(name, value)
                nbytes = answer.getheader("Content-Length") if self.command == "HEAD" else len(data)
                self.send_header("Content-Length", str(nbytes or 0))
                self.end_headers()
                if fault is not None:
                    fault.meanwhile()
                    self.wfile.write(data[: fault.cut])
                    self.close_connection = True
                else:
                    self.wfile.write(data)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on

        return Handler
