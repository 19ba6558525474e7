"""The records of a batch's files: lines of JSON next to the outputs, one file per shard.

    OUTDIR/.fastprof/1-of-1.jsonl      of a batch without shards
    OUTDIR/.fastprof/3-of-8.jsonl      of the third of eight shards
    DIR/.fastprof/all.fpa.jsonl        of the store DIR/all.fpa
    {"run": {"files": 2000, ...}}      first line of each run; `unread` are inputs that cannot be listed
    {"input": ..., "status": "ok"}     a record (jobs.py), when its output is on disk

A record is written after its output is safe, so it stays true if the process or the machine dies; unfinished files
are then redone.  Synchronizing 10,000 small files one by one takes longer than converting them, so outputs are
synchronized together, once a second or every 256 outputs.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import sys
import time
from collections.abc import Container, Iterable, Iterator
from itertools import groupby, islice
from threading import Condition

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, errors_of, faulty, raise_as, usage_error
from fastprof.core.messages import Message
from fastprof.core.urls import is_url
from fastprof.core.workers import begin
from fastprof.verbs.batch.jobs import CRASHED, ERROR, Record
from fastprof.verbs.batch.remote_folder import FOLDER, Pieces

_FAILED = (ERROR, CRASHED)
_BEGINS = b'{"run": '
_ATTEMPTS, _BETWEEN = 10, 0.05  # attempts to lock a manifest, and seconds between two


class Manifest:
    """The manifest of one shard or store, open for adding records.

    Leaving the `with` block, even by an error, writes the added records.
    Errors: FastprofError, also if another process adds to the same manifest.
    """

    def __init__(self, outdir: str, name: str, run: dict[str, Any]) -> None:
        self.path = os.path.join(outdir, FOLDER, f"{name}.jsonl")
        self._waiting: list[Record] = []
        self._error: Exception | None = None
        self._ends = False
        self._changed = Condition()
        self._to: _File | Pieces = Pieces(self.path) if is_url(outdir) else _File(self.path)
        try:
            self._to.write(_line({"run": run}))
        except OSError as error:
            self._to.close()
            raise_as(self.path, error)
        self._thread = begin(self._run)

    def add(self, record: Record) -> None:
        """Add a record, which is written soon.  Errors: FastprofError if earlier records could not be written."""
        with self._changed:
            self._check()
            self._waiting.append(record)
            if len(self._waiting) in (1, self._to.most):  # what the thread waits for
                self._changed.notify()

    def _check(self) -> None:
        if self._error is not None:
            raise_as(self.path, self._error)

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._waiting or self._ends)
                    self._changed.wait_for(lambda: len(self._waiting) >= self._to.most or self._ends, self._to.seconds)
                    records, self._waiting = self._waiting, []
                if not records:
                    return
                self._to.synchronize()
                self._to.write(b"".join(map(_line, records)))
        except Exception as error:
            self._error = error

    def __enter__(self) -> Manifest:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify()
        self._thread.join()
        try:
            self._to.close()
        except OSError as failed:
            self._error = self._error or failed
        if error is None:
            self._check()


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, default=str).encode() + b"\n"


class _File:
    """A manifest in a folder of files, locked.  Errors: FastprofError, also if another process has locked it."""

    most, seconds = 256, 1.0  # records are written together after so many, or so long

    def __init__(self, path: str) -> None:
        with errors_of(path):
            self._fd = _opened(path)
        try:
            _lock(self._fd)
            _cut_torn_line(self._fd, path)
        except (OSError, FastprofError) as error:
            self.close()
            raise_as(path, error, "another batch is running here" if isinstance(error, BlockingIOError) else "")

    def write(self, data: bytes) -> None:
        """Errors: OSError."""
        rest = memoryview(data)
        while rest:  # a full disk accepts a part first and fails at the next write
            rest = rest[os.write(self._fd, rest) :]

    def synchronize(self) -> None:
        """Synchronize the outputs to disk."""
        _synchronize(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def _opened(path: str) -> int:
    """A descriptor of a manifest, which is created if missing, with its folder; neither may be a link."""
    above, name = os.path.split(path)
    os.makedirs(above, exist_ok=True)
    folder = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o666, dir_fd=folder)
    finally:
        os.close(folder)


def _lock(fd: int) -> None:
    """Lock a manifest.  Errors: BlockingIOError if another batch holds the lock; `fastprof batch status` holds it only
    briefly."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not left:
                raise
            time.sleep(_BETWEEN)


def is_locked(path: str) -> bool:
    """Whether a process adds to this manifest.  Errors: FastprofError."""
    with errors_of(path), open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _synchronize(fd: int) -> None:
    """Synchronize all outputs: the whole file system of `fd`."""
    if sys.platform != "linux":
        os.sync()
        return
    import ctypes

    if ctypes.CDLL(None, use_errno=True).syncfs(fd):
        raise OSError(os.strerror(ctypes.get_errno()))


def _cut_torn_line(fd: int, path: str) -> None:
    """Remove the torn last line of a killed process.  Errors: FastprofError for a file that is no manifest."""
    begins = os.pread(fd, len(_BEGINS), 0)
    if not stat.S_ISREG(os.fstat(fd).st_mode) or not _BEGINS.startswith(begins):
        raise faulty(path, "line 1: not a record of a batch")
    end = whole = os.lseek(fd, 0, os.SEEK_END)
    while whole:
        start = max(0, whole - (1 << 16))
        found = os.pread(fd, whole - start, start).rfind(b"\n")
        if found >= 0:
            whole = start + found + 1
            break
        whole = start
    if whole != end:
        os.ftruncate(fd, whole)


