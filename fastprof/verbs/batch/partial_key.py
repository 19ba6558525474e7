"""Proof that a worker of another machine sees the files of this one.

The proof consists of a token that this process writes into the output folder, some of the inputs, and the files named
by options.  A worker checks them before its first task; its outputs are then checked from here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b

from fastprof.core import newfile, remote
from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, errors_of
from fastprof.core.urls import is_url
from fastprof.core.version import __version__
from fastprof.inputs.stored import in_store
from fastprof.symbols import SYMBOLS
from fastprof.verbs.batch.jobs import Job
from fastprof.verbs.batch.remote_folder import contents

Proof = dict[str, Any]

_BLOCK, _BLOCKS = 1 << 16, 16  # bytes of a block, and number of blocks compared; a smaller file is compared whole
_INPUTS = 16  # number of inputs compared
_TOKEN = ".token"


def seen(path: str) -> list[Any]:
    """The fingerprint of a file, equal on machines that see the same file: its size, and a digest of its beginning, its
    end and blocks in between; for a folder, the names in it.  Errors: OSError, FastprofError."""
    path, _ = in_store(path) or (path, "")
    if is_url(path):
        return [*remote.state(path)]
    if os.path.isdir(path):
        return [0, blake2b("\0".join(sorted(os.listdir(path))).encode("utf-8", "surrogateescape")).hexdigest()]
    if not stat.S_ISREG(os.stat(path).st_mode):
        return [0, ""]  # reading it might block
    digest = blake2b(digest_size=16)
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        step = max(_BLOCK, (size - _BLOCK) // (_BLOCKS - 1))
        for offset in [*range(0, size - _BLOCK, step), max(0, size - _BLOCK)]:
            file.seek(offset)
            digest.update(file.read(_BLOCK))
    return [size, digest.hexdigest()]


@contextmanager
def proof_of(jobs: Sequence[Job], folder: str) -> Iterator[Proof]:
    """The files that workers must see for these jobs.  The token exists during the `with` block.  Creates `folder`.
    Errors: FastprofError."""
    text = os.urandom(16).hex()
    # a new name: no machine has cached that it does not exist
    token = os.path.join(absolute(folder), text + _TOKEN)
    made = None if is_url(token) else _write(token, text)
    if made is None:
        remote.put(token, text.encode())
    files = []
    for path in [*_samples(jobs), *_named_by_options(jobs)]:
        with suppress(OSError, ValueError, FastprofError):  # the job reports the error
            files.append([path, seen(path)])
    try:
        yield {"version": __version__, "token": token, "text": text, "files": files}
    finally:
        if made is not None:
            newfile.remove(token, made)
        else:
            with suppress(FastprofError):
                remote.remove(token)


def absolute(path: str) -> str:
    return path if is_url(path) else os.path.abspath(path)


def _write(token: str, text: str) -> os.stat_result:
    """Make the file.  Returns which one it is."""
    with errors_of(token):
        os.makedirs(os.path.dirname(token), exist_ok=True)
        with open(token, "x") as file:
            made = os.fstat(file.fileno())
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                newfile.remove(token, made)
                raise
            return made


def _samples(jobs: Sequence[Job]) -> list[str]:
    """One input of each folder, at most _INPUTS."""
    found: dict[str, str] = {}
    for job in jobs:
        for path in job.get("inputs") or [job["input"]]:
            found.setdefault(os.path.dirname(path), path)
    paths = [*found.values()]
    return paths[:: -(-len(paths) // _INPUTS) or 1]


def _named_by_options(jobs: Sequence[Job]) -> list[str]:
    """Files and folders named by options such as --symbols."""
    found = []
    for name, value in jobs[0]["options"].items() if jobs else ():
        for text in value if isinstance(value, (list, tuple)) else [value]:
            is_path = isinstance(text, str) and (os.path.isabs(text) or name == SYMBOLS.name)
            if is_path and os.path.exists(text):
                found.append(text)
    return found


def why_unproven(proof: Proof) -> str | None:
    """Why this machine cannot do jobs with this proof; None if it can."""
    if proof["version"] != __version__:
        return f"it has fastprof {__version__}, expected {proof['version']}"
    folder = os.path.dirname(proof["token"])
    try:
        if contents(proof["token"]) != proof["text"].encode():
            return f"{folder} is a different folder there"
    except (OSError, FastprofError) as error:
        return f"{folder} is a different folder there, or none: {_why(error)}"
    for path, expected in proof["files"]:
        try:
            if seen(path) != expected:
                return f"{path} is a different file there"
        except (OSError, ValueError, FastprofError) as error:
            return f"{path}: {_why(error)}"
    return None


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
