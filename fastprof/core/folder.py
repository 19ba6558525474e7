"""A directory as one input: a seekable stream of its files, one after the other."""

from __future__ import annotations

import bisect
import os
import stat
from collections.abc import Iterator

from fastprof.core._typing import IO, NamedTuple
from fastprof.core.errors import errors_of, file_error


class File(NamedTuple):
    """A file of an input that holds several: its bytes are `start` to `start + size` of the input."""

    name: str  # below the directory
    start: int
    size: int
    mtime: int = 0  # seconds since 1970; 0: unknown


class Folder:
    """The regular files below a directory, sorted by name.  Links to directories are not followed.

    It is listed when `files` is first read.  One file is open at a time.  Files are as long as they were when the
    directory was listed: bytes appended later are not read.
    Errors: FastprofError for a directory that cannot be listed; OSError when a file cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: list[File] | None = None
        self._starts: list[int] = []
        self._size = 0
        self._at = 0
        self._open: IO[bytes] | None = None
        self._opened = -1

    @property
    def files(self) -> list[File]:
        if self._files is None:
            self._files = [*self._listed()]
            self._starts = [file.start for file in self._files]
        return self._files

    def _listed(self) -> Iterator[File]:
        for name in sorted(_names(self._path)):
            path = os.path.join(self._path, name)
            with errors_of(path):
                found = os.stat(path)
            if stat.S_ISREG(found.st_mode):
                yield File(name, self._size, found.st_size, int(found.st_mtime))
                self._size += found.st_size

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, into: memoryview) -> int:
        files = self.files
        if self._at >= self._size:
            return 0
        index = bisect.bisect_right(self._starts, self._at) - 1  # of files at one start, only the last has bytes
        file = files[index]
        offset = self._at - file.start
        try:
            if index != self._opened or self._open is None:
                self.close()
                self._open = open(os.path.join(self._path, file.name), "rb", buffering=0)
                self._opened = index
            self._open.seek(offset)
            got: int = self._open.readinto(into[: file.size - offset])  # type: ignore[attr-defined]
        except OSError as error:
            raise OSError(error.errno, f"{file.name}: {error.strerror or error}") from None
        self._at += got
        return got

    def read(self, n: int) -> bytes:
        data = bytearray(n)
        got = self.readinto(memoryview(data))
        return bytes(data[:got])

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _names(path: str) -> list[str]:
    def failed(error: OSError) -> None:
        raise file_error(str(error.filename), error)

    found = []
    for folder, _, names in os.walk(path, onerror=failed):
        below = os.path.relpath(folder, path)
        found += names if below == "." else [os.path.join(below, name) for name in names]
    return found
