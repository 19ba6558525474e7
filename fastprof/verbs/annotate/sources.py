"""Finds source files by their names in profiles."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from fastprof.core.unknown_names import UNKNOWN

# for Confined: a profile may name anything
_LONGEST_NAME = 4096
_MOST_FOLDERS = 256
_LARGEST = 1 << 24  # bytes of a file


class Sources:
    """Finds source files.

    1. The name as it is, from the current directory if it is relative.
    2. Below each of `folders`: the name without `/` and `..` at its beginning, then without its first
       folders.  So `-I src` finds /build/demo/src/zip/inflate.c as src/zip/inflate.c.
    3. A file of `named`, the files requested by the user, if one name ends in the other.
    """

    def __init__(self, folders: Sequence[str], named: Sequence[str]) -> None:
        self._folders, self._named = folders, named
        self._found: dict[str, str] = {}

    def find(self, name: str) -> str:
        """The path of a source file, "" if not found."""
        if name not in self._found:
            self._found[name] = next(filter(_is_file, self._places(name)), "")
        return self._found[name]

    def _places(self, name: str) -> Iterator[str]:
        if name in UNKNOWN:
            return
        yield name
        folders = _folders(name)
        for directory in self._folders:
            for i in range(len(folders)):
                yield os.path.join(directory, *folders[i:])
        for path in self._named:
            if ends_alike(path, name):
                yield path


class Confined(Sources):
    """Finds source files only below folders, regardless of the names in a profile and the targets of links.

    Names are looked up below the folders in the same way.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        super().__init__(folders, ())
        self._roots = [os.path.join(os.path.realpath(folder), "") for folder in folders]
        self._first = [_entries(folder) for folder in folders]

    def _places(self, name: str) -> Iterator[str]:
        if name in UNKNOWN or len(name) > _LONGEST_NAME or "\0" in name:
            return
        folders = _folders(name)[-_MOST_FOLDERS:]
        for directory, first in zip(self._folders, self._first, strict=True):
            for i in range(len(folders)):
                # for speed: a profile may name very many files in deep folders, and almost none is in this directory
                if folders[i] not in first or not _is_file(place := os.path.join(directory, *folders[i:])):
                    continue
                real = os.path.realpath(place)
                if any(real.startswith(root) for root in self._roots) and os.stat(real).st_size <= _LARGEST:
                    yield real


_confined = False


def confine_all() -> None:
    """From now on, this process finds sources only below the given folders."""
    global _confined
    _confined = True


def finding(folders: Sequence[str], named: Sequence[str]) -> Sources:
    return Confined(folders) if _confined else Sources(folders, named)


def ends_alike(one: str, other: str) -> bool:
    """Whether one path is the end of the other, in whole folders: zip/inflate.c and /build/src/zip/inflate.c."""
    short, long = sorted((_folders(one), _folders(other)), key=len)
    return bool(short) and long[-len(short) :] == short


def lines_of(path: str) -> Iterator[str]:
    """The lines of a file, without their ends; bytes that are not UTF-8 become surrogates.  Errors: OSError."""
    with open(path, "rb") as file:
        for line in file:
            yield line.rstrip(b"\r\n").decode("utf-8", "surrogateescape")


def _folders(path: str) -> list[str]:
    folders = [folder for folder in os.path.normpath(path).split("/") if folder not in ("", ".")]
    while folders and folders[0] == "..":
        del folders[0]
    return folders


def _entries(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _is_file(path: str) -> bool:
    """Whether it is a regular file; a profile may name a pipe or a device."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.R_OK)
    except (OSError, ValueError):  # ValueError: a NUL byte
        return False
