"""Caches of files and folders that a process read: a batch of profiles reads their program once."""

import os
import time
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


_SETTLED_NS = 10**9  # a folder may change again without a new time within a tick of the file system's clock


class FolderCache(Generic[T]):
    """Results that depend on the names in folders, the `most` recently used ones.

    Valid until one of the folders changes (time).  Safe to use from several threads.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._items: dict[Hashable, tuple[T, dict[str, int]]] = {}  # and the times; the most recently used is last

    def get(self, key: Hashable, make: Callable[[], tuple[T, list[str]]]) -> T:
        """The cached result of `make`, which also returns all folders that it read."""
        with self._lock:
            found = self._items.pop(key, None)
            if found is None or any(_time(folder) != time_ns for folder, time_ns in found[1].items()):
                begun = time.time_ns()
                result, folders = make()
                found = result, {folder: _time(folder) for folder in folders}
                if max(found[1].values(), default=0) > begun - _SETTLED_NS:
                    return result
            self._items[key] = found
            while len(self._items) > self._most:
                del self._items[next(iter(self._items))]
        return found[0]


def _time(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
