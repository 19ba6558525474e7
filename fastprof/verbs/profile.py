"""One input as a Python object: its batches, its model, Arrow."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock

from fastprof import plan
from fastprof.bridges import TABLE, TABLES
from fastprof.core._typing import IO, TYPE_CHECKING, Any
from fastprof.core.column import Column, Decoder
from fastprof.core.engine import EVERYTHING, Holds, Scan
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import LENIENT, Options, checked
from fastprof.core.source import Source
from fastprof.inputs import open_reader, pinned
from fastprof.verbs.run import result_of

if TYPE_CHECKING:
    from typing import Unpack

    from fastprof.bridges.rows.as_table import Rows
    from fastprof.verbs.keywords import OpenOptions

# Addresses get names only with `symbols`.
_BATCHES = plan.End("open", holds=Holds(verbatim=True), single=True, code="verbs.profile:pulled")


def table_end(name: str | None, scan: Scan = EVERYTHING.scan) -> plan.End:
    """A table of this name, or the default of a view; of its columns and rows those of `scan`."""
    # symbols change the number of frames, and so the ids of stacks
    names = name != "samples" or scan.functions is not None or any(map(scan.reads, ("function", "stack_id")))
    holds = Holds(table=True, all_tables=True, unmerged=True, scan=scan, names=names)
    return plan.End("table", holds=holds, fixes={TABLE: name}, single=True, code="verbs.profile:pulled")


def pulled(pipelines: Sequence[plan.Pipeline], model: Model, options: Options, log: Log) -> Iterator[Any]:
    """Batches or rows of a table, read on demand."""
    (pipeline,) = pipelines
    return pipeline.rows(model, log)


class _Pass:
    """A pass over the input from its beginning to its end.

    Passes in different threads may alternate, as in a query that joins a profile with itself.  Their models share
    tables, so only one pass reads at a time, and each has its own numbers of parts and inputs.
    """

    def __init__(self, profile: Profile, path: Any, format_: str | None) -> None:
        self._profile = profile
        self.model, self.log = profile._tables.again(), Log()
        self._n_inputs = 0
        self._at: int | None = None  # its position in a file that other passes also read
        with self._turn():
            self.reader = open_reader(path, format_, self.model, profile._options, self.log)
            plan.choose_views(table_end(None), [self.reader])
            if hasattr(path, "read") or path == "-":
                self._at = self.reader.source.tell()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        tables = self.model.c
        with self._profile._lock:
            if self._profile._closed:
                raise UsageError(f"{self._profile.name}: is closed")
            tables.n_inputs = self._n_inputs
            if self._at is not None:
                self.reader.source.go_to(self._at)
            yield
            self._n_inputs = tables.n_inputs
            if self._at is not None:
                self._at = self.reader.source.tell()

    def rows(self, end: plan.End) -> Iterator[Any]:
        """Batches, or rows of a table."""
        options = self._profile._options
        rows = result_of(plan.make([[self.reader]], end, options), self.model, options, self.log)
        while True:
            with self._turn():
                batch = next(rows, None)
            if batch is None:
                break
            yield batch


class _Shown(Model):
    """The model as users see it: access waits while a thread reads, because tables move when they grow."""

    def __init__(self, model: Model, turn: Any) -> None:
        vars(self).update(vars(model))
        self._turn = turn

    def intern(self, text: str | bytes) -> int:
        with self._turn:
            return super().intern(text)

    def _row(self, enter: Any, *columns: int) -> int:
        with self._turn:
            return super()._row(enter, *columns)

    def string(self, string_id: int) -> bytes:
        with self._turn:
            return super().string(string_id)

    def row(self, table: str, row_id: int) -> tuple[int, ...]:
        with self._turn:
            return super().row(table, row_id)


class Profile:
    """An input, read from beginning to end for each iteration over its batches.

    `view` is "timeline", "stacks" or "graph".  `model` resolves the ids in the batches, which are the same each
    time.  `log` is complete when all batches were read.
    An input that cannot be read again, such as a pipe, yields its batches once; the next iteration is a UsageError.

    >>> import fastprof
    >>> with fastprof.open("tests/corpus/callgrind/good/cfi.callgrind") as profile:
    ...     print(profile)
    ...     for batch in profile:
    ...         print(batch["line"].tolist(), batch.values(0).tolist())
    ...         print([profile.function_name(function) for function in batch["function"]])
    <Profile tests/corpus/callgrind/good/cfi.callgrind: callgrind, graph; tables graph>
    [1, 2, 3] [5, 9, 9]
    ['f', 'f', 'g']
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | bytes | IO[bytes],
        *,
        from_: str | None = None,
        **options: Unpack[OpenOptions],
    ) -> None:
        self._lock, self._closed, self.name = RLock(), False, ""
        self._tables = Model()
        self.model: Model = _Shown(self._tables, self._lock)
        self._options = self._checked(options)
        plain = os.fspath(path) if isinstance(path, os.PathLike) and not hasattr(path, "read") else path
        self._path = pinned(plain, self._options[LENIENT])
        self._sources: list[Source] = []
        self._complete = False  # whether `log` and the model's parts are of a completed pass
        self._unread: _Pass | None = None
        self._unread = first = self._begin(from_)
        self._reader = first.reader
        source = first.reader.source
        self.name, self._again, self._identity = source.name, source.again, source.identity
        self.format, self.view = first.reader.format, first.reader.view
        self._show(first)
        try:
            self._refuse_idle()
        except UsageError:
            self.close()
            raise

    def _begin(self, format_: str | None) -> _Pass:
        begun = _Pass(self, self._path, format_)
        self._sources.append(begun.reader.source)
        return begun

    def _checked(self, options: Mapping[str, Any]) -> Options:
        return checked(options, plan.known_options())

    def _refuse_idle(self) -> None:
        """Refuse options that neither batches nor tables use.  Errors: UsageError."""
        plan.checked(table_end(None), [[self._reader]], self._options)

    def _show(self, shown: _Pass) -> None:
        self.log, self.model.parts, self.model.inputs = shown.log, shown.model.parts, shown.model.inputs

    def __iter__(self) -> Iterator[Batch]:
        """The batches; each has separate memory."""
        return self.batches()

    def batches(self, *, reuse: bool = False) -> Iterator[Batch]:
        """The batches from the beginning.  With `reuse` each batch is valid until the next one is requested."""
        rows = self._rows(_BATCHES)
        return rows if reuse else map(Batch.copy, rows)

    def table(self, name: str) -> Table:
        """A table of a timeline ("spans", "events"), of stacks ("samples", "frames") or of a graph ("graph").

        >>> import fastprof, pyarrow
        >>> profile = fastprof.open("tests/corpus/callgrind/good/cfi.callgrind")
        >>> graph = profile.table("graph")
        >>> graph
        <Table graph of tests/corpus/callgrind/good/cfi.callgrind>
        >>> pyarrow.table(graph).select(["kind", "function", "callee", "Ir"]).to_pylist()[1]
        {'kind': 'call', 'function': 'f', 'callee': 'g', 'Ir': 9}

        Errors: UsageError for a table that the profile does not have.
        """
        if name not in self.tables:
            raise UsageError(
                f"{self.name}: a {self.view} profile has no table {name!r:.80}, only {', '.join(self.tables)}"
            )
        return Table(self, name)

    def rows(self, name: str | None = None) -> Iterator[dict[str, Any]]:
        """The rows of a table (docs/tables.md) as dicts, by default of the first of `tables`.  Needs no other package.

        >>> import fastprof
        >>> profile = fastprof.open("tests/corpus/callgrind/good/cfi.callgrind")
        >>> for row in profile.rows():
        ...     print(row["kind"], row["function"], row["line"], row["callee"], row["Ir"])
        cost f 1 None 5
        call f 2 g 9
        cost g 3 None 9

        Missing values are None.  For millions of rows `table` is faster.
        Errors: UsageError for a table that the profile does not have.
        """
        return iter(self.table(name or self.tables[0]))

    def _rows(self, end: plan.End) -> Generator[Any]:
        if self._closed:
            raise UsageError(f"{self.name}: is closed")
        first, self._unread = self._unread, None
        if first is None and not self._again:
            raise UsageError(f"{self.name}: a pipe can be read only once; copy it to a file to read it again")
        return self._read(first, end)

    def _read(self, first: _Pass | None, end: plan.End) -> Generator[Any]:
        begun = first or self._begin(self.format)
        source = begun.reader.source
        try:
            if source.identity != self._identity:
                raise FastprofError(f"{self.name}: changed since it was opened")
            if not self._complete:
                self._show(begun)
            yield from begun.rows(end)
            self._show(begun)
            self._complete = True
        finally:
            self._sources.remove(source)
            source.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The batches as an Arrow stream, from the beginning: ids and numbers.  `table` has names."""
        from fastprof.core import _arrow

        items = ((batch, len(batch), batch.arrow_columns()) for batch in self)
        return _arrow.stream(items, Batch(self.view, 1).arrow_columns())

    def function_name(self, function_id: int) -> str:
        """The name of a function id (columns "function", "callee"); bytes that are not UTF-8 become surrogates."""
        return self.model.get_function(function_id).name.decode("utf-8", "surrogateescape")

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return TABLES[self.view]

    def close(self) -> None:
        """End reading.  A file object given by the caller stays open."""
        with self._lock:
            self._closed = True
            for source in self._sources:
                source.close()
            self._path = None  # this closes the store, which stays open as long as it is an input

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"tables {', '.join(self.tables)}"
        return f"<Profile {self.name}: {self.format}, {self.view}; {state}>"

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Table:
    """Rows of a profile with names, for readers of Arrow streams: DuckDB, Polars, pyarrow, pandas.

    Each stream is a pass over the profile from its beginning.
    """

    def __init__(self, profile: Profile, name: str, scan: Scan = EVERYTHING.scan) -> None:
        self._profile, self.name, self._scan = profile, name, scan
        self.error: BaseException | None = None  # of the last stream, since consumers of streams get only its text
        # DuckDB asks for the schema several times, and the first batch of a small file has all of its rows
        self._schema: tuple[list[Column], dict[bytes, bytes]] | None = None

    def __repr__(self) -> str:
        return f"<Table {self.name} of {self._profile.name}>"

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts: `pandas.DataFrame(table)` needs no pyarrow."""
        decoder = Decoder()
        for rows in self._rows():
            yield from decoder.rows(len(rows), rows.columns)

    def _rows(self) -> Generator[Rows]:
        return self._remembered(self._profile._rows(table_end(self.name, self._scan)))

    def _remembered(self, rows: Iterator[Rows]) -> Generator[Rows]:
        try:
            yield from rows
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            self.error = error
            raise

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        from fastprof.core import _arrow

        batches = self._rows()
        shown: list[Rows] = []

        def items() -> Iterator[tuple[object, int, list[Column]]]:
            for rows in batches:
                shown[:] = [rows]
                yield rows.c, len(rows), rows.columns

        return _arrow.stream(items(), [], lambda: shown[0].metadata if shown else {})

    def __arrow_c_schema__(self) -> object:
        from fastprof.core import _arrow

        if self._schema is None:
            rows = self._rows()
            try:
                first = next(rows)
                self._schema = [column.without_items() for column in first.columns], first.metadata
            finally:
                rows.close()
        return _arrow.schema(*self._schema)


def open(
    path: str | os.PathLike[str] | bytes | IO[bytes],
    *,
    from_: str | None = None,
    **options: Unpack[OpenOptions],
) -> Profile:
    """Open a profile: a path, "-", the bytes themselves, or a binary file object, which stays open.

    `options` are those of docs/options.md that apply to reading.
    Errors: UsageError for a wrong option, FileError (an OSError) for a file that cannot be opened, UnrecognizedError
    when the input is of no known format, FormatError when it is damaged.

    >>> import fastprof
    >>> fastprof.open("tests/corpus/pprof/good/go-heap.pb.gz").view
    'stacks'
    >>> fastprof.open("no such file")
    Traceback (most recent call last):
      ...
    fastprof.core.errors.FileError: no such file: No such file or directory
    """
    return Profile(path, from_=from_, **options)
