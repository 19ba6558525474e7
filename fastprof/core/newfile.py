"""Files that appear whole or not at all, and the rule by which made files are removed.

A file or folder is made exclusively, never through a link, and remembered by device and inode.  It is removed only
while its path still leads to it, so that what somebody else has put there stays.  Folders: made_folders.py.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import cache

from fastprof.core._typing import TYPE_CHECKING, T

if TYPE_CHECKING:
    from collections.abc import Callable


def is_same(path: str, made: os.stat_result) -> bool:
    """Whether a path, not through a link, is the file or folder that was made."""
    try:
        return os.path.samestat(os.lstat(path), made)
    except OSError:
        return False


def remove(path: str, made: os.stat_result) -> None:
    """Remove a file that this process has made, if it is still there."""
    if is_same(path, made):
        with suppress(OSError):
            os.unlink(path)


def temporary_name(folder: str) -> str:
    """A new hidden name in a folder."""
    # not derived from the target's name, which may have the maximum length;
    # tempfile is not used: importing it takes as long as a short conversion
    return os.path.join(folder, f".fastprof-{os.urandom(8).hex()}.tmp")


class NewFile:
    """A file, open as `file` for reading and writing, that gets the name `target` by `publish`.

    Until then it has no name if the system supports that, so that even a killed process leaves nothing behind;
    otherwise a temporary one next to its target.  Errors: OSError.
    """

    def __init__(self, target: str, permissions: int = 0o666) -> None:
        self._target = target
        self._temporary: str | None = None
        self._is_new = False  # published under a name that was free
        fd = _open_nameless(os.path.dirname(target), permissions)
        if fd is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            fd = self._name_by(lambda name: os.open(name, flags, permissions))
        self._made = os.fstat(fd)
        self.file = open(fd, "w+b", buffering=0)

    def _name_by(self, make: Callable[[str], T]) -> T:
        """Give the file a temporary name."""
        self._temporary = temporary_name(os.path.dirname(self._target))  # first: an interrupt may occur in between
        try:
            return make(self._temporary)
        except BaseException as error:
            if not isinstance(error, FileExistsError):  # that one is not ours
                with suppress(OSError):
                    os.unlink(self._temporary)
            self._temporary = None
            raise

    @property
    def readable(self) -> str:
        """A path by which this process can read the file before it is published."""
        return self._temporary or f"/dev/fd/{self.file.fileno()}"

    def publish(self) -> None:
        """Close the file and give it its name; it replaces another one."""
        if self._temporary is None and not self._linked():
            self._name_by(lambda name: _link(self.file.fileno(), name))
        try:
            self.file.close()
        except OSError:
            self.withdraw()
            raise
        if self._temporary is not None:
            os.replace(self._temporary, self._target)
            self._temporary = None

    def _linked(self) -> bool:
        """Give the unnamed file its name if that is free.  So even a killed process leaves no temporary file."""
        try:
            _link(self.file.fileno(), self._target)
        except FileExistsError:
            return False
        self._is_new = True
        return True

    def withdraw(self) -> None:
        """Undo `publish`: remove the file, unless it replaced another."""
        if self._is_new:
            remove(self._target, self._made)

    def discard(self) -> None:
        """Close the file, and remove it if it is not published."""
        if self._temporary is not None:
            remove(self._temporary, self._made)
            self._temporary = None
        with suppress(OSError):  # its content is not needed
            self.file.close()


def _open_nameless(folder: str, permissions: int) -> int | None:
    """An unnamed file in `folder`; None if the system or the file system does not support them."""
    if not hasattr(os, "O_TMPFILE") or not _has_descriptors():
        return None
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, permissions)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            return None
        raise


@cache
def _has_descriptors() -> bool:
    return os.path.isdir("/proc/self/fd")


def _link(fd: int, name: str) -> None:
    """Give an unnamed file a name, an absolute path."""
    # Python follows the link in /proc, which represents the file, only with a dir_fd; absolute paths do not use it
    os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=fd, follow_symlinks=True)
