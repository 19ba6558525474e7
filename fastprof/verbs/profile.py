"""One input as a Python object: its batches, its model, Arrow."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import index
from threading import RLock

from fastprof import plan
from fastprof.bridges import TABLE, TABLES
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack
from fastprof.core.arrow_column import ArrowColumn, Decoder
from fastprof.core.c_memory import owned
from fastprof.core.engine import EVERYTHING, Capabilities, Scan
from fastprof.core.errors import UnknownId, UsageError, faulty
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, ValueType
from fastprof.core.options import LENIENT, Options, checked
from fastprof.core.source import Source
from fastprof.core.streams import Closing
from fastprof.core.unknown_names import known, text_of
from fastprof.inputs import open_reader, pinned
from fastprof.inputs.chosen import ROWS, below, steps_named
from fastprof.inputs.stored import Given
from fastprof.verbs.run import path_of, result_of

if TYPE_CHECKING:
    from fastprof.bridges.rows.as_table import Rows
    from fastprof.verbs.keywords import (
        ConvertOptions,
        Input,
        OpenOptions,
        Output,
        Progress,
        ReadFormat,
        ReportOptions,
        SqlOptions,
        TableName,
        TopOptions,
        WrittenFormat,
    )
    from fastprof.verbs.report import Page
    from fastprof.verbs.sql import Answer
    from fastprof.verbs.top import Top


def table_end(name: str | None, scan: Scan = EVERYTHING.scan) -> plan.End:
    """A table of this name, or the default of a view; of its columns and rows those of `scan`."""
    # symbols change the number of frames, and so the ids of stacks
    names = name != "samples" or scan.functions is not None or any(map(scan.reads, ("function", "stack_id")))
    keeps = name != "samples" or scan.reads("stack_id")  # ids of stacks are those of the model
    holds = Capabilities(table=True, all_tables=True, unmerged=True, scan=scan, names=names, keeps_stacks=keeps)
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
            self.reader = open_reader(path, format_, self.model, profile._options, self.log, profile._progress)
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

    def string(self, string_id: int) -> bytes:
        with self._turn:
            return super().string(string_id)

    def row(self, table: str, row_id: int) -> tuple[int, ...]:
        with self._turn:
            return super().row(table, row_id)


class Frame(NamedTuple):
    """A frame of a stack; what is unknown is "" or 0.  Inlined functions have frames of their own."""

    name: str
    file: str = ""
    line: int = 0
    object: str = ""
    address: int = 0


class Profile(Closing):
    """A profile: an input of every function of this module, and its rows, which are read for each iteration.

    `view` is "timeline", "stacks" or "graph".  `function_name` and `stack` resolve the ids in the batches, which are
    the same each time.  `log` is complete when all batches were read.
    An input that cannot be read again, such as a pipe, yields its batches once; the next iteration is a UsageError.
    `where`, `rename`, `hide`, `collapse` and `labelled` return another Profile; nothing is read until it is used.

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
        path: Input | Given,
        *,
        from_: ReadFormat | None = None,
        progress: Progress | None = None,
        steps: Collection[str] = (),
        **options: Unpack[OpenOptions],
    ) -> None:
        """`steps`: the options that come from `where` and other steps."""
        self._steps = steps
        self._lock, self._closed, self.name = RLock(), False, ""
        self._tables = Model()
        self._tables.names_file = None
        self._model: Model = _Shown(self._tables, self._lock)
        self._from, self._options, self._progress = from_, self._checked(options), progress
        self._path = pinned(path if isinstance(path, Given) else path_of(path), self._options[LENIENT])
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
        self.log, self._model.parts, self._model.inputs = shown.log, shown.model.parts, shown.model.inputs

    def __iter__(self) -> Iterator[Batch]:
        """The batches; each has separate memory."""
        return self.batches()

    def batches(self, *, reuse: bool = False) -> Iterator[Batch]:
        """The batches from the beginning.  With `reuse` each batch is valid until the next one is requested."""
        rows = self._rows(ROWS)
        return rows if reuse else map(Batch.copy, rows)

    def table(self, name: TableName) -> Table:
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

    def rows(self, name: TableName | None = None) -> Iterator[dict[str, Any]]:
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
                raise faulty(self.name, "changed since it was opened")
            if not self._complete:
                self._show(begun)
            with steps_named(self._steps):
                yield from begun.rows(end)
            self._show(begun)
            self._complete = True
        finally:
            self._sources.remove(source)
            source.close()
            begun.reader.forget()  # the profile keeps its first one

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The batches as an Arrow stream, from the beginning: ids and numbers.  `table` has names."""
        from fastprof.core import _arrow

        items = ((batch, len(batch), batch.arrow_columns()) for batch in self)
        return _arrow.stream(items, Batch(self.view, 1).arrow_columns())

    def function_name(self, function_id: int) -> str:
        """The name of a function id (columns "function", "callee"); bytes that are not UTF-8 become surrogates."""
        function_id = self._id("functions", function_id)
        return self._model.get_function(function_id).name.decode("utf-8", "surrogateescape")

    def stack(self, stack_id: int) -> tuple[Frame, ...]:
        """The frames of a stack, outermost first, by its id in the column "stack" of a batch or "stack_id" of a table.

        >>> import fastprof
        >>> profile = fastprof.open("tests/corpus/pprof/good/go-cpulabels.pb.gz")
        >>> [frame.name for frame in profile.stack(next(profile.rows())["stack_id"])][-2:]
        ['main.job', 'strings.ToUpper']

        Errors: UsageError, also an IndexError, for an id of which no row has been read yet.
        """
        model, frames, stack_id = self._model, list[Frame](), self._id("stacks", stack_id)
        while stack_id:
            stack_id, number = model.row("stacks", stack_id)
            mapping, low, high, _, lines = model.row("frames", number)
            address = low | high << 32
            object_ = known(model.string(model.row("objects", model.row("mappings", mapping)[0])[0])) if mapping else ""
            if not lines:
                frames.append(Frame(self._address_name(number), "", 0, object_, address))
            while lines:
                function, line, _, lines = model.row("lines", lines)
                f = model.get_function(function)
                frames.append(Frame(text_of(f.name), known(f.file), line, object_ or known(f.object), address))
        return (*reversed(frames),)

    def _id(self, table: str, given: Any) -> int:
        try:
            number, n = index(given), self._model.count(table)
        except TypeError:
            raise UsageError(f"{self.name}: an id is {given!r:.80}, expected an integer") from None
        if not 0 <= number < n:
            raise UnknownId(f"{self.name}: the id {number} is not one of the {n:,} {table} of rows read so far")
        return number

    def _address_name(self, frame: int) -> str:
        scratch = owned(ffi.new("struct fp_buf *"), "a name")
        with self._lock:
            return text_of(self._tables.string(lib.fp_frame_name(self._tables.c, frame, scratch)))

    @property
    def value_types(self) -> tuple[ValueType, ...]:
        """The names and units of its values.  If no batch has been read yet, one is; a timeline has none.

        >>> import fastprof
        >>> [value.name for value in fastprof.open("tests/corpus/pprof/good/go-cpulabels.pb.gz").value_types]
        ['samples', 'cpu']
        """
        if not any(part.value_types for part in self._model.parts) and self.view != "timeline":
            if not self._again:
                raise UsageError(f"{self.name}: a pipe has value types once a batch was read")
            rows = self._rows(ROWS)
            next(rows, None)
            rows.close()
        found = (value for part in self._model.parts for value in part.value_types)
        return () if self.view == "timeline" else (*dict.fromkeys(found),)

    # ---- other profiles made of it, and what the functions of the module make of it

    def as_input(self) -> Any:
        """What stands for it among the inputs of a function."""
        if self._closed:
            raise UsageError(f"{self.name}: is closed")
        if not self._again:
            raise UsageError(f"{self.name}: a pipe can be read only once; give it to the function itself")
        given = self._given()
        return given.path if given.is_plain else given

    def _given(self) -> Given:
        return Given(self._path, self._from, self._options.given, self.name, self._steps)

    def _with(self, **options: Any) -> Profile:
        """With these options, of which None is none."""
        self.as_input()
        options = {name: value for name, value in options.items() if value is not None}
        given, how = self._given(), dict[str, Any](progress=self._progress)
        with steps_named({*self._steps, *options}):
            both = below(given, self._checked(options).given)
            if both is None:  # applies to the rows that these options leave
                return Profile(given, steps=options.keys(), **how, **options)
            return Profile(both.path, from_=both.from_, steps=both.steps, **how, **both.options)  # type: ignore[arg-type]

    def where(
        self,
        *,
        function: str | re.Pattern[str] | None = None,
        object: str | re.Pattern[str] | None = None,
        threads: int | str | Collection[int | str] | None = None,
        labels: Mapping[str, Any] | None = None,
        time: Sequence[int] | str | None = None,
        part: int | None = None,
    ) -> Profile:
        """The rows that meet all conditions: functions and objects that match, ids or names of threads, values of
        labels (a list: any of them), a range of times such as "10%:20%", a part.  docs/filters.md has the details.

        >>> import fastprof
        >>> profile = fastprof.open("tests/corpus/pprof/good/go-cpulabels.pb.gz")
        >>> profile.where(labels={"kind": "text"}, function="job").top(n=1).total
        150000000
        """
        return self._with(function=function, object=object, threads=threads, label=labels, time_range=time, part=part)

    def rename(
        self,
        pattern: str | re.Pattern[str],
        new: str = "",
        *,
        of: Literal["function", "file", "object"] = "function",
    ) -> Profile:
        r"""With every match of a regular expression in the names of functions replaced, or of files or objects.

        `new` may refer to groups: \1, \g<name>.

        >>> import fastprof
        >>> profile = fastprof.open("tests/corpus/pprof/good/go-cpulabels.pb.gz").rename(r"^main\.", "app.")
        >>> [row.name for row in profile.top(focus="job").rows]
        ['app.job']
        """
        if not isinstance(pattern, (str, re.Pattern)) or not isinstance(getattr(pattern, "pattern", ""), str):
            raise UsageError(f"pattern: {pattern!r:.80} is not a string or a pattern of strings")
        if not isinstance(new, str):
            raise UsageError(f"new: {new!r:.80} is not a string")
        flags = "g" + "i" * bool(isinstance(pattern, re.Pattern) and pattern.flags & re.IGNORECASE)
        old = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
        old, new = (
            re.sub(r"(?s)\\.|/", lambda one: one[0].replace("/", "\\/", len(one[0]) == 1), text)
            for text in (old, new.replace("$", r"\$"))
        )
        option = {"function": "mod_funcname", "file": "mod_filename", "object": "mod_object"}
        if of not in option:
            raise UsageError(f"of: {of!r:.80} is not one of {', '.join(option)}")
        return self._with(**{option[of]: [f"s/{old}/{new}/{flags}"]})

    def hide(
        self,
        function: str | re.Pattern[str] | None = None,
        *,
        object: str | re.Pattern[str] | None = None,
    ) -> Profile:
        """Without the functions whose name or object matches; their cost is their callers'.

        >>> import fastprof
        >>> profile = fastprof.open("tests/corpus/callgrind/good/cfi.callgrind").hide("^g$")
        >>> [(row.name, row.self) for row in profile.top().rows]
        [('f', 14)]
        """
        return self._with(hide=function, hide_object=object)

    def collapse(self, object: str | re.Pattern[str] | None = None, *, recursion: bool = False) -> Profile:
        """With adjacent frames of an object that matches as one frame; with `recursion`, also those of a function.

        >>> import fastprof
        >>> profile = fastprof.open("tests/corpus/folded/good/recursion.folded").collapse(recursion=True)
        >>> [frame.name for frame in profile.stack(next(profile.rows())["stack_id"])]
        ['r']
        """
        return self._with(collapse_object=object, collapse_recursion=recursion or None)

    def below(self, function: str | re.Pattern[str] | None = None, *, path: str | None = None) -> Profile:
        """What is below functions that match, or below one path of names, which become roots; other rows are left out.

        >>> import fastprof
        >>> profile = fastprof.open("tests/corpus/pprof/good/go-cpulabels.pb.gz").below("^main.job$")
        >>> [frame.name for frame in profile.stack(next(profile.rows())["stack_id"])][0]
        'main.job'
        """
        return self._with(root_at=function, subtree=path)

    def labelled(self, labels: Mapping[str, Any] | None = None, /, **more: Any) -> Profile:
        """With these labels in all its samples.

        >>> import fastprof
        >>> profile = fastprof.open("tests/corpus/pprof/good/go-cpulabels.pb.gz").labelled(host="a")
        >>> [row.name for row in fastprof.top(profile, by="label:host").rows]
        ['a']
        """
        if labels is not None and not isinstance(labels, Mapping):
            raise UsageError(f"labels: {labels!r:.80} is not a dict")
        return self._with(set_label={**(labels or {}), **more})

    def top(self, **options: Unpack[TopOptions]) -> Top:
        """`fastprof.top` of it."""
        from fastprof.verbs.top import top

        return top(self, progress=self._progress, **options)

    def page(self, **options: Unpack[ReportOptions]) -> Page:
        """`fastprof.report` of it, as a value: a notebook shows it, `html` is its text."""
        from fastprof.verbs.report import report

        return report(self, progress=self._progress, **options)

    def sql(self, query: str, **options: Unpack[SqlOptions]) -> Answer:
        """`fastprof.sql` of it."""
        from fastprof.verbs.sql import sql

        return sql(self, query, progress=self._progress, **options)

    def convert(self, output: Output, *, to: WrittenFormat | None = None, **options: Unpack[ConvertOptions]) -> Log:
        """`fastprof.convert` of it to `output`."""
        from fastprof.verbs.convert import convert

        return convert(self, output, to=to, progress=self._progress, **options)

    @property
    def tables(self) -> tuple[TableName, ...]:
        """The names of its tables."""
        return TABLES[self.view]  # type: ignore[return-value]

    def __del__(self) -> None:
        if hasattr(self, "_sources"):
            self.close()

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


class Table:
    """Rows of a profile with names, for readers of Arrow streams: DuckDB, Polars, pyarrow, pandas.

    Each stream is a pass over the profile from its beginning.
    """

    def __init__(self, profile: Profile, name: str, scan: Scan = EVERYTHING.scan) -> None:
        self._profile, self.name, self._scan = profile, name, scan
        self.error: BaseException | None = None  # of the last stream, since consumers of streams get only its text
        # DuckDB asks for the schema several times, and the first batch of a small file has all of its rows
        self._schema: tuple[list[ArrowColumn], dict[bytes, bytes]] | None = None

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

        def items() -> Iterator[tuple[object, int, list[ArrowColumn]]]:
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
    path: Input,
    *,
    from_: ReadFormat | None = None,
    progress: Progress | None = None,
    **options: Unpack[OpenOptions],
) -> Profile:
    """Open a profile: a path, a URL, "-", bytes, or a binary file object, which stays open.

    `from_` names its format, which is recognized otherwise.  `progress` is called with each fastprof.Source that is
    opened: see docs/python.md.  The other arguments are listed below.
    Errors: UsageError for a wrong argument, FileError (an OSError) for a file that cannot be opened, UnrecognizedError
    when the input is of no known format, FormatError when it is damaged.

    >>> import fastprof
    >>> fastprof.open("tests/corpus/pprof/good/go-heap.pb.gz").view
    'stacks'
    >>> fastprof.open("no such file")
    Traceback (most recent call last):
      ...
    fastprof.core.errors.FileError: no such file: No such file or directory
    """
    return Profile(path, from_=from_, progress=progress, **options)
