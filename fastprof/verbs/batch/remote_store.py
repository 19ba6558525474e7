"""A store behind a URL that a batch adds to.

Objects cannot be appended to: the store and the records of its batches are copied to a temporary folder, and what the
batch has added is uploaded at its end, the store first, whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from fastprof.core import remote
from fastprof.core.errors import FastprofError, FileError
from fastprof.core.remote import Download, Upload
from fastprof.core.streams import temporary_failed
from fastprof.verbs.batch.manifest import manifest_of
from fastprof.verbs.batch.remote_folder import FOLDER, Pieces, folder_of, readable

_CHUNK = 1 << 20


@contextmanager
def local_copy(url: str, *, upload: bool) -> Iterator[str]:
    """The path of a copy of a store.  With `upload`, what has changed is uploaded after the `with` block.

    Errors: FastprofError, also if another process has changed the store meanwhile.
    """
    above, _, name = url.rpartition("/")
    folder = folder_of(above)
    with readable(folder, f"{name}.jsonl") as there:
        path = os.path.join(there, name)
        before = _download(url, path)
        ends = _size(path), sum(map(_size, manifest_of(path)))
        yield path
        if upload and _size(path) > ends[0]:
            if _identity(url) != before:
                raise FastprofError(f"{url}: changed while the batch ran; run it again")
            _upload(path, url)
        for records in manifest_of(path) if upload else ():
            with open(records, "rb") as file:
                file.seek(ends[1])
                Pieces(f"{folder}{FOLDER}/{name}.jsonl").write(file.read())


def _identity(url: str) -> tuple[int, int] | None:
    """What changes when the object does; None if there is none."""
    try:
        return remote.state(url)
    except FileError:
        return None


def _download(url: str, path: str) -> tuple[int, int] | None:
    """Copy an object, if it exists; returns its identity."""
    identity = _identity(url)
    if identity is None:
        return None
    download = Download(url)
    try:
        with open(path, "wb") as file:
            while data := download.read(_CHUNK):
                file.write(data)
    except OSError as error:
        raise temporary_failed(error) from None
    return identity


def _upload(path: str, url: str) -> None:
    upload = Upload(url)
    try:
        with open(path, "rb") as file:
            while data := file.read(_CHUNK):
                upload.write(data)
        upload.commit()
    finally:
        upload.close()


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
