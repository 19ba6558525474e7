"""What a process keeps of files that it has read: a batch of profiles of one program reads that once."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import Lock

from fastprof.core._typing import Generic, T


class Kept(Generic[T]):
    """What was made of files, the `most` that were asked for last.

    A file that has changed (device, inode, size or time) is read again.  Several threads may ask at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._items: dict[Hashable, T] = {}  # the one that was asked for last is the last

    def get(self, path: str | os.PathLike[str], options: Hashable, make: Callable[[], T]) -> T:
        """What `make` returned for this file and these options.  Errors: those of `make`; nothing is kept then."""
        try:
            now = os.stat(path)
        except (OSError, ValueError):  # ValueError: a NUL byte
            return make()  # which says why
        key = (os.fspath(path), now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, options)
        with self._lock:
            found = self._items.pop(key, None) or make()
            self._items[key] = found
            while len(self._items) > self._most:
                del self._items[next(iter(self._items))]
        return found
