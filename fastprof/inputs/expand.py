"""Expands arguments to a list of inputs: directories, patterns for profiles of a store, files of names."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator

from fastprof import formats
from fastprof.core import lazy_re as re
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import FastprofError, UnrecognizedError, UsageError, errors_of, faulty, file_error
from fastprof.core.log import Log, Warn
from fastprof.core.messages import Message, counted, joined
from fastprof.core.streams import name_of, standard_stream
from fastprof.core.urls import has_listings, is_url, shown
from fastprof.inputs.reported import REPORTED
from fastprof.inputs.stored import Stored, file_of, in_store, may_be_store

if TYPE_CHECKING:
    from fastprof.core.remote import Object
    from fastprof.inputs.state import State

Failed = Callable[[FastprofError], None]  # gets the error of an unreadable input and may raise it


def skipped(error: FastprofError, log: Log) -> None:
    """Count and report an input that is skipped because of `error`."""
    log.count(REPORTED["skipped-inputs"])
    log.warn(REPORTED["unread-inputs"], error=error.message())


def with_advice(error: FastprofError, n: int, keep_going: bool | None) -> FastprofError:
    """The error of one of `n` inputs; for a file of another kind with the option that skips it.

    `keep_going`: that option; None if the verb has none."""
    if n < 2 or keep_going or not isinstance(error, UnrecognizedError):
        return error
    how = "{--keep-going} skips it" if keep_going is not None else "`fastprof merge` skips it with {--keep-going}"
    return UnrecognizedError(joined("; ", [error.message(), Message(how)]))


def names_in(path: str) -> list[str]:
    """The names in a file of NUL-terminated names, as written by `find -print0` ("-": standard input)."""
    with errors_of(path), standard_stream(sys.stdin, "<stdin>", "rb") if path == "-" else open(path, "rb") as file:
        data: bytes = file.read()
    names = [os.fsdecode(name) for name in data.removesuffix(b"\0").split(b"\0")] if data else []
    for number, name in enumerate(names, 1):
        if not name:
            raise faulty(path, f"name {number} is empty, expected NUL-terminated names")
        if path == "-" and name == "-":
            raise UsageError("standard input (-) can be read only once")
    return names


def expand(
    paths: Iterable[Any], warn: Warn, failed: Failed | None = None, *, lenient: bool = False, stores: bool = False
) -> list[Any]:
    """The inputs.  Directories that are not themselves a profile are replaced by the files below them, sorted by name
    (numbers by value), and so are URLs that end in a slash.  File objects are unchanged.

    Names in a directory that begin with a dot are ignored, links to directories not followed.  `warn` gets
    other entries that are not files.  An unreadable or empty directory is an error, or passed to `failed`.
    STORE:NAME, a profile of an archive, may have a shell pattern as its name, which selects all that
    match; they are pinned to their current state.  With `lenient` a store without an index is searched for them.
    With `stores` an archive with several profiles is replaced by these.
    An empty file NAME is skipped if NAME-01 or NAME.1-01 exists: Callgrind leaves it with --separate-threads.
    """
    found: list[Any] = []
    states: dict[str, State] = {}  # by store: all inputs of a store share its state
    objects = set[int]()  # ids of file objects, valid because `found` refers to them
    for path in paths:
        if path == "-" and "-" in found:
            raise UsageError("standard input (-) can be read only once")
        if not isinstance(file := file_of(path), (str, bytes)):
            if id(file) in objects:
                raise UsageError(f"{name_of(path)}: a file object can be read only once")
            objects.add(id(file))
        is_directory = isinstance(path, str) and path != "-" and os.path.isdir(path)
        if (is_directory and not formats.of_directory(path)) or (is_url(path) and path.endswith("/")):
            try:
                found += _files_below(path, warn, failed) if is_directory else _objects_below(path, warn)
            except FastprofError as error:
                if failed is None:
                    raise
                failed(error)
        elif not isinstance(path, Stored) and (at := in_store(path)) is not None:
            try:
                found += _profiles(*at, states, warn, lenient)
            except FastprofError as error:
                if failed is None or isinstance(error, UsageError):
                    raise
                failed(error)
        elif stores and isinstance(path, str) and not isinstance(path, Stored) and may_be_store(path):
            found += _all_profiles(path, states, warn, lenient)
        else:
            found.append(path)
    return found if len(found) == 1 else without_emptied(found)


def without_emptied(found: list[Any]) -> list[Any]:
    """The inputs without files that are empty because Callgrind wrote one for each thread."""
    # the 1 in NAME.1-01 may be the number of a dump or part of the name
    numbered = [path for path in found if type(path) is str and path[-1:].isdigit()]
    per_thread = [re.fullmatch(r"(?s)((.*?)(?:\.[0-9]+)?)-[0-9]+", path) for path in numbered]
    of_threads = {name for match in per_thread if match for name in match.groups()}
    if not of_threads:
        return found
    return [path for path in found if path not in of_threads or not os.path.isfile(path) or os.path.getsize(path)]


def _all_profiles(store: str, states: dict[str, State], warn: Warn, lenient: bool) -> list[Any]:
    """The profiles of an archive, or the archive itself if it has one profile or cannot be read."""
    try:
        found = _profiles(store, None, states, warn, lenient)
    except FastprofError:
        return [store]  # it is reported when it is opened
    return found if len(found) > 1 else [states[store].input(None)]


def _profiles(store: str, pattern: str | None, states: dict[str, State], warn: Warn, lenient: bool) -> list[Stored]:
    from fastprof.inputs.state import State  # loaded for archives only

    if store not in states:
        states[store] = State(store, lenient=lenient)
        several = pattern is not None or states[store].archive.count > 1
        for note in states[store].archive.notes if several and not lenient else ():
            warn(REPORTED["store-notes"], path=shown(store), note=note)
    found = states[store].inputs([] if pattern is None else [pattern])
    for profile in found:
        profile.was_reported = True
    return found


def _files_below(directory: str, warn: Warn, failed: Failed | None) -> list[str]:
    return [path for paths in files_below(directory, warn, failed) for path in paths]


def files_below(directory: str, warn: Warn, failed: Failed | None) -> Iterator[list[str]]:
    """The files in a directory and below, as `expand` has them: a list for each directory.

    Empty files, which killed or forked processes leave, are skipped.
    Errors: FastprofError for an unreadable directory or one that is a recording of another format, if it is not passed
    to `failed`, and if there are no files.
    """
    from fastprof.formats.foreign import known_folder

    def unreadable(error: OSError) -> None:
        why = file_error(str(error.filename), error)
        if failed is None:
            raise why
        failed(why)

    is_empty, n_empty = True, 0
    for folder, folders, names in os.walk(directory, onerror=unreadable):
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=_natural)
        names = sorted((name for name in names if not name.startswith(".")), key=_natural)
        if what := known_folder(names):
            foreign = UnrecognizedError(Message("{file}: this is {what}", file=folder, what=what))
            if failed is None:
                raise foreign
            failed(foreign)
            folders[:], is_empty = [], False
            continue
        is_file = {name: os.path.isfile(os.path.join(folder, name)) for name in names}
        others = [name for name in names if not is_file[name]]
        others += [name for name in folders if os.path.islink(os.path.join(folder, name))]
        if others:
            warn(REPORTED["other-files"], path=folder, names=", ".join(others))
        inputs = {name: None for name in folders if formats.of_directory(os.path.join(folder, name))}
        folders[:] = [name for name in folders if name not in inputs]
        found = without_emptied([os.path.join(folder, name) for name in names if is_file[name]])
        filled = [path for path in found if _has_bytes(path)]
        n_empty += len(found) - len(filled)
        found = filled + [os.path.join(folder, name) for name in inputs]
        is_empty = is_empty and not found
        yield found
    if is_empty:
        raise faulty(directory, "the directory has no files" + " that are not empty" * (n_empty > 0))
    if n_empty:
        warn(REPORTED["empty-files"], path=directory, n=counted(n_empty, "empty file"))


def _has_bytes(path: str) -> bool:
    try:
        if os.path.getsize(path):
            return True
        with open(path, "rb", buffering=0) as file:  # files of /proc have size 0
            return bool(file.read(1))
    except OSError:  # reading it reports that
        return True


def _objects_below(url: str, warn: Warn) -> list[str]:
    """`_files_below` for URLs; https and http have no listing, so the URL itself is returned."""
    if not has_listings(url):
        return [url]
    named = ((found.url.removeprefix(url), found.url) for found in objects_below(url, warn))
    return [found for _, found in sorted(named, key=lambda one: [*map(_natural, one[0].split("/"))])]


def objects_below(url: str, warn: Warn) -> Iterator[Object]:
    """The objects below a URL that has listings, as they are listed, without hidden ones.

    Empty objects are skipped as in directories, the markers of folders without a warning.
    Errors: FastprofError, also if there are none.
    """
    from fastprof.core.remote import below

    n, empty, folders = 0, set[str](), set[str]()
    for found in below(url):
        name = found.url.removeprefix(url)
        if not found.url.startswith(url) or any(part.startswith(".") for part in name.split("/")):
            continue
        folders.add(os.path.dirname(name))
        if found.size:
            n += 1
            yield found
        else:
            empty.add(name)
    empty -= folders
    if not n:
        raise faulty(url, "no objects below this prefix" + " that are not empty" * bool(empty))
    if empty:
        warn(REPORTED["empty-files"], path=url, n=counted(len(empty), "empty object"))


def _natural(name: str) -> list[tuple[str, int]]:
    """Sort key: "out.10-02" becomes [("out.", 10), ("-", 2)]."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name)]
