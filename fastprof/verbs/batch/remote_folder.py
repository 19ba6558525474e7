"""Folders of outputs behind URLs.

An object cannot be appended to, so each piece of a manifest is an object of its own, named after the time:

    s3://b/out/.fastprof/1-of-1.jsonl/01763999999999999999.jsonl

Readers put the pieces together in a temporary folder, in which manifests lie as in a folder of files.
"""

import os
import re
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager

from fastprof.core import remote
from fastprof.core.errors import FastprofError, FileError, UsageError
from fastprof.core.made_folders import PrivateFolder
from fastprof.core.prefetch import AT_ONCE
from fastprof.core.streams import temporary_failed
from fastprof.core.urls import has_listings, is_url, shown
from fastprof.core.workers import side_by_side

FOLDER = ".fastprof"  # hidden, because a folder of outputs may be the input of another conversion


def folder_of(outdir: str) -> str:
    """A folder of outputs: a URL ends in a slash.  Errors: UsageError for a server without listings."""
    if not is_url(outdir):
        return outdir
    folder = outdir.rstrip("/") + "/"
    if not has_listings(folder):
        raise UsageError(f"{shown(outdir)}: this server has no listings, which a batch needs; use s3, gs or az")
    return folder


class Pieces:
    """A manifest behind a URL, to which records are added."""

    most, seconds = 4096, 5.0  # records are written together after so many, or so long

    def __init__(self, path: str) -> None:
        self._path = path
        self._last = 0

    def write(self, data: bytes) -> None:
        """Errors: FastprofError."""
        self._last = max(time.time_ns(), self._last + 1)  # the names are in the order of the records
        remote.put(f"{self._path}/{self._last:020d}.jsonl", data)

    def synchronize(self) -> None:
        """Objects appear when they are complete."""

    def close(self) -> None:
        """Nothing is open."""


@contextmanager
def readable(outdir: str, only: str | None = None) -> Iterator[str]:
    """A folder with the manifests of `outdir`, or `only` this one: a copy if that is a URL, which errors name.

    Errors: FastprofError."""
    if not is_url(outdir):
        yield outdir
        return
    with PrivateFolder() as copy:
        os.mkdir(os.path.join(copy, FOLDER))
        above = f"{outdir}{FOLDER}/"
        pieces = sorted(piece.url.removeprefix(above) for piece in remote.below(above + f"{only}/" * bool(only)))
        pieces = [name for name in pieces if name.count("/") == 1 and name.endswith(".jsonl")]
        contents = side_by_side(remote.read, (above + name for name in pieces), AT_ONCE)
        for name, data in zip(pieces, contents, strict=True):
            try:
                with open(os.path.join(copy, FOLDER, name.partition("/")[0]), "ab") as file:
                    file.write(data)
            except OSError as error:
                raise temporary_failed(error) from None
        try:
            yield copy
        except FastprofError as error:
            if type(error) not in (FastprofError, FileError) or copy not in str(error):
                raise
            raise FastprofError(str(error).replace(os.path.join(copy, ""), shown(outdir))) from None


def sizes(outdir: str, wanted: Container[str]) -> dict[str, int]:
    """The sizes of these objects below a folder, by name, as far as they exist.  Errors: FastprofError."""
    named = ((found.url.removeprefix(outdir), found.size) for found in remote.below(outdir))
    return {name: size for name, size in named if name in wanted}


def remove_below(folder: str, names: str) -> None:
    """Remove the objects in a folder whose names match.  Errors: FastprofError."""
    for found in [*remote.below(folder)]:
        if re.fullmatch(names, found.url.removeprefix(folder)):
            remote.remove(found.url)


def contents(path: str) -> bytes:
    """A small file or object.  Errors: OSError, FastprofError."""
    if is_url(path):
        return remote.read(path)
    with open(path, "rb") as file:
        return file.read()
