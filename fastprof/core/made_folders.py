"""Folders that this process makes and removes, by the rule of newfile.py.

A `WorkFolder` has a fixed name next to an output, so that the next run finds what a killed process has left.  It
appears with a mark in it, which its process locks: without a mark it is somebody else's, and stays.  It is used by
descriptor, and only files with the names of its kind are removed from it.
"""

import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
import weakref
from contextlib import ExitStack, suppress

from fastprof.core.errors import FastprofError, raise_as
from fastprof.core.newfile import is_same, temporary_name
from fastprof.core.streams import temporary_failed

_MARK = ".made-by-fastprof"
_TEMPORARY = re.compile(r"\.fastprof-[0-9a-f]{16}\.tmp")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_BUSY = "another batch is running here"
_ATTEMPTS, _BETWEEN = 10, 0.05  # at a folder that its process may be removing, and seconds between two


class PrivateFolder:
    """A new folder for temporary files that only this user can list or write; removed with this object.

    Errors: FastprofError."""

    def __init__(self, prefix: str = "fastprof-", within: str | None = None) -> None:
        try:
            self.path = tempfile.mkdtemp(prefix=prefix, dir=within)
            made = os.lstat(self.path)
        except OSError as error:
            raise temporary_failed(error) from None
        self._remove = weakref.finalize(self, _remove_all, self.path, made, os.getpid())

    def remove(self) -> None:
        self._remove()

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: object) -> None:
        self._remove()


def _remove_all(path: str, made: os.stat_result, process: int) -> None:
    if os.getpid() == process and is_same(path, made):  # not in a forked process
        shutil.rmtree(path, ignore_errors=True)


class WorkFolder:
    """The folder `path` with temporary files whose names match `names`, used by one process at a time.

    Adopts the folder of a process that was killed, with its files.  Errors: FastprofError, also if another process uses
    the folder, and if there is anything at `path` that fastprof has not made.
    """

    def __init__(self, path: str, names: str) -> None:
        self.path = path
        self._names = re.compile(names)
        try:
            for _ in range(_ATTEMPTS):
                if self._adopt() if os.path.lexists(path) else self._make():
                    return
                time.sleep(_BETWEEN)
        except OSError as error:
            raise_as(path, error)
        raise self._foreign()

    def _make(self) -> bool:
        """Make the folder.  Returns whether the name was free."""
        new = temporary_name(os.path.dirname(self.path))
        os.mkdir(new)
        try:
            self._open(new, os.O_CREAT | os.O_EXCL)
            try:
                os.rename(new, self.path)  # replaces nothing but an empty folder
            except BaseException:
                self._opened.close()
                raise
        except BaseException as error:
            with suppress(OSError):
                os.unlink(os.path.join(new, _MARK))
            with suppress(OSError):
                os.rmdir(new)
            if isinstance(error, OSError) and os.path.lexists(self.path):
                return False  # another process was faster
            raise
        return True

    def _adopt(self) -> bool:
        """Use the folder that is there.  Returns False for one that its process may be removing."""
        try:
            self._open(self.path)
        except BlockingIOError:
            raise FastprofError(f"{self.path}: {_BUSY}") from None
        except FileNotFoundError:  # no mark, or no folder any more
            with suppress(OSError):
                if os.listdir(self.path):
                    raise self._foreign() from None
            return False
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EISDIR):
                raise self._foreign() from None
            raise
        folder, mark = os.fstat(self._fd), os.fstat(self._mark)
        is_ours = folder.st_uid == os.geteuid() and stat.S_ISREG(mark.st_mode)
        if is_ours and mark.st_nlink and is_same(self.path, folder):
            return True
        self._opened.close()
        return False

    def _foreign(self) -> FastprofError:
        return FastprofError(
            f"{self.path}: temporary files need this name, but fastprof has not made what has it: move that away, or "
            "choose another output"
        )

    def _open(self, path: str, flags: int = 0) -> None:
        """Open the folder, and open and lock its mark.  Errors: OSError."""
        with ExitStack() as opened:
            self._fd = os.open(path, _FOLDER)
            opened.callback(os.close, self._fd)
            self._mark = os.open(_MARK, _FILE | flags, 0o666, dir_fd=self._fd)
            opened.callback(os.close, self._mark)
            _lock(self._mark)
            spare = os.dup(self._fd)  # listing the folder needs a descriptor, which may not be available at the end
            self._spare = opened.enter_context(ExitStack())
            self._spare.callback(os.close, spare)
            self._opened = opened.pop_all()

    def remove(self, name: str) -> None:
        """Remove one of its files.  Errors: OSError."""
        os.unlink(name, dir_fd=self._fd)

    def empty(self) -> bool:
        """Remove its files.  Returns whether the folder is empty.  Errors: OSError."""
        for name in self._others():
            if self._names.fullmatch(name) or _TEMPORARY.fullmatch(name):
                with suppress(OSError):
                    self.remove(name)
        return not self._others()

    def _others(self) -> list[str]:
        """The names in the folder but the mark."""
        return [name for name in os.listdir(self._fd) if name != _MARK]

    def close(self, *, keep: bool = False) -> None:
        """Remove the folder; with `keep` only if it has no files."""
        self._spare.close()
        with suppress(OSError):
            if (not self._others() if keep else self.empty()) and is_same(self.path, os.fstat(self._fd)):
                os.unlink(_MARK, dir_fd=self._fd)
                os.rmdir(self.path)
        self._opened.close()


def _lock(fd: int) -> None:
    """Errors: BlockingIOError if another process has locked the file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:  # the file system has no locks
        pass
