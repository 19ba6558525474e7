"""Opening inputs, for all verbs."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType

from fastprof import formats
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Input, Reader
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.model import Batch, Model
from fastprof.core.options import LENIENT, Options, cores_of
from fastprof.core.remote import below, is_url
from fastprof.core.report import Report
from fastprof.core.source import Source
from fastprof.core.streams import name_of, standard_stream
from fastprof.formats.archive import MAGIC, MEMBER

if TYPE_CHECKING:
    from fastprof.verbs.store import State

Progress = Callable[[Source], None]
Failed = Callable[[FastprofError], None]  # is told of an input that cannot be read, and raises or returns


class Stored(str):
    """An archive, or STORE:NAME, that stays what it was when it was pinned, whatever is written meanwhile."""

    state: State
    name: str | None = None  # the profile; None: as the options say
    told = False  # what is wrong with the store was reported


def pinned(path: Any, lenient: bool, *, keep: bool = True) -> Any:
    """A path that can be opened again and again: of an archive one that stays what it is now, any other as it is.

    With `keep` the archive stays open, so that it can be read even if another file takes its place.
    """
    if isinstance(path, Stored) or not isinstance(path, str):
        return path
    store, name = in_store(path) or (path, None)
    if name is None and not is_archive(path):
        return path
    from fastprof.verbs.store import State

    with suppress(FastprofError):  # which reading it says
        return State(store, lenient=lenient, keep=keep).input(name)
    return path


def open_reader(
    path: Any, from_: str | None, model: Model, options: Options, report: Report, progress: Progress | None = None
) -> Reader:
    """A reader of one input.  The format is recognized unless `from_` names it.  The caller closes `reader.source`.

    Errors: FastprofError and its subclasses.
    """
    source, options = _opened(path, options, report)
    try:
        if progress is not None:
            progress(source)
        return _reader(source, from_, model, options, report)
    except BaseException:
        source.close()
        raise


def _opened(path: Any, options: Options, report: Report) -> tuple[Source, Options]:
    """The source of an input, and the options for its reader: of STORE:NAME those that choose the profile."""

    def lost(what: str) -> None:
        report.losses.add("input-damage", what)

    handler = lost if options[LENIENT] else None
    at = (path.state.path, path.name) if isinstance(path, Stored) else in_store(path)
    if at is None:
        return Source(path, lost=handler, cores=cores_of(options)), options
    if at[1] is not None and MEMBER in options:
        raise UsageError(f"{path}: names a profile of the archive, and so does {MEMBER.flag}")
    store, name = at
    if isinstance(path, Stored):
        source = path.state.source(path, handler)
        for note in () if path.told or handler else path.state.archive.notes:
            report.warn(f"{path}: {note}")
    else:
        source = Source(store, path, lost=handler)
    return source, options if name is None else options.with_given(**{MEMBER.name: name})


def in_store(path: Any) -> tuple[str, str] | None:
    """STORE and NAME of an input STORE:NAME, a profile of an archive; None of any other input.

    A file that is really called so is what is meant.
    """
    if isinstance(path, Stored):
        return None if path.name is None else (path.state.path, path.name)
    if not isinstance(path, str) or ":" not in path or is_url(path) or os.path.lexists(path):
        return None
    ends = [i for i, c in enumerate(path) if c == ":"]
    return next(((path[:i], path[i + 1 :]) for i in ends if is_archive(path[:i])), None)


def is_archive(path: str) -> bool:
    """Whether a plain file begins as archives do."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # ValueError: a NUL byte
        return False


def is_file(path: Any) -> bool:
    """Whether it is an input that can be opened again and again."""
    if not isinstance(path, str) or path == "-":
        return False
    return os.path.isfile(path) or is_url(path) or in_store(path) is not None


def _reader(source: Source, from_: str | None, model: Model, options: Options, report: Report) -> Reader:
    format_ = formats.get(from_) if from_ else formats.detect(source)
    if source.folder is not None and not format_.claims:
        raise FastprofError(f"{source.name}: is a directory, which {format_.name} cannot be")
    if not format_.reader:
        raise UsageError(f"{source.name}: fastprof writes {format_.name} but does not read it")
    return format_.reader_class()(source, model, options, report)


