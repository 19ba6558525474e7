"""Profiles of one's own data: rows of Python, columns, Arrow's tables, and what a tracer records.

What is made is written as an archive on the way, in memory up to 64 MiB, then into an unnamed temporary file, so a
profile that was made is an input like any other, and takes 2 to 3 bytes an event (inputs/made.py).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from itertools import chain, islice
from operator import index
from time import perf_counter_ns

from fastprof.core._c import lib
from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.c_memory import address_of
from fastprof.core.model import MAX_VALUE_TYPES, Batch, Part, ValueType, empty
from fastprof.formats.arrow import tables
from fastprof.formats.arrow._columns import Stream
from fastprof.formats.arrow._tables import Threads
from fastprof.formats.plugins import Plugin as Plugin
from fastprof.inputs.made import ARCHIVE, Made
from fastprof.verbs._makers import CallRows, Calls, Kept, RowError, StackRows
from fastprof.verbs.profile import Profile

if TYPE_CHECKING:
    from typing import Literal, Protocol

    class ArrowStream(Protocol):
        def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

    class Lazy(Protocol):
        def collect(self) -> Any: ...

    Name = str | bytes
    FrameLike = Name | tuple[Any, ...]
    Values = Sequence[tuple[str, str] | str]
    Table = ArrowStream | Lazy | Mapping[str, Any] | Iterable[Any]

_ROWS = 1 << 16  # of a chunk
_HERE = object()  # the thread that runs


def _profile(made: Made) -> Profile:
    return Profile(made.content(), from_=ARCHIVE)


def _of_rows(
    view: str, part: Part, made: Made, of: StackRows | CallRows, rows: Any, last: Callable[[], None]
) -> Profile:
    """The profile of rows of Python; `last` is called after these."""
    if not hasattr(rows, "__iter__") and not hasattr(rows, "__getitem__"):
        raise made.fail(f"rows is {rows!r:.80}, expected an iterable of rows")
    made.model.add_part(part)
    batch, items, more = made.batch(view, len(part.value_types)), _then(rows, last), True
    while more:
        try:
            more = of.fill(address_of(batch.c), items)
        except RowError as error:
            raise made.fail(f"row {of.n_rows:,}: {error}") from None
        made.put(batch)
        empty(batch)
    return _profile(made)


def _name_threads(made: Made, found: Threads) -> None:
    made.model.names.put(made.model.parts[0], made.input, found.processes, found.threads, found.ids)


def _listed(given: Any, wrong: Exception) -> list[Any]:
    """The items of a list or of what is like one.  Errors: `wrong` for a text, a set, a dict or no iterable."""
    if isinstance(given, (str, bytes, Mapping, Set)) or not hasattr(given, "__iter__"):
        raise wrong
    return [*given]


def _value_types(values: Values, fail: tables.Fail) -> list[ValueType]:
    wrong = fail(f"values is {values!r:.80}, which is no list of names or (name, unit)")
    given = [[one] if isinstance(one, str) else _listed(one, wrong) for one in _listed(values, wrong)]
    if not all(1 <= len(one) <= len(ValueType._fields) for one in given):
        raise wrong
    found = [ValueType(*one) for one in given]
    if not 1 <= len(found) <= MAX_VALUE_TYPES:
        raise fail(f"values has {len(found)} value types, expected 1 to {MAX_VALUE_TYPES}")
    if any(not isinstance(text, str) for one in found for text in one):
        raise wrong
    if len({one.name for one in found}) < len(found):
        raise fail("two value types have the same name")
    return found


def from_stacks(
    rows: Iterable[Sequence[Any]],
    *,
    values: Values = (("samples", "count"),),
    leaf_first: bool = False,
    labels: Sequence[str] = (),
) -> Profile:
    """A profile of samples: rows (stack, value), or (stack, values) with a value for each of `values`.

    A stack is a sequence of frames, the outermost first: names, (name, file, line) or `Frame`.  `values` are names of
    value types, or (name, unit).  `labels` names further items of each row, texts or integers or None: labels of the
    sample, or its "thread", "process" (numbers or names) or "time" (nanoseconds).
    Errors: UsageError, with the number of the row; exceptions of `rows` pass through.

    >>> import fastprof
    >>> made = fastprof.from_stacks([(["main", "work"], 12), (["main"], 3)], values=[("cpu", "nanoseconds")])
    >>> [(row["function"], row["cpu"]) for row in made.rows("samples")]
    [('work', 12), ('main', 3)]
    """
    made = Made("from_stacks")
    part = Part(value_types=_value_types(values, made.fail))
    wrong = made.fail("labels is no list of different names")
    keys = _listed(labels, wrong)
    if not all(isinstance(key, str) for key in keys) or len({*keys}) < len(keys):
        raise wrong
    threads = Threads(address_of(made.model.c), made.input)
    kinds = tuple(key if key in ("time", "thread", "process") else made.model.intern(key) for key in keys)
    of = StackRows(address_of(made.model.c), len(part.value_types), kinds, leaf_first, threads.named)
    return _of_rows("stacks", part, made, of, rows, lambda: _name_threads(made, threads))


def _then(rows: Iterable[Any], last: Callable[[], None]) -> Iterator[Any]:
    yield from rows
    last()


def from_calls(rows: Iterable[Sequence[Any]], *, values: Values = (("samples", "count"),)) -> Profile:
    """A profile of self costs and calls: rows (function, value) and (caller, callee, calls, value).

    The value of a call is its inclusive cost.  Functions are names, (name, file, line) or `Frame`: a line is that of
    the cost, or of the call within the caller.  `calls` is their number, or None if they were not counted.  With
    several `values` each row has a sequence of them.
    Errors: UsageError, with the number of the row; exceptions of `rows` pass through.

    >>> import fastprof
    >>> made = fastprof.from_calls([("main", 3), ("work", 12), ("main", "work", 1, 12)], values=["Ir"])
    >>> [(row["kind"], row["function"], row["callee"], row["calls"], row["Ir"]) for row in made.rows()]
    [('cost', 'main', None, None, 3), ('cost', 'work', None, None, 12), ('call', 'main', 'work', 1, 12)]
    """
    made = Made("from_calls")
    part = Part(value_types=_value_types(values, made.fail))
    of = CallRows(address_of(made.model.c), len(part.value_types))
    return _of_rows("graph", part, made, of, rows, lambda: None)


_SPAN_ITEMS = ("name", "start", "end", "thread", "process", "category")


def from_spans(spans: Table, *, unit: Literal["ns", "us", "ms", "s"] = "ns") -> Profile:
    """A profile of calls with a beginning and an end, in any order: a timeline.

    `spans` is a data frame or any other Arrow stream, a dict of columns, or rows: dicts, or (name, start, end, thread,
    process, category) without some of the last ones.  Columns: name, start, end or dur, and thread, process (numbers or
    names), category, object, depth.  `unit` is that of times that are plain numbers.
    Errors: UsageError, with the column and the number of the row; exceptions of the data pass through.

    >>> import fastprof
    >>> made = fastprof.from_spans([("main", 0, 30, "ui"), ("draw", 10, 20, "ui")], unit="ms")
    >>> [(row["function"], row["ts"], row["self"], row["depth"]) for row in made.rows("spans")]
    [('draw', 10000000, 10000000, 1), ('main', 0, 20000000, 0)]
    """
    made = Made("from_spans")
    if unit not in tables.UNITS:
        raise made.fail(f"unit is {unit!r:.40}, expected ns, us, ms or s")
    return _of_spans(made, spans, tables.UNITS[unit])


def _of_spans(made: Made, spans: Table, scale: int) -> Profile:
    names, chunks, units, clock = _columns(spans, made.fail, _SPAN_ITEMS)
    of = tables.layout("spans", names, made.fail, units, scale)
    made.put_columns(of, chunks, clock=0 if clock == "ticks" else 10**9)
    return _profile(made)


def from_tables(
    *,
    samples: Table | None = None,
    frames: Table | None = None,
    spans: Table | None = None,
    graph: Table | None = None,
    units: Mapping[str, str] | None = None,
) -> Profile:
    """A profile of tables as `Profile.table` gives them (docs/tables.md): `samples` and `frames`, `spans`, or `graph`.

    A table is a data frame or any other Arrow stream, or a dict of columns.  Of samples without `frames` each stack is
    its innermost function.  `units` are those of value types, as most data frames do not keep them.
    Errors: UsageError, with the column and the number of the row.

    >>> import fastprof, polars
    >>> with fastprof.open("tests/corpus/callgrind/good/cfi.callgrind") as profile:
    ...     graph = polars.DataFrame(profile.table("graph")).filter(polars.col("kind") == "cost")
    >>> [row["function"] for row in fastprof.from_tables(graph=graph).rows()]
    ['f', 'g']
    """
    made = Made("from_tables")
    given = {"samples": samples, "spans": spans, "graph": graph}
    there = [name for name, table in given.items() if table is not None]
    if len(there) != 1 or (frames is not None and samples is None):
        raise made.fail("expected samples and frames, spans, or graph")
    if spans is not None:
        return _of_spans(made, spans, 1)
    both = None
    if frames is not None:
        names, chunks, _, _ = _columns(frames, made.fail)
        both = tables.layout("frames", names, made.fail), [*chunks]  # a database may have one result at a time
    names, chunks, found, _ = _columns(given[there[0]], made.fail)
    of = tables.layout(there[0], names, made.fail, {**found, **(units or {})})
    if lack := {*(units or {})} - {name for name, _ in of.values}:
        raise made.fail(f"units has {min(lack)!r:.80}, which is no value type")
    made.put_columns(of, chunks, both)
    return _profile(made)


def _columns(table: Any, fail: tables.Fail, items: Sequence[str] = ()) -> tables.Columns:
    """The names of a table's columns, its chunks, and what Arrow's metadata have: units of columns, and the clock.

    `items`: names of the items of rows that are tuples."""
    if hasattr(table, "__arrow_c_stream__"):
        try:
            capsule = table.__arrow_c_stream__()
        except ImportError:  # pandas without pyarrow
            capsule = None
        if capsule is not None:
            with tables.failing(fail, ""):
                return tables.of_stream(Stream(capsule), fail)
    if hasattr(table, "collect"):  # a frame that is lazy
        return _columns(table.collect(), fail, items)
    if isinstance(table, Mapping) or (hasattr(table, "columns") and hasattr(table, "__getitem__")):
        names = [*(table if isinstance(table, Mapping) else table.columns)]
        if any(not isinstance(name, str) for name in names):
            raise fail("a name of a column is no text")
        return names, [{name: table[name] for name in names}], {}, ""
    if isinstance(table, (str, bytes)) or not hasattr(table, "__iter__"):
        raise fail(f"is {type(table).__name__}, expected a data frame, columns or rows")
    rows = iter(table)
    first = next(rows, None)
    if first is None:
        return [*items[:3]], [], {}, ""
    names = [*first] if isinstance(first, Mapping) else [*items[: _length(first)]]
    if not isinstance(first, Mapping) and _length(first) > len(items):
        raise fail(f"row 0: has {len(first)} items, expected {', '.join(items) or 'a dict'}")
    return names, _by_column(names, chain([first], rows), fail), {}, ""


def _length(row: Any) -> int:
    """The number of items of a row; 0 if it has none."""
    return len(row) if hasattr(row, "__len__") else 0


def _by_column(names: list[str], rows: Iterator[Any], fail: tables.Fail) -> Iterator[tables.Chunk]:
    base = 0
    while some := [*islice(rows, _ROWS)]:
        for i, row in enumerate(some):
            if row.keys() != {*names} if isinstance(row, Mapping) else _length(row) != len(names):
                raise fail(f"row {base + i:,}: has not the items {', '.join(names)}")
        yield {
            name: [row[name] if isinstance(row, Mapping) else row[k] for row in some] for k, name in enumerate(names)
        }
        base += len(some)


class Recorder:
    """Records the calls, or the samples, of a program that runs: for tracers.

    Each thread of the program is one of the profile, or `thread` names another one, such as a task.  Times are those
    of `clock`, in nanoseconds.  Safe to use from several threads; what is recorded is written on the way, so memory
    does not grow with it.  A recorder has calls (`enter`, `exit`, `span`) or samples (`sample`), not both.
    Errors: UsageError; FastprofError if the temporary file cannot be written.

    >>> import fastprof
    >>> recorder = fastprof.Recorder()
    >>> with recorder.span("main"):
    ...     recorder.enter(("work", "work.py", 7))
    ...     recorder.exit()
    >>> [(row["function"], row["depth"]) for row in recorder.profile().rows("spans")]
    [('work', 1), ('main', 0)]
    """

    def __init__(
        self,
        *,
        values: Values = (("samples", "count"),),
        leaf_first: bool = False,
        clock: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self._lock, self._clock, self._busy = threading.RLock(), clock, False
        self._made, self._leaf_first = Made("Recorder"), leaf_first
        self._part = Part(value_types=_value_types(values, self._made.fail), extra={"ticks_per_second": 10**9})
        c = address_of(self._made.model.c)
        self._kept = [Kept(self._made)]
        self._threads = Threads(c, self._made.input)
        self._calls = Calls(c)
        kinds = "time", "thread"
        self._samples = StackRows(
            c, len(self._part.value_types), kinds, leaf_first, lambda _, key: self._thread(key)[0]
        )
        # The id of a thread and the functions of its open calls: of the thread that runs (a later one may get the
        # number of one that has ended), and by name or number.
        self._here, self._others = threading.local(), dict[str | int, tuple[int, list[int]]]()
        self._late: list[tuple[Any, ...]] = []  # recorded while a batch is written, by what that runs
        self._batch: Batch | None = None
        self._view, self._address = "", 0  # of the batch, while there is one and nothing has failed
        self._failed: BaseException | None = None

    def enter(self, frame: FrameLike, *, time: int | None = None, thread: str | int | None = None) -> None:
        """A call begins, now or at `time`."""
        with self._lock:
            id, functions = self._thread(thread)
            functions.append(self._function(frame))
            self._put(lib.FP_OP_ENTER, functions[-1], id, self._clock() if time is None else time)

    def exit(self, *, time: int | None = None, thread: str | int | None = None) -> None:
        """The innermost open call of the thread ends.  Without one, as in a tracer that began within a call, nothing is
        recorded."""
        with self._lock:
            id, functions = self._thread(thread)
            if functions:
                self._put(lib.FP_OP_EXIT, functions.pop(), id, self._clock() if time is None else time)

    @contextmanager
    def span(self, frame: FrameLike, *, thread: str | int | None = None) -> Iterator[None]:
        """A call that lasts as long as the `with` block."""
        self.enter(frame, thread=thread)
        try:
            yield
        finally:
            self.exit(thread=thread)

    def sample(
        self, stack: Iterable[FrameLike], value: Any = 1, *, time: int | None = None, thread: str | int | None = None
    ) -> None:
        """A sample of a stack, as in a row of `from_stacks`."""
        with self._lock:
            row = stack, value, self._clock() if time is None else time, _HERE if thread is None else thread
            if self._busy:
                self._late.append(row)
                return
            if self._view != "stacks":
                self._to("stacks")
            try:
                is_full = self._samples.sample(self._address, row)
            except RowError as error:
                raise self._made.fail(str(error)) from None
            if is_full:
                self._flush()

    def profile(self) -> Profile:
        """End recording; calls that are open end with their thread's last event.  Returns what was recorded."""
        with self._lock:
            self._to(self._batch.view if self._batch else "timeline")
            self._flush()
            _name_threads(self._made, self._threads)
            self._failed, self._view = self._made.fail("the recording has ended"), ""
            return _profile(self._made)

    def _thread(self, thread: Any) -> tuple[int, list[int]]:
        found: tuple[int, list[int]] | None
        if thread is None or thread is _HERE:
            found = getattr(self._here, "found", None)
            if found is None:
                name = threading.current_thread().name
                found = self._here.found = self._threads.named(os.getpid(), threading.get_native_id(), name), []
            return found
        try:
            # an object of a subclass could run anything when it is freed
            thread = str.__str__(thread) if isinstance(thread, str) else index(thread)
        except TypeError:
            raise self._made.fail(f"thread is {thread!r:.80}, expected a number or a text") from None
        found = self._others.get(thread)
        if found is None:
            found = self._others[thread] = self._threads.named(os.getpid(), thread), []
        return found

    def _function(self, frame: FrameLike) -> int:
        try:
            return self._calls.function_of(frame)
        except RowError as error:
            raise self._made.fail(str(error)) from None

    def _put(self, op: int, function: int, thread: int, time: int) -> None:
        if self._busy:
            self._late.append((op, function, thread, time))
            return
        if self._view != "timeline":
            self._to("timeline")
        if self._calls.put(self._address, op, function, thread, time):
            self._flush()

    def _to(self, view: str) -> Batch:
        if self._failed is not None:
            raise self._failed
        if self._batch is None:
            if view == "timeline":
                self._part.value_types = []
            else:
                del self._part.extra["ticks_per_second"]
            self._made.model.add_part(self._part)
            self._batch = self._made.batch(view, len(self._part.value_types))
            self._kept.append(Kept(self._batch))
        if self._batch.view != view:
            raise self._made.fail("has calls and samples; use a Recorder for each")
        self._view, self._address = view, address_of(self._batch.c)
        return self._batch

    def _flush(self) -> None:
        batch = self._to(self._batch.view if self._batch else "timeline")
        self._busy = True
        try:
            self._made.put(batch)
        except BaseException as error:
            self._failed, self._view = error, ""
            raise
        finally:
            self._busy = False
        empty(batch)
        late, self._late = self._late, []
        for row in late:
            if batch.view == "timeline":
                self._put(*row)
            else:
                self.sample(*row[:2], time=row[2], thread=row[3])
