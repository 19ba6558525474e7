"""Answers without a length, such as a profile that a server takes on request: /debug/pprof/profile.

Each request would be another profile, so an answer is copied to a temporary file and read from there.
"""

from __future__ import annotations

import os
from copy import copy
from itertools import count

from fastprof.core.errors import raise_as
from fastprof.core.remote import Download, Unsized, authorization
from fastprof.core.streams import temporary_failed, temporary_file
from fastprof.core.urls import bare, is_taken_anew, shown

_WAITING = 3600  # seconds without a byte; a profile may take long
_CHUNK = 256 * 1024
_numbers = count()


def opened(url: str) -> Download:
    """An object, from its beginning.  Errors: FastprofError."""
    if is_taken_anew(url):
        return Live(url)
    try:
        return Download(url)
    except Unsized:
        return Live(url)


class Live(Download):
    """An answer, read to its end before anything else."""

    is_live = True

    def __init__(self, url: str) -> None:
        self.name = shown(url)
        self._file = temporary_file()
        try:
            self._copy(url)
        except BaseException:
            self._file.close()
            raise
        self.size = os.fstat(self._file.fileno()).st_size
        self.identity = (self.name, next(_numbers), self.size, 0)
        self._at = 0

    def _copy(self, url: str) -> None:
        import http.client
        from urllib.error import HTTPError
        from urllib.request import Request, urlopen

        user, address = authorization(url), bare(url)
        request = Request(address)
        if user:
            request.add_unredirected_header("Authorization", user)
        try:
            with urlopen(request, timeout=_WAITING) as answer:
                while chunk := answer.read(_CHUNK):
                    self._keep(memoryview(chunk))
                if answer.length:  # http.client reports only answers in chunks that are cut off
                    raise http.client.IncompleteRead(b"", answer.length)
        except HTTPError as error:
            raise_as(self.name, error, f"the server answered {error.code} {error.reason}", error.code)
        except http.client.IncompleteRead as error:
            raise_as(self.name, error, "the connection ended within the answer")
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "reason", None) or getattr(error, "strerror", None) or type(error).__name__
            raise_as(self.name, error, str(getattr(why, "strerror", None) or why))

    def _keep(self, data: memoryview) -> None:
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise temporary_failed(error) from None

    def fetch(self) -> None:
        """It is already here."""

    def read(self, n: int = -1) -> bytes:
        data = os.pread(self._file.fileno(), self.size - self._at if n < 0 else n, self._at)
        self._at += len(data)
        return data

    def again(self) -> Live:
        copied = copy(self)
        copied._at = 0
        return copied

    def ranges(self) -> None:
        return None

    def close(self) -> None:
        """The file is closed with the last copy of this object."""
