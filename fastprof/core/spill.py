"""Bytes that memory has no room for: an unnamed temporary file."""

from __future__ import annotations

import os

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError


class Spilled:
    """A temporary file without a name, made when something is first written.  It ends with this object."""

    def __init__(self) -> None:
        self._file: Any = None
        self.nbytes = 0

    def append(self, data: memoryview) -> None:
        """Write all of `data` behind what was written."""
        if self._file is None:
            import tempfile

            self._file = tempfile.TemporaryFile(prefix="fastprof-", buffering=0)
        try:
            while len(data):
                done = self._file.write(data)
                self.nbytes += done
                data = data[done:]
        except OSError as error:
            raise FastprofError(f"temporary file: {error.strerror or error}") from None

    def read(self, offset: int, into: memoryview) -> None:
        """Fill `into` from `offset`, which was written: whatever is missing is an error, not an end."""
        while len(into):
            try:
                got = os.preadv(self._file.fileno(), [into], offset)
            except OSError as error:
                raise FastprofError(f"temporary file: {error.strerror or error}") from None
            if not got:
                raise FastprofError(f"temporary file: ends at byte {offset}, where something was written")
            offset, into = offset + got, into[got:]
