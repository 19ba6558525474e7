"""Plans, which list the files of a batch, and its division into shards.

Each of many shards reads the whole plan, so it is read line by line: a shard keeps its files, and a hash of each name.
"""

import heapq
import io
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from hashlib import blake2b
from itertools import islice

from fastprof.core import remote
from fastprof.core._typing import Any
from fastprof.core.errors import errors_of, faulty
from fastprof.core.messages import counted
from fastprof.core.sink import Sink
from fastprof.core.streams import temporary_failed, temporary_file
from fastprof.core.urls import is_url, shown
from fastprof.inputs.stored import in_store
from fastprof.verbs.batch.files import File, by_size, order, refuse_same_names, with_good_names
from fastprof.verbs.batch.hashes import Hashes
from fastprof.verbs.output_collisions import invalid_because

_START = 4096  # bytes; a file costs something even if it is empty


_RUN = 1 << 15  # files that are sorted in memory


def write_plan(path: str, files: Iterable[File]) -> tuple[int, int]:
    """Write the files, largest first; returns their number and bytes.  Sorted runs of them go to temporary files.

    Errors: FastprofError, also for files that `FileList` would refuse.
    """
    names, n, nbytes = Hashes(), 0, 0
    with ExitStack() as stack, Sink(path) as sink:
        waiting = iter(with_good_names(files))
        runs: list[Iterable[File]] = []
        while run := by_size(islice(waiting, _RUN)):
            n += len(run)
            runs.append(_spilled(run, stack) if len(run) == _RUN else run)
        sink.write(_line({"plan": 1, "files": n}))
        for file in heapq.merge(*runs, key=order):
            names.add(hash(file.name))
            nbytes += file.size
            sink.write(_line(file._asdict()))
        if repeated := names.repeated():
            refuse_same_names(file for file in files if hash(file.name) in repeated)
        sink.commit()
    return n, nbytes


def _spilled(run: list[File], stack: ExitStack) -> Iterator[File]:
    """Write a sorted run to a temporary file, and read it back file by file.  Errors: FastprofError."""
    try:
        copy = stack.enter_context(io.BufferedRandom(temporary_file()))
        copy.write(b"".join(_line(file._asdict()) for file in run))
        copy.seek(0)
    except OSError as error:
        raise temporary_failed(error) from None
    return (file for line in copy if (file := _file(line)) is not None)


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


class FileList:
    """The files of a plan; each iteration reads them anew.  Errors: FastprofError with the line."""

    def __init__(self, path: str) -> None:
        self.path, self.name = path, shown(path)
        self.digest = ""  # of its bytes, after an iteration

    def __iter__(self) -> Iterator[File]:
        path, names, n = self.name, Hashes(), -1
        digest = blake2b(digest_size=8)
        expected = None
        for n, line in enumerate(self._lines()):
            digest.update(line)
            if expected is None:
                expected = self._expected(line)
                continue
            file = _file(line)
            if file is None:
                raise faulty(path, f"line {n + 1}: not a file of a plan, expected {', '.join(File._fields)}")
            if why := invalid_because(file.name):
                raise faulty(path, f"line {n + 1}: the name {file.name!r:.80} {why}")
            if _is_no_path(file.path):
                raise faulty(path, f"line {n + 1}: {file.path!r:.80} cannot be a path")
            names.add(hash(file.name))
            yield file
        if repeated := names.repeated():
            self._refuse_repeated(repeated)
        if n != expected:
            raise faulty(path, f"{counted(max(0, n), 'file')}, expected {expected or 'a plan'}")
        self.digest = digest.hexdigest()

    def _lines(self) -> Iterator[bytes]:
        if is_url(self.path):
            yield from remote.lines(self.path)
            return
        with errors_of(self.path), open(self.path, "rb") as file:
            yield from file

    def _expected(self, line: bytes) -> int:
        """The number of files, from the first line."""
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict) or entry.get("plan") != 1 or not isinstance(entry.get("files"), int):
            raise faulty(self.name, "line 1: not a plan by `fastprof batch plan`")
        return int(entry["files"])

    def _refuse_repeated(self, hashes: set[int]) -> None:
        """Errors: FastprofError if two names with these hashes are the same."""
        first: dict[str, int] = {}  # the line of each name
        for number, line in enumerate(self._lines(), 1):
            name = json.loads(line).get("name") if number > 1 else None
            if name is not None and hash(name) in hashes and (before := first.setdefault(name, number)) != number:
                raise faulty(self.name, f"line {number}: the name {name!r:.80} repeats line {before}")


def _file(line: bytes) -> File | None:
    try:
        entry = json.loads(line.decode())
        path, name, size, mtime_ns = entry["path"], entry["name"], entry["size"], entry["mtime_ns"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    ok = type(path) is type(name) is str and type(size) is type(mtime_ns) is int and len(entry) == len(File._fields)
    return File(path, name, size, mtime_ns) if ok else None


def _is_no_path(path: str) -> bool:
    if path.isascii() and "\0" not in path:
        return False
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return True
    return "\0" in path and in_store(path) is None  # a profile's name in a store may contain one


def of_shard(files: Iterable[File], shard: tuple[int, int], frozen: bool) -> list[File]:
    """The files of one shard.

    Of a frozen plan each file, largest first, goes to the shard that has the fewest bytes so far.  Else a file's shard
    depends on its name alone: each process may search the files itself, even while new ones appear.
    """
    number, of = shard
    if of == 1:
        return [*files]
    if not frozen:
        return [file for file in files if _hashed(file.name) % of == number - 1]
    loads = [(0, i) for i in range(of)]
    mine = []
    for file in files:
        load, i = loads[0]
        heapq.heapreplace(loads, (load + file.size + _START, i))
        if i == number - 1:
            mine.append(file)
    return mine


def _hashed(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")
