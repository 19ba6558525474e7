"""The files of a batch: their selection, and the names of their outputs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter

from fastprof import formats
from fastprof.core import remote
from fastprof.core._typing import TYPE_CHECKING, Any, NamedTuple
from fastprof.core.errors import FastprofError, UsageError, usage_error
from fastprof.core.log import Warn
from fastprof.core.prefetch import AT_ONCE
from fastprof.core.urls import has_listings, is_recordable, is_url, shown
from fastprof.inputs.expand import Failed, expand, files_below, objects_below, without_emptied
from fastprof.inputs.stored import in_store
from fastprof.verbs.batch.hashes import Hashes
from fastprof.verbs.output_collisions import clash, folded, invalid_because
from fastprof.verbs.reads import file_identity

if TYPE_CHECKING:
    from fastprof.verbs.batch.jobs import Job


class File(NamedTuple):
    path: str  # absolute
    name: str  # the name of its output, without the suffix: "host1/a.prof"
    size: int
    mtime_ns: int


class Found:
    """The given files, and those in and below given folders.  Each iteration finds them anew, folder by folder, so
    memory does not grow with their number.

    A file below a given folder is named after its path relative to the folder, a file given itself after that path:

        runs            runs/host1/a.prof  ->  host1/a.prof
        runs/host1/*    runs/host1/a.prof  ->  runs/host1/a.prof
        s.fpa:host1/*   s.fpa:host1/a.prof ->  host1/a.prof
        s3://b/runs/    s3://b/runs/h/a    ->  h/a
        s3://b/h/a      s3://b/h/a         ->  b/h/a
        http://h/a?s=5  http://h/a?s=5     ->  h/a

    `include` and `exclude` are patterns for these names, or for their last part if they have no "/".  A folder that
    cannot be read is given to `failed`, once.
    Errors: UsageError.
    """

    def __init__(
        self,
        inputs: Iterable[str],
        include: Sequence[str],
        exclude: Sequence[str],
        warn: Warn,
        failed: Failed,
        *,
        lenient: bool = False,
    ) -> None:
        self._include, self._exclude, self._warn = include, exclude, warn
        self.n_failed = 0

        def noted(error: FastprofError) -> None:
            self.n_failed += 1
            failed(error)

        self._failed: Failed = noted
        given = [*dict.fromkeys(inputs)]
        if "-" in given:
            raise UsageError("standard input has no name to name its output after; use `fastprof convert`")
        for url in filter(is_url, given):
            if not is_recordable(url):
                raise UsageError(
                    f"{shown(url)}: a batch records its inputs, so their URLs cannot have a password or a query"
                )
        folders = [path for path in given if os.path.isdir(path) and not formats.of_directory(path)]
        self._folders = [*{os.path.abspath(path): path for path in folders}.values()]
        self._prefixes = [path for path in given if is_url(path) and path.endswith("/")]
        for prefix in self._prefixes:
            if not has_listings(prefix):
                raise UsageError(f"{prefix}: this server has no listings; name its files")
        others = [path for path in given if path not in {*folders, *self._prefixes}]
        named = expand(others, warn, noted, lenient=lenient)
        self._named = sorted(one for one in {_placed(path) for path in named} if self._chooses(one[1]))

    def __iter__(self) -> Iterator[File]:
        is_empty = True
        for file in self._all():
            is_empty = False
            yield file
        if is_empty and not self.n_failed:
            raise UsageError(f"no input files {'match' if self._include or self._exclude else 'found'}")

    def _all(self) -> Iterator[File]:
        yield from refreshed(File(path, name, 0, 0) for path, name in self._named)
        warn, failed = self._warn, self._failed
        self._warn, self._failed = (lambda *_, **__: None), (lambda _: None)  # the next iteration would repeat them
        named = {*self._named}
        for folder in self._folders:
            try:
                for paths in files_below(folder, warn, failed):
                    above = os.path.dirname(paths[0]) if paths else folder
                    place, within = os.path.abspath(above), _within(above, folder)
                    for path in without_emptied(paths):
                        last = os.path.basename(path)
                        one = os.path.join(place, last), within + last
                        if self._chooses(one[1]) and one not in named:
                            yield File(*one, *state(path))
            except FastprofError as error:
                failed(error)
        for prefix in self._prefixes:
            try:
                for found in objects_below(prefix, warn):
                    name = _relative(found.url.removeprefix(prefix))
                    if self._chooses(name) and (found.url, name) not in named:
                        yield File(found.url, name, *found[1:])
            except FastprofError as error:
                failed(error)

    def _chooses(self, name: str) -> bool:
        def matches(pattern: str) -> bool:
            return fnmatchcase(name if "/" in pattern else os.path.basename(name), pattern)

        return (not self._include or any(map(matches, self._include))) and not any(map(matches, self._exclude))


def _within(directory: str, folder: str) -> str:
    """The start of the relative paths of the files in a directory, which is `folder` or below it."""
    found = os.path.relpath(directory, folder)
    return "" if found == os.curdir else os.path.join(found, "")


class Jobs:
    """A job for each file, made when it is needed: it takes more memory than the file."""

    def __init__(self, files: Sequence[File], job_of: Callable[[File], Job]) -> None:
        self.files, self.job_of = files, job_of

    def __len__(self) -> int:
        return len(self.files)

    def __iter__(self) -> Iterator[Job]:
        return map(self.job_of, self.files)

    def __getitem__(self, at: int | slice) -> Any:
        """A job, or a list of them."""
        return self.job_of(self.files[at]) if isinstance(at, int) else [*map(self.job_of, self.files[at])]


def by_size(files: Iterable[File]) -> list[File]:
    """The files in this `order`, each once.  Three sorts, because a key per file would take 100 bytes."""
    found = sorted(files)
    found.sort(key=itemgetter(1))
    found.sort(key=itemgetter(2), reverse=True)
    return [file for file, _ in groupby(found)]


def order(file: File) -> tuple[int, str, str]:
    """Largest first."""
    return -file.size, file.name, file.path


def _placed(path: str) -> tuple[str, str]:
    """The absolute path of an input, and its name.  A profile of a store has its own name."""
    store, name = in_store(path) or ("", path)
    if is_url(path):
        return path, _relative(shown(name).partition("://")[2] or name)
    return (f"{os.path.abspath(store)}:{name}" if store else os.path.abspath(path)), _relative(name)


def _relative(path: str) -> str:
    """The path of an output below the output folder: "../a/b" becomes "a/b"."""
    return "/".join(part for part in os.path.normpath(path).split("/") if part not in ("", ".", ".."))


def state(path: str) -> tuple[int, int]:
    """Size and time of a file, of all files in a folder together, or of the store of a profile.

    (0, 0) if it is gone, which reading it reports, and for a profile that each request takes anew: it is never done.
    """
    path, _ = in_store(path) or (path, "")
    if is_url(path):
        try:
            return remote.state(path)
        except FastprofError:
            return 0, 0
    try:
        if not os.path.isdir(path):
            status = os.stat(path)
            return status.st_size, status.st_mtime_ns
    except OSError:
        return 0, 0
    states = [state(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
    return sum(size for size, _ in states), max((mtime for _, mtime in states), default=0)


def refuse_collisions(files: Iterable[File], outdir: str, suffix: str) -> None:
    """Check the outputs.  Errors: UsageError if two of them, or an output and an input, have the same path, or one is
    the folder of another."""
    advice = ": pass a folder that has both"
    if found := clash([(file.name + suffix, file.path) for file in files], outdir, advice):
        raise UsageError(found)
    aliases = {file_identity(file.path): file.path for file in files if _has_names(file.path)}
    for file in files if aliases else ():
        output = os.path.join(outdir, file.name + suffix)
        identity = file_identity(output)
        if identity is not None and identity in aliases:
            other = aliases[identity]
            raise UsageError(f"{file.path} would become {output}, which is the same file as the input {other}")
    places = _places(outdir)
    below = tuple(os.path.join(place, "") for place in places)
    inputs = {file.path for file in files if file.path.startswith(below)}
    for file in files if inputs else ():
        for place in places:
            if (output := os.path.join(place, file.name + suffix)) in inputs:
                raise UsageError(f"{file.path} would become {output}, which is an input")


def _places(outdir: str) -> set[str]:
    """The absolute paths of a folder."""
    return {outdir} if is_url(outdir) else {os.path.abspath(outdir), os.path.realpath(outdir)}


def _has_names(path: str) -> bool:
    """Whether a file may have other names: it is a link, or there are several hard links."""
    try:
        found = os.lstat(path)
    except OSError:  # gone, or a profile of a store
        return False
    return stat.S_ISLNK(found.st_mode) or found.st_nlink > 1


def without_collisions(files: Iterable[File], outdir: str, suffix: str) -> Iterator[File]:
    """These files, read once; after the last one the errors of `refuse_collisions`.

    Remembers a hash of each output, 8 bytes: only if two are equal, the files are read again and their paths compared.
    """
    below = tuple(os.path.join(place, "") for place in _places(outdir))
    outputs, folders = Hashes(), set[int]()
    real: dict[str, str] = {}
    is_suspect = False
    for file in files:
        yield file
        folder, _, name = file.name.rpartition("/")
        place = real.get(folder)
        if place is None:
            above = os.path.join(outdir, folder)
            above = folded(above if is_url(outdir) else os.path.realpath(above))
            place = real[folder] = os.path.join(above, "")
            while (key := hash(above)) not in folders:
                folders.add(key)
                above = os.path.dirname(above)
        outputs.add(hash(place + folded(name + suffix)))
        is_suspect = is_suspect or file.path.startswith(below) or _has_names(file.path)
    if is_suspect or outputs.repeated() or outputs.any_of(folders):
        refuse_collisions(files, outdir, suffix)


def with_good_names(files: Iterable[File]) -> Iterator[File]:
    """These files.  Errors: UsageError for a name that no output can have."""
    for file in files:
        if why := invalid_because(file.name):
            raise usage_error("{path}: its output name {why}; {--exclude} skips it", path=file.path, why=why)
        yield file


def refuse_same_names(files: Iterable[File]) -> None:
    """Errors: UsageError."""
    paths: dict[str, str] = {}
    for file in files:
        if (other := paths.setdefault(file.name, file.path)) != file.path:
            raise UsageError(f"{other} and {file.path} would both be named {file.name!r}: pass a folder that has both")


def refreshed(files: Iterable[File]) -> list[File]:
    """The files of a plan in their current state.  URLs are requested side by side."""
    files = [*files]
    if any(is_url(file.path) for file in files):
        from fastprof.core.workers import side_by_side

        states = side_by_side(state, (file.path for file in files), AT_ONCE)
    else:
        states = map(state, (file.path for file in files))
    return [file._replace(size=size, mtime_ns=mtime) for file, (size, mtime) in zip(files, states, strict=True)]