def manifests(outdir: str) -> list[str]:
    """The paths of all shards' manifests, by number of shards."""
    folder = os.path.join(outdir, FOLDER)
    with errors_of(folder):
        try:
            names = [name for name in os.listdir(folder) if name.endswith(".jsonl")]
        except FileNotFoundError:
            return []
    return [os.path.join(folder, name) for name in sorted(names, key=lambda name: (len(name), name))]


def shard_of(path: str) -> tuple[int, int] | None:
    """The number of a manifest's shard and the total; None for the manifest of a store."""
    match = re.fullmatch(r"([1-9][0-9]{0,6})-of-([1-9][0-9]{0,6})\.jsonl", os.path.basename(path))
    number, of = map(int, match.groups()) if match else (1, 0)
    return (number, of) if number <= of <= 1 << 20 else None


def refuse_other_shards(outdir: str, found: list[str], shard: tuple[int, int]) -> None:
    """Refuse a second number of shards in a folder: some files would be done twice and others never.
    `found`: its manifests.

    A run of all files, 1 of 1, may continue ended shards, and vice versa.
    Errors: UsageError; FastprofError while other shards are running.
    """
    for path in found:
        _, of = shard_of(path) or shard
        if of != shard[1] and 1 not in (of, shard[1]):
            instead = Message("{--shard:=}I/{of}, no {--shard} for all that remain", of=of)
            restart = f"remove {os.path.join(outdir, FOLDER)} to start over"
            raise usage_error(
                "{--shard:=}{number}/{shards}: {outdir} has outputs of {of} shards; use {instead}, or {restart}",
                number=shard[0],
                shards=shard[1],
                outdir=outdir,
                of=of,
                instead=instead,
                restart=restart,
            )
        if of != shard[1] and is_locked(path):
            raise faulty(path, "another batch is running here")


def manifest_of(store: str) -> list[str]:
    """The path of a store's manifest, if there is one."""
    folder, name = os.path.split(store)
    path = os.path.join(folder, FOLDER, f"{name}.jsonl")
    return [path] if os.path.exists(path) else []


def lines(path: str) -> Iterator[dict[str, Any]]:
    """The lines of a manifest, without a torn last line.  Errors: FastprofError."""
    return (line for _, line in placed_lines(path))


def placed_lines(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines of a manifest, each with its offset in bytes, without a torn last line.  Errors: FastprofError."""
    with errors_of(path), open(path, "rb") as file:
        offset = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            try:
                found = json.loads(line.decode())
            except (ValueError, RecursionError) as error:
                raise faulty(path, f"line {number}: {error}, expected JSON") from None
            if not _is_line(found):
                raise faulty(path, f"line {number}: neither a run nor a record of a file")
            yield offset, found
            offset += len(line)


def lines_at(places: Iterable[tuple[str, int]]) -> Iterator[dict[str, Any]]:
    """Lines that `placed_lines` has found, by path and offset.  Errors: FastprofError."""
    for path, group in groupby(places, lambda place: place[0]):
        try:
            with open(path, "rb") as file:
                for _, offset in group:
                    file.seek(offset)
                    yield json.loads(file.readline())
        except (OSError, ValueError) as error:
            raise_as(path, error)


def _is_line(found: Any) -> bool:
    """Whether a line has the fields read here, with valid values."""
    if not isinstance(found, dict):
        return False
    if "run" in found:
        return _is_run(found["run"])
    for key, kind in _FIELDS:
        if not isinstance(found.get(key), kind):
            return False
    for key, kind in _MORE_FIELDS:
        if key in found and not isinstance(found[key], kind):
            return False
    if not all(0 <= found.get(key, 0) < _FAR for key in ("time", "bytes", "cpu_seconds")):
        return False
    return found["status"] not in _FAILED or isinstance(found.get("error", {}).get("message"), str)


_FAR = 1 << 63
_FIELDS: tuple[tuple[str, Any], ...] = (("output", str), ("status", str), ("time", (int, float)))
_MORE_FIELDS: tuple[tuple[str, Any], ...] = (
    ("bytes", int),
    ("cpu_seconds", (int, float)),
    ("files", list),
    ("counts", dict),
    ("warnings", list),
    ("error", dict),
)


def _is_run(run: Any) -> bool:
    return (
        isinstance(run, dict)
        and all(type(run.get(key)) is int for key in ("files", "earlier", "todo"))
        and isinstance(run.get("began", 0), (int, float))
        and isinstance(run.get("plan", ""), str)
        and isinstance(unread := run.get("unread", []), list)
        and all(isinstance(message, str) for message in unread)
    )


def records_by_output(paths: list[str], wanted: Container[str] | None = None) -> dict[str, Record]:
    """The last record of each output, by path, from all these manifests; with `wanted` only of these outputs.

    Errors: FastprofError.
    """
    found: dict[str, Record] = {}
    for path in paths:
        for line in lines(path):
            if "run" in line or (wanted is not None and line["output"] not in wanted):
                continue
            if line["time"] >= found.get(line["output"], line)["time"]:
                found[line["output"]] = line
    return found


def manifests_for(outdir: str, shard: tuple[int, int], plan: str) -> list[str]:
    """The manifests that may have records of a shard's files: its own, and that of a run of all files.

    The others may, too, if they began with another plan, by its digest ("" without one): then files have moved between
    shards.
    """
    paths = manifests(outdir)
    if shard[1] == 1:
        return paths
    own = [path for path in paths if shard_of(path) in (shard, (1, 1), None)]
    others = [path for path in paths if path not in own]
    moved = any(line.get("run", {}).get("plan", "") != plan for path in others for line in islice(lines(path), 1))
    return paths if moved else own
