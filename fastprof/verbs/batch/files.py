"""The files of a batch: their selection, the names of their outputs, and their shards."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b

from fastprof import formats
from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.log import Warn
from fastprof.core.remote import is_url, shown
from fastprof.core.sink import Sink
from fastprof.core.words import Message, counted
from fastprof.inputs.expand import Failed, expand
from fastprof.inputs.stored import in_store
from fastprof.verbs.paths import clash, why_not


class File(NamedTuple):
    path: str  # absolute
    name: str  # the name of its output, without the suffix: "host1/a.prof"
    size: int
    mtime_ns: int


def find(
    inputs: Iterable[str],
    include: Sequence[str],
    exclude: Sequence[str],
    warn: Warn,
    failed: Failed,
    *,
    lenient: bool = False,
) -> list[File]:
    """The given files, and those in and below given folders, largest first.

    A file below a given folder is named after its path relative to that, a file given itself after that path:

        runs            runs/host1/a.prof  ->  host1/a.prof
        runs/host1/*    runs/host1/a.prof  ->  runs/host1/a.prof
        s.fpa:host1/*   s.fpa:host1/a.prof ->  host1/a.prof

    `include` and `exclude` are patterns for these names, or for their last part if they have no "/".
    Errors: UsageError; a folder that cannot be read is given to `failed`.
    """
    given = [*dict.fromkeys(inputs)]
    if "-" in given:
        raise UsageError("standard input has no name to name its output after; use `fastprof convert`")
    refuse_urls(*given)
    folders = [path for path in given if os.path.isdir(path) and not formats.of_directory(path)]
    named = expand([path for path in given if path not in {*folders}], warn, failed, lenient=lenient)
    names = {_placed(path) for path in named}
    for folder in folders:
        below = expand([folder], warn, failed)
        names |= {(os.path.abspath(path), os.path.relpath(path, folder)) for path in below}
    found = [File(path, name, *state(path)) for path, name in names if _chosen(name, include, exclude)]
    return sorted(found, key=lambda file: (-file.size, file.name, file.path))


def refuse_urls(*paths: str) -> None:
    """Completed files are recognized by size and time, which are read often."""
    for path in filter(is_url, paths):
        raise UsageError(f"{shown(path)}: a batch reads files; `fastprof convert` and `merge` also read URLs")


def _placed(path: str) -> tuple[str, str]:
    """The absolute path of an input, and its name.  A profile of a store has its own name."""
    store, name = in_store(path) or ("", path)
    return (f"{os.path.abspath(store)}:{name}" if store else os.path.abspath(path)), _relative(name)


def _relative(path: str) -> str:
    """The path below the folder that the outputs go to: "../a/b" is "a/b"."""
    return "/".join(part for part in os.path.normpath(path).split("/") if part not in ("", ".", ".."))


def _chosen(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    def matches(pattern: str) -> bool:
        return fnmatchcase(name if "/" in pattern else os.path.basename(name), pattern)

    return (not include or any(map(matches, include))) and not any(map(matches, exclude))


def state(path: str) -> tuple[int, int]:
    """Size and time of a file, of all in a folder together, or of the store that a profile is in.

    0 and 0 if it is gone; reading it reports that.
    """
    path, _ = in_store(path) or (path, "")
    try:
        if not os.path.isdir(path):
            status = os.stat(path)
            return status.st_size, status.st_mtime_ns
    except OSError:
        return 0, 0
    states = [state(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
    return sum(size for size, _ in states), max((mtime for _, mtime in states), default=0)


def refuse_collisions(files: Sequence[File], outdir: str, suffix: str) -> None:
    """Errors: UsageError if two outputs, or an output and an input, would be the same, or one the other's folder."""
    _refuse_bad_names(files)
    advice = ": pass a folder that has both"
    if found := clash([(file.name + suffix, file.path) for file in files], outdir, advice):
        raise UsageError(found)
    paths = {file.path for file in files}
    for place in {os.path.abspath(outdir), os.path.realpath(outdir)}:
        for file in files:
            if (output := os.path.join(place, file.name + suffix)) in paths:
                raise UsageError(f"{file.path} would become {output}, which is an input")


def _refuse_bad_names(files: Iterable[File]) -> None:
    for file in files:
        if why := why_not(file.name):
            raise UsageError(Message("{path}: the name of its output {why}; see {--exclude}", path=file.path, why=why))


def refuse_same_names(files: Iterable[File]) -> None:
    """Errors: UsageError."""
    paths: dict[str, str] = {}
    for file in files:
        if (other := paths.setdefault(file.name, file.path)) != file.path:
            raise UsageError(f"{other} and {file.path} would both be named {file.name!r}: pass a folder that has both")


def of_shard(files: Sequence[File], shard: tuple[int, int], frozen: bool) -> list[File]:
    """The files of one shard.

    Of a frozen plan each file, largest first, goes to the shard that has the fewest bytes so far.  Else a file's shard
    depends on its name alone: each process may search the files itself, even while new ones appear.
    """
    number, of = shard
    if not frozen:
        return [file for file in files if _hashed(file.name) % of == number - 1]
    loads = [(0, i) for i in range(of)]
    mine = []
    for file in files:
        load, i = loads[0]
        # a file costs something even if it is empty
        heapq.heapreplace(loads, (load + file.size + _START, i))
        if i == number - 1:
            mine.append(file)
    return mine


_START = 4096


def _hashed(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")


def write_plan(path: str, files: Sequence[File]) -> None:
    """Errors: FastprofError, also for files that `read_plan` would refuse."""
    refuse_same_names(files)
    _refuse_bad_names(files)
    with Sink(path) as sink:
        sink.write(_line({"plan": 1, "files": len(files)}))
        for file in files:
            sink.write(_line(file._asdict()))
        sink.commit()


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def read_plan(path: str) -> list[File]:
    """Errors: FastprofError with the line."""
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise FastprofError(f"{path}: {error.strerror}") from None
    kinds = {"path": str, "name": str, "size": int, "mtime_ns": int}
    found = []
    first: dict[str, int] = {}  # the line of each name
    n_files = None
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if number == 1:
            if not isinstance(entry, dict) or entry.get("plan") != 1 or not isinstance(entry.get("files"), int):
                raise FastprofError(f"{path}: line 1: not a plan by `fastprof batch plan`")
            n_files = entry["files"]
        elif not isinstance(entry, dict) or {k: type(v) for k, v in entry.items()} != kinds:
            raise FastprofError(f"{path}: line {number}: not a file of a plan, expected {', '.join(kinds)}")
        elif why := why_not(entry["name"]):
            raise FastprofError(f"{path}: line {number}: the name {entry['name']!r:.80} {why}")
        elif _is_no_path(entry["path"]):
            raise FastprofError(f"{path}: line {number}: {entry['path']!r:.80} cannot be a path")
        else:
            found.append(File(**entry))
            if (before := first.setdefault(found[-1].name, number)) != number:
                raise FastprofError(f"{path}: line {number}: the name {found[-1].name!r:.80} repeats line {before}")
    if len(found) != n_files:
        raise FastprofError(f"{path}: {counted(len(found), 'file')}, expected {n_files or 'a plan'}")
    return found


def _is_no_path(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return True
    return "\0" in path and in_store(path) is None  # a profile's name in a store may contain one


def again(files: Iterable[File]) -> list[File]:
    """The files of a plan in their current state."""
    return [file._replace(size=size, mtime_ns=mtime) for file in files for size, mtime in [state(file.path)]]
