"""Inputs of any kind, opened: files, pipes, directories, URLs, profiles of stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from fastprof import formats
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.engine import Input, Reader, read_other
from fastprof.core.errors import FastprofError, UsageError, faulty, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import spelled
from fastprof.core.model import Batch, Model
from fastprof.core.options import LENIENT, THREADS, TIME_RANGE, Options, cores_of
from fastprof.core.source import Source
from fastprof.core.streams import Closing
from fastprof.core.thread_names import is_name
from fastprof.core.urls import is_url
from fastprof.formats.archive import MEMBER
from fastprof.inputs.expand import Failed
from fastprof.inputs.reported import REPORTED
from fastprof.inputs.stored import Given, Stored, file_of, in_store, is_archive, may_be_store, shown_input

if TYPE_CHECKING:
    from fastprof.core.prefetch import Prefetch

Progress = Callable[[Any], object]


def pinned(path: Any, lenient: bool, *, keep: bool = True) -> Any:
    """A path that can be reopened: an archive is pinned to its current state, other paths are unchanged.

    With `keep` the archive stays open, so that it can be read even after it is replaced.
    """
    if isinstance(path, Stored) or not isinstance(path, str):
        return path
    store, name = in_store(path) or (path, None)
    if name is None and not is_archive(path):
        return path
    from fastprof.inputs.state import State  # imported for archives only

    with suppress(FastprofError):  # reading reports it
        return State(store, lenient=lenient, keep=keep).input(name)
    return path


def refuse_uncallable(progress: object) -> None:
    """Errors: UsageError for a `progress` that cannot be called."""
    if progress is not None and not callable(progress):
        raise UsageError(f"progress: {progress!r:.80} is not callable")


def open_reader(
    path: Any,
    from_: str | None,
    model: Model,
    options: Options,
    log: Log,
    progress: Progress | None = None,
    ahead: Prefetch | None = None,
) -> Reader:
    """A reader of one input.  The format is recognized unless `from_` names it.  The caller closes `reader.source`.
    `ahead` opens URLs.

    Errors: FastprofError and its subclasses.
    """
    source, options = _opened(path, options, log, ahead)
    try:
        if progress is not None:
            refuse_uncallable(progress)
            progress(source)
        known = MEMBER.format if isinstance(path, Stored) else None  # detection is a tenth of opening a small profile
        return _reader(path, source, from_ or known, model, options, log)
    except BaseException:
        source.close()
        raise


def _opened(path: Any, options: Options, log: Log, ahead: Prefetch | None = None) -> tuple[Source, Options]:
    """The source of an input and the options for its reader, which for STORE:NAME select the profile."""

    if isinstance(path, Given):
        source, own = _opened(path.path, Options(**{**options.given, **path.options}), log)
        return source, options.with_given(**{MEMBER.name: own[MEMBER]}) if MEMBER in own else options
    handler = log.count if options[LENIENT] else None
    at = (path.state.path, path.name) if isinstance(path, Stored) else in_store(path)
    if at is None:
        return Source(path, lost=handler, cores=cores_of(options), ahead=ahead if is_object(path) else None), options
    if at[1] is not None and MEMBER in options:
        raise usage_error(
            "{path}: names a profile of the archive, so {flag} is redundant",
            path=shown_input(path),
            flag=spelled(MEMBER.flag),
        )
    store, name = at
    if isinstance(path, Stored):
        source = path.state.source(path, handler)
        for note in () if path.was_reported or handler else path.state.archive.notes:
            log.warn(REPORTED["store-notes"], path=shown_input(path), note=note)
    else:
        source = Source(store, shown_input(path), lost=handler)
    return source, options if name is None else options.with_given(**{MEMBER.name: name})


def is_file(path: Any) -> bool:
    """Whether the input can be reopened."""
    path = file_of(path)
    if not isinstance(path, str) or path == "-":
        return False
    return os.path.isfile(path) or is_url(path) or in_store(path) is not None


def is_object(path: Any) -> bool:
    """Whether the input is a whole object behind a URL; archives are read by ranges."""
    return is_url(path) and not may_be_store(path) and in_store(path) is None


def _reader(path: Any, source: Source, from_: str | None, model: Model, options: Options, log: Log) -> Reader:
    if isinstance(path, Given):
        from_ = path.from_ or from_
    format_ = formats.get(from_) if from_ else formats.detect(source)
    if source.folder is not None and not format_.claims:
        raise faulty(source.name, f"is a directory, but {format_.name} is a file format")
    if not format_.is_read:
        raise UsageError(f"{source.name}: fastprof writes {format_.name} but does not read it")
    own = format_
    if own.converter:
        from fastprof.inputs.converted import converted, rename

        source, format_ = converted(own, source)
    found: Mapping[str, Any] = {}
    if isinstance(options.given.get(TIME_RANGE.name), str) or any(map(is_name, options.given.get(THREADS.name, ()))):
        from fastprof.inputs.times import resolved

        found = resolved(source, format_, options)
        options = options.with_given(**found)
    if isinstance(path, Given):
        from fastprof.inputs.chosen import Chosen, reading

        chosen = reading(path, format_, options) if path.options else options
        reader: Any = _reader(path.path, source, format_.name, model, chosen, log)
        if path.options:
            reader = Chosen(reader, source, chosen, model, log)
    else:
        reader = format_.reader_class()(source, model, options, log)
    reader.resolved = found
    if own.converter:
        rename(reader, model, own)
    return reader  # type: ignore[no-any-return]


class Inputs(Closing):
    """Several inputs of one conversion, as the plan sees them: `all`.

    Files are inspected, closed, and reopened when their rows are read: any number of them needs one open file
    and the memory of one reader.  A pipe, which cannot be reopened, stays open, and so does a single input.
    With `failed` an unreadable input is skipped as a whole, so each is read to its end before the first row
    of any is passed on.
    Errors: FastprofError and its subclasses.
    """

    def __init__(
        self,
        paths: Sequence[Any],
        from_: str | None,
        model: Model,
        options: Options,
        log: Log,
        progress: Progress | None = None,
        failed: Failed | None = None,
        *,
        alone: bool = True,
    ) -> None:
        """`alone`: the model has no other inputs."""
        self._from, self._model, self._options, self._log = from_, model, options, log
        self._progress, self._failed = progress, failed
        refuse_uncallable(progress)
        self._open: list[Source] = []
        self.all: list[Input] = []
        one = len(paths) == 1 and alone
        urls = [path for path in paths if is_object(path)]
        self._ahead: Prefetch | None = None
        if urls and (failed or not one):
            from fastprof.core.prefetch import Prefetch

            self._ahead = Prefetch(urls)
        try:
            for path in paths:
                try:
                    self.all.append(
                        self._look(path) if (failed or not one) and is_file(path) else self._keep_open(path)
                    )
                except FastprofError as error:
                    self._pass_over(error)
        except BaseException:
            self.close()
            raise

    def _pass_over(self, error: FastprofError) -> None:
        if self._failed is None or isinstance(error, UsageError):
            raise error
        self._failed(error)

    def _keep_open(self, path: Any) -> Reader:
        """Keep the reader of an input open."""
        source, options = _opened(path, self._options, self._log)
        self._open.append(source)
        if self._progress is not None:
            self._progress(source)
        if self._failed:
            if source.folder is None:
                source.spool()
            _read_to_its_end(_reader(path, source, self._from, Model(), options, Log()))
        return _reader(path, source, self._from, self._model, options, self._log)

    def _look(self, path: str) -> Input:
        path = pinned(path, self._options[LENIENT], keep=False)
        # reading repeats its warnings
        reader = open_reader(path, self._from, Model(), self._options, Log(), ahead=self._ahead)
        with reader.source:
            seen = _Closed(self, path, reader)
            if self._failed:
                _read_to_its_end(reader)
            return seen

    def rows(
        self, seen: _Closed, capacity: int | None, *, encoded: bool = False, second: bool = False
    ) -> Iterator[Batch]:
        """The rows of a file that was inspected; with `second` those of its other view."""
        try:
            source, options = _opened(seen.path, self._options, self._log, self._ahead)
            self._open.append(source)
            if source.identity != seen.identity:
                raise faulty(seen.name, "changed while other inputs were read")
        except FastprofError as error:
            self._pass_over(error)
            return
        if self._progress is not None:
            self._progress(source)
        options = options.with_given(**seen.resolved)  # the file was already read
        reader = _reader(seen.path, source, seen.format, self._model, options, self._log)
        if second:
            yield from read_other(reader, capacity)
        else:
            for fact in ("view", "summed", "reads_second_view", "keeps_stacks", "branches"):  # set by the plan
                setattr(reader, fact, getattr(seen, fact))
            yield from reader.rows(capacity, encoded=encoded)
            seen.n_read, seen.advice = reader.n_read, reader.advice
            seen.has_other_rows = seen.reads_second_view and reader.has_other_rows()
        self._open.remove(source)
        source.close()

    def prefers_other_view(self, seen: _Closed) -> bool:
        """Whether only the other view of a file that was inspected has rows."""
        with suppress(FastprofError):  # reading reports it
            reader = open_reader(seen.path, seen.format, Model(), self._options, Log(), ahead=self._ahead)
            with reader.source:
                return reader.prefers_other_view()
        return False

    def close(self) -> None:
        while self._open:
            self._open.pop().close()
        if self._ahead is not None:
            self._ahead.close()
        self.all.clear()  # inputs refer to this object: a reference cycle would keep files of stores open


def _read_to_its_end(reader: Reader) -> None:
    for _ in reader.rows():
        pass


# What is known of an open input before its rows are read.
_FACTS = (
    *("name", "format", "view", "other_view", "addresses", "allocator", "formulas", "distinct", "renews_stacks"),
    *("has_tracks", "labels", "selects", "resolved"),
)


class _Closed(Input):
    """A file that was inspected and is reopened when its rows are read."""

    def __init__(self, inputs: Inputs, path: str, reader: Reader) -> None:
        self._inputs, self.path = inputs, path
        for fact in _FACTS:
            setattr(self, fact, getattr(reader, fact))
        self.identity = reader.source.identity
        self.has_other_rows = False

    def rows(self, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        return self._inputs.rows(self, capacity, encoded=encoded)

    def other_rows(self, capacity: int | None = None) -> Iterator[Batch]:
        return self._inputs.rows(self, capacity, second=True) if self.has_other_rows else iter(())

    def prefers_other_view(self) -> bool:
        return bool(self.other_view) and self._inputs.prefers_other_view(self)