class Inputs:
    """Several inputs of one conversion, as the plan sees them: `all`.

    Files are looked at, closed, and opened again when their rows are read: any number of them needs one open file
    and the memory of one reader.  A pipe, which cannot be opened again, stays open, and so does an only input.
    With `failed` an input that cannot be read is left out as a whole: so each is read to its end before the first row
    of any is given out.
    Errors: FastprofError and its subclasses.
    """

    def __init__(
        self,
        paths: Sequence[Any],
        from_: str | None,
        model: Model,
        options: Options,
        report: Report,
        progress: Progress | None = None,
        failed: Failed | None = None,
    ) -> None:
        self._from, self._model, self._options, self._report = from_, model, options, report
        self._progress, self._failed = progress, failed
        self._open: list[Source] = []
        self.all: list[Input] = []
        one = len(paths) == 1
        try:
            for path in paths:
                try:
                    self.all.append(self._look(path) if is_file(path) and (failed or not one) else self._stay(path))
                except FastprofError as error:
                    self._pass_over(error)
        except BaseException:
            self.close()
            raise

    def _pass_over(self, error: FastprofError) -> None:
        if self._failed is None or isinstance(error, UsageError):
            raise error
        self._failed(error)

    def _stay(self, path: Any) -> Reader:
        """A reader that stays open."""
        source, options = _opened(path, self._options, self._report)
        self._open.append(source)
        if self._progress is not None:
            self._progress(source)
        if self._failed:
            if source.folder is None:
                source.spool()
            _read_to_its_end(_reader(source, self._from, Model(), options, Report()))
        return _reader(source, self._from, self._model, options, self._report)

    def _look(self, path: str) -> Input:
        path = pinned(path, self._options[LENIENT], keep=False)
        # what it says of itself it says again when it is read
        reader = open_reader(path, self._from, Model(), self._options, Report())
        with reader.source:
            seen = _Closed(self, path, reader)
            if self._failed:
                _read_to_its_end(reader)
            return seen

    def rows(self, seen: _Closed, capacity: int | None, undecoded: bool) -> Iterator[Batch]:
        """The rows of a file that was looked at."""
        try:
            source, options = _opened(seen.path, self._options, self._report)
            self._open.append(source)
            if source.identity != seen.identity:
                raise FastprofError(f"{seen.name}: has changed since it was looked at, while other inputs were read")
        except FastprofError as error:
            self._pass_over(error)
            return
        if self._progress is not None:
            self._progress(source)
        reader = _reader(source, seen.format, self._model, options, self._report)
        yield from reader.rows(capacity, undecoded=undecoded)
        seen.n_read, seen.advice = reader.n_read, reader.advice
        self._open.remove(source)
        source.close()

    def close(self) -> None:
        while self._open:
            self._open.pop().close()
        self.all.clear()  # they know this object: a circle, which would keep files of stores open

    def __enter__(self) -> Inputs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_to_its_end(reader: Reader) -> None:
    for _ in reader.rows():
        pass


class _Closed(Input):
    """A file that was looked at and is opened again when its rows are read."""

    def __init__(self, inputs: Inputs, path: str, reader: Reader) -> None:
        self._inputs, self.path = inputs, path
        self.name, self.format, self.view = reader.name, reader.format, reader.view
        self.addresses, self.formulas, self.selects = reader.addresses, reader.formulas, reader.selects
        self.renews_stacks = reader.renews_stacks
        self.identity = reader.source.identity

    def rows(self, capacity: int | None = None, *, undecoded: bool = False) -> Iterator[Batch]:
        return self._inputs.rows(self, capacity, undecoded)


def names_in(path: str) -> list[str]:
    """The names in a file of names, each ended by a NUL byte, as `find -print0` writes them ("-": standard input)."""
    try:
        with standard_stream(sys.stdin, "<stdin>", "rb") if path == "-" else open(path, "rb") as file:
            data: bytes = file.read()
    except OSError as error:
        raise FastprofError(f"{path}: {error.strerror or error}") from None
    names = [os.fsdecode(name) for name in data.removesuffix(b"\0").split(b"\0")] if data else []
    for number, name in enumerate(names, 1):
        if not name:
            raise FastprofError(f"{path}: name {number} is empty, expected names that each end in a NUL byte")
        if path == "-" and name == "-":
            raise UsageError("standard input (-) can be read only once")
    return names


