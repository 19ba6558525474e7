"""An output is none of the files that are read."""

import os
import stat
from collections.abc import Iterable, Iterator

from fastprof import plan
from fastprof.core._typing import Any
from fastprof.core.errors import UsageError
from fastprof.core.options import FilePath, FolderPath, Options
from fastprof.core.streams import name_of
from fastprof.core.urls import is_url, shown
from fastprof.inputs.stored import file_of, in_store


class Reads:
    """The files that a command reads: its inputs, also those below folders and behind links, and those that options
    name.  They are looked at only for an output that exists."""

    def __init__(self, inputs: Iterable[Any], options: Options | None = None) -> None:
        self._inputs, self._options = inputs, options or Options()

    def refuse(self, output: Any) -> None:
        """Errors: UsageError for an output that is one of these files.  Standard output and devices are never one."""
        identity = file_identity(output)
        if identity is None:
            return
        named = shown(output) if isinstance(output, str) else name_of(output)
        for path, file in self._files():
            if file_identity(file) == identity:
                other = shown(path) if isinstance(path, str) else name_of(path)
                what = "is an input" if other == named else f"is the same file as {other}, which is read"
                raise UsageError(f"{named}: {what}; choose another output")

    def _files(self) -> Iterator[tuple[Any, Any]]:
        """Each file, after what names it."""
        for path in map(file_of, self._inputs):
            store = in_store(path)
            if store is None and isinstance(path, str) and os.path.isdir(path):
                for folder, folders, names in os.walk(path):
                    folders[:] = [name for name in folders if not name.startswith(".")]
                    for file in (os.path.join(folder, name) for name in names if not name.startswith(".")):
                        yield file, file
            else:
                yield path, store[0] if store else path
        for option in plan.known_options():
            kind = option.kind
            if option in self._options and isinstance(kind, FilePath) and not isinstance(kind, FolderPath):
                value = self._options[option]
                for file in value if isinstance(value, tuple) else (value,):
                    yield file, file


def file_identity(file: Any) -> object:
    """Device and inode of a regular file, by path or file object; a URL itself; None for others."""
    if isinstance(file, str) and is_url(file):
        return shown(file)
    try:
        if isinstance(file, str):
            found = None if file == "-" else os.stat(file)
        else:
            found = os.fstat(file.fileno()) if hasattr(file, "fileno") else None
    except (OSError, ValueError):  # missing, or no file of the system
        return None
    return (found.st_dev, found.st_ino) if found and stat.S_ISREG(found.st_mode) else None
