"""A store behind a URL that a batch adds to.

Objects cannot be appended to: the store and the records of its batches are copied to a temporary folder, and what the
batch has added is uploaded at its end, the store first, whole or not at all.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fastprof.core import remote
from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, FileError, UsageError, faulty
from fastprof.core.remote import Download, Upload
from fastprof.core.streams import temporary_failed
from fastprof.core.urls import shown
from fastprof.formats.archive.sections import TRAILER
from fastprof.inputs.stored import is_archive, may_be_store
from fastprof.verbs.batch.manifest import manifest_of
from fastprof.verbs.batch.remote_folder import FOLDER, Pieces, folder_of, readable

_CHUNK = 1 << 20
_MOST_AT_ONCE = 64 << 20  # the most bytes of a store that is uploaded by one request, from memory


@contextmanager
def local_copy(url: str, *, upload: bool) -> Iterator[str]:
    """The path of a copy of a store.  With `upload`, what has changed is uploaded after the `with` block.

    Errors: FastprofError, also if another process has changed the store meanwhile.
    """
    if not may_be_store(url):
        raise UsageError(f"{shown(url)}: the URL of a store must end in .fpa")
    above, _, name = url.rpartition("/")
    folder = folder_of(above)
    with readable(folder, f"{name}.jsonl") as there:
        path = os.path.join(there, name)
        before = _download(url, path)
        if before is not None and not is_archive(path):
            raise faulty(shown(url), "not an archive")
        end, n_recorded = _end(path), sum(map(os.path.getsize, manifest_of(path)))
        yield path
        if upload and _end(path) != end:
            _upload(path, url, before)
        for records in manifest_of(path) if upload else ():
            with open(records, "rb") as file:
                file.seek(n_recorded)
                Pieces(f"{folder}{FOLDER}/{name}.jsonl").write(file.read())


def _identity(url: str) -> tuple[Any, ...] | None:
    """What changes when the object does; None if there is none."""
    try:
        return remote.identity(url)
    except FileError:
        return None


def _download(url: str, path: str) -> tuple[Any, ...] | None:
    """Copy an object, if it exists; returns its identity."""
    identity = _identity(url)
    if identity is None:
        return None
    download = Download(url)
    try:
        with open(path, "wb") as file:
            while data := download.read(_CHUNK):
                file.write(data)
    except FastprofError:
        raise
    except OSError as error:
        raise temporary_failed(error) from None
    return identity


def _upload(path: str, url: str, before: tuple[Any, ...] | None) -> None:
    _refuse_changed(url, before)
    if os.path.getsize(path) <= _MOST_AT_ONCE:
        with open(path, "rb") as file:
            done = remote.replace(url, file.read(), before)
        if done is False:
            raise _changed(url)
        if done:
            return
    upload = Upload(url)
    try:
        with open(path, "rb") as file:
            while data := file.read(_CHUNK):
                upload.write(data)
        _refuse_changed(url, before)  # again: sending may have taken long
        upload.commit()
    finally:
        upload.close()


def _refuse_changed(url: str, before: tuple[Any, ...] | None) -> None:
    if _identity(url) != before:
        raise _changed(url)


def _changed(url: str) -> FastprofError:
    return FastprofError(f"{shown(url)}: changed while the batch ran; run it again")


def _end(path: str) -> tuple[int, bytes]:
    """The size and the trailer of a store.  Each append changes them, also one that begins by cutting off another,
    unfinished one and leaves the store smaller."""
    if not os.path.exists(path):
        return 0, b""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TRAILER.size))
        return size, file.read()