def expand(
    paths: Iterable[Any], warn: Callable[[str], None], failed: Failed | None = None, *, lenient: bool = False
) -> list[Any]:
    """The inputs, with each directory that is none by itself replaced by those in it and below, sorted by name (numbers
    by value), and so with a URL that ends in a slash.  File objects stay what they are.

    Names in a directory that begin with a dot are ignored, links to directories not followed.  `warn` is told of what
    else in it is no file.  A directory that cannot be read or has no files is an error, or given to `failed`.
    STORE:NAME, a profile of an archive, may have a pattern for names, as a shell has them, and stands for all of these;
    they stay what they are now.  With `lenient` a store without an index is searched for them.
    An empty file NAME is left out if NAME-01 or NAME.1-01 is there: Callgrind leaves it with --separate-threads.
    """
    found: list[Any] = []
    states: dict[str, State] = {}  # of stores: all inputs of one store are of one moment
    objects = set[int]()  # their identities, while `found` holds them
    for path in paths:
        if path == "-" and "-" in found:
            raise UsageError("standard input (-) can be read only once")
        if not isinstance(path, (str, bytes)):
            if id(path) in objects:
                raise UsageError(f"{name_of(path)}: a file object can be read only once")
            objects.add(id(path))
        is_directory = isinstance(path, str) and path != "-" and os.path.isdir(path)
        if (is_directory and not formats.of_directory(path)) or (is_url(path) and path.endswith("/")):
            try:
                found += _files_below(path, warn, failed) if is_directory else _objects_below(path)
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
        else:
            found.append(path)
    if len(found) == 1:
        return found
    # in NAME.1-01 the 1 may be the number of a dump, or belong to the name
    apart = [re.fullmatch(r"(?s)((.*?)(?:\.[0-9]+)?)-[0-9]+", path) for path in found if isinstance(path, str)]
    of_threads = {name for match in apart if match for name in match.groups()}
    return [path for path in found if path not in of_threads or not os.path.isfile(path) or os.path.getsize(path)]


def _profiles(
    store: str, pattern: str, states: dict[str, State], warn: Callable[[str], None], lenient: bool
) -> list[Stored]:
    from fastprof.verbs.store import State  # what archives need is loaded where there is one

    if store not in states:
        states[store] = State(store, lenient=lenient)
        for note in () if lenient else states[store].archive.notes:
            warn(f"{store}: {note}")
    found = states[store].inputs([pattern])
    for profile in found:
        profile.told = True
    return found


def _files_below(directory: str, warn: Callable[[str], None], failed: Failed | None) -> list[str]:
    def unreadable(error: OSError) -> None:
        why = FastprofError(f"{error.filename}: {error.strerror}")
        if failed is None:
            raise why
        failed(why)

    found: list[str] = []
    for folder, folders, names in os.walk(directory, onerror=unreadable):
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=_natural)
        names = sorted((name for name in names if not name.startswith(".")), key=_natural)
        is_file = {name: os.path.isfile(os.path.join(folder, name)) for name in names}
        others = [name for name in names if not is_file[name]]
        others += [name for name in folders if os.path.islink(os.path.join(folder, name))]
        if others:
            warn(f"{folder}: not read, being no files: {', '.join(others)}")
        found += (os.path.join(folder, name) for name in names if is_file[name])
        inputs = {name: None for name in folders if formats.of_directory(os.path.join(folder, name))}
        folders[:] = [name for name in folders if name not in inputs]
        found += (os.path.join(folder, name) for name in inputs)
    if not found:
        raise FastprofError(f"{directory}: a directory without files")
    return found


def _objects_below(url: str) -> list[str]:
    """As `_files_below`; of https and http, which have no lists, the URL itself."""
    objects = below(url)
    if objects is None:
        return [url]
    names = [name.removeprefix(url) for name in objects]
    names = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    return [url + name for name in sorted(names, key=lambda name: [*map(_natural, name.split("/"))])]


def _natural(name: str) -> list[tuple[str, int]]:
    """ "out.10-02" as [("out.", 10), ("-", 2)]."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name)]
