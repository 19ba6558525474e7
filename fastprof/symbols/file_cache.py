"""A cache of files that a process read: a batch of profiles reads their program once."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from threading import Lock

from fastprof.core._typing import Generic, T


class FileCache(Generic[T]):
    """Results by file, the `most` recently used ones.

    A file that has changed (device, inode, size or time) is read again.  Safe to use from several threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._items: dict[Hashable, T] = {}  # the most recently used is last

    def get(self, path: str | os.PathLike[str], options: Hashable, make: Callable[[], T]) -> T:
        """The cached result of `make` for this file and these options.  Errors: those of `make`, which are not
        cached."""
        try:
            now = os.stat(path)
        except (OSError, ValueError):  # ValueError: a NUL byte
            return make()  # which reports the error
        key = (os.fspath(path), now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, options)
        with self._lock:
            found = self._items.pop(key, None) or make()
            self._items[key] = found
            while len(self._items) > self._most:
                del self._items[next(iter(self._items))]
        return found
