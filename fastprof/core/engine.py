"""Formats, and the only two loops: Source -> batches and batches -> Sink."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from fastprof.core.c_memory import enough, owned
from fastprof.core.errors import CanBeDamaged, FastprofError, check, check_sums
from fastprof.core.loaded import loaded
from fastprof.core.log import Log
from fastprof.core.messages import Message, joined
from fastprof.core.model import Batch, Model, ValueType, empty
from fastprof.core.options import LENIENT, UINT64, Option, Options
from fastprof.core.reported import REPORTED, Entry
from fastprof.core.source import Source

if TYPE_CHECKING:
    from fastprof.core._c import Pointer, fp_batch, fp_err, fp_feed, fp_shares, fp_window
    from fastprof.core.sink import Sink

# Rows of a batch: few enough for its columns to fit a core's L2 cache.  With values not a power of two: value columns
# follow each other in memory, so all values of a row would share one cache set.
CAPACITY = {"timeline": 8192, "stacks": 4088, "graph": 2040}
_ROW_BYTES = 4  # of most files a row takes more
_LEAST_ROWS = 64
_FIRST_ROWS = 511  # of stacks, of which a batch may have many new ones: see _resized
_NEW_STACKS = 1 << 14  # of a batch
_ROWS = {"timeline": "calls or events", "stacks": "samples", "graph": "costs"}
_RECOGNIZED = 1 << 16  # bytes of the window searched for a long name
DRAIN: int = lib.FP_DRAIN  # bytes of output


class Summary:
    """Totals and counts of an input's rows.  `c` is a struct fp_summary."""

    def __init__(self) -> None:
        self.c = ffi.new("struct fp_summary *", {"first_time": (1 << 64) - 1})
        self.overflowed = False
        # after the input, before bridges add entries to the model
        self.functions = 0  # that differ in object, file or name
        self.stacks = 0
        self.threads: list[tuple[int, ...]] = []  # input, pid, tid
        self._totals: Pointer[int] = ffi.NULL
        self._part = -1  # the part whose totals are in `c`
        self._others: dict[int, tuple[Pointer[int], int]] = {}  # totals of other parts

    def reserve(self, n: int) -> None:
        """Make room for the totals of n value columns."""
        c = self.c
        if n > c.n_totals:
            more = ffi.new("int64_t[]", n)
            if c.n_totals:
                ffi.memmove(more, self._totals, c.n_totals * 8)
            self._totals, c.totals, c.n_totals = more, more, n

    def add(self, batch: Batch) -> None:
        self.reserve(batch.c.n_values)
        self.overflowed |= bool(lib.fp_batch_summarize(batch.c, self.c))

    def totals(self) -> dict[int, list[int]]:
        """Sums by part, because value types may differ between parts; -1: sums of all parts, if added as one."""
        found = self._others | {self._part: (self._totals, self.c.n_totals)}
        return {part: ffi.unpack(totals, n) for part, (totals, n) in sorted(found.items()) if n}

    def first_part(self) -> int:
        """The part with the first rows; 0 if all were added as one."""
        return next((part for part in (*self._others, self._part) if part >= 0), 0)

    def count(self, model: Model) -> None:
        """Record the number of functions, stacks and threads.  Call it after the last row."""
        self.functions, self.stacks = model.distinct_functions(), model.count("stacks") - 1
        self.threads = [model.row("threads", i) for i in range(1, model.count("threads"))]

    def seen(self, batches: Iterable[Batch], model: Model) -> Iterator[Batch]:
        """Yield `batches`, adding each to the totals of its part."""
        c = self.c
        for batch in batches:
            if batch.part != self._part and model.continues(batch.part, self._part):
                self._continue(model, batch.part)
            elif batch.part != self._part:
                self._others[self._part] = self._totals, c.n_totals
                self._part = batch.part
                self._totals, c.n_totals = self._others.pop(batch.part, (ffi.NULL, 0))
                c.totals = self._totals
            self.add(batch)
            yield batch
        self.count(model)

    def _continue(self, model: Model, part: int) -> None:
        """Count the totals so far as those of a part that continues the present one."""
        names = [type_.name for type_ in model.parts[part].value_types]
        before: list[int] = ffi.unpack(self._totals, self.c.n_totals) if self.c.n_totals else []
        columns = [names.index(type_.name) for type_ in model.parts[self._part].value_types[: len(before)]]
        self._part, self._totals, self.c.n_totals = part, ffi.NULL, 0
        self.reserve(len(names))
        for k, total in zip(columns, before, strict=True):
            self._totals[k] = total


class Input:
    """An input's facts for the plan, and its rows.  A Reader is an open Input."""

    name: str
    format: str
    view: str
    other_view: str = ""  # an alternative to `view`: set `view` to it before reading rows
    reads_second_view: bool = False  # the rows of `other_view` are read, too, after those of `view`: see OtherView
    # the rows of `other_view` (which may be "" then) are a timeline of states, events and counters of the same threads,
    # which a page shows next to samples or calls
    has_tracks: bool = False
    addresses: bool = False  # stacks: frames are addresses that can be symbolized
    allocator: bool = False  # stacks: parts may be heaps, whose `drop_frames` are those of an allocator
    formulas: bool = False  # parts may have inherited events
    # stacks: one part, in which no two rows have the same stack of addresses and labels, so sums need not look for them
    distinct: bool = False
    renews_stacks: bool = False  # adds its stacks again after Model.empty_stacks
    renews_frames: bool = True  # and when the model replaces frames of stacks that it has
    keeps_stacks: bool = False  # set by plans: no stack is ever removed, nor its frames replaced
    # stacks, set by plans: the next operator adds up rows without their times, so the reader may begin to do so
    summed: bool = False
    branches: bool = False  # stacks, set by plans: see Capabilities
    scale: Any = None  # set by `merge`: the factors of its values (bridges/sums/scale.py)
    advice: Entry | None = None  # set after the rows: how to get names, for targets that show them
    n_read: int = 0  # rows, so far
    labels: Mapping[str, str] = {}  # of the input: those in a store, and those that options give once rows are read
    stated: Mapping[str, Any] = {}  # for `info`: facts of the file apart from its parts; set after the rows
    selects: tuple[Option[Any], ...] = ()  # filters (core/options.py) that it applies itself
    resolved: Mapping[str, Any] = {}  # filters by name that were looked up in this input: fastprof/inputs/times.py

    def rows(self, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        """Like `read`; call it once.  `encoded`: the caller also accepts Encoded batches."""
        raise NotImplementedError

    def forget(self) -> None:
        """After the last row: free the memory of reading, which is private; the facts stay."""
        self.__dict__ = {name: of for name, of in vars(self).items() if not name.startswith("_")}

    def prefers_other_view(self) -> bool:
        """Whether only `other_view` has rows.  May read up to the first row; call it before `rows`."""
        return False

    def other_rows(self, capacity: int | None = None) -> Iterator[Batch]:
        """The rows of `other_view`.  Call it once, after the rows of `view`, if `reads_second_view` was set."""
        raise NotImplementedError


class OtherView(Input):
    """The other view of an input as an input of its own, whose rows are read after those of the first."""

    def __init__(self, first: Input) -> None:
        self._first = first
        first.reads_second_view = True
        self.name, self.format, self.view = first.name, first.format, first.other_view
        self.selects, self.resolved = first.selects, first.resolved

    def rows(self, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        for batch in self._first.other_rows(capacity):
            self.n_read += len(batch)
            yield batch


class Encoded(Batch):
    """Timeline rows that are not decoded yet.

    The stack machine decodes them, one share per worker thread.  Do not read rows from it; it has none.
    """

    def __init__(self) -> None:
        super().__init__("timeline", 1)

    def takers(self, shares: fp_shares, give: Callable[[int], None]) -> list[int]:
        """The shares that have rows.  `give` assigns a share to a thread without one.  Call it once."""
        raise NotImplementedError

    def feed(self, share: int) -> fp_feed:
        """The feed of a share's rows."""
        raise NotImplementedError

    def answer(self, share: int) -> bool:
        """Serve the request of a share's feed.  Returns whether a function got its name."""
        raise NotImplementedError

    def taken(self, share: int) -> None:
        """The share has taken its rows, or will not."""
        raise NotImplementedError


class Reader(Input, CanBeDamaged):
    """One input being read.  Each format has a subclass; its `feed` calls the compiled decoder."""

    # Codes that `finish` counts as not representable although they are not rows: an input with nothing else is empty.
    remarks: ClassVar[frozenset[str]] = frozenset()
    # reads the other view of an input that another reader has read: it counts nothing that both of them find
    is_second: bool = False

    def __init__(self, source: Source, model: Model, options: Options, log: Log) -> None:
        self.source: Source = source
        self.name = source.name
        self.model = model
        self.options = options
        self.log = log
        model.inputs.append(source.name)
        model.formats.append(self.format)
        model.names.begin(int(model.c.n_inputs), source.name)
        self.start()

    def start(self) -> None:
        """Read only the head or the index, which is enough for the fields of `Input`.  The constructor calls it."""

    def rows(self, capacity: int | None = None, *, encoded: bool = False) -> Iterator[Batch]:
        # readers of several pipes were opened before
        self.model.names.begin(int(self.model.c.n_inputs), self.name)
        if self.reads_second_view:
            self.source.spool()
        return read(self, capacity, forgets=not self.reads_second_view)

    def turn(self) -> None:
        """Read the other rows instead; before the first row."""
        self.view = self.other_view

    def has_other_rows(self) -> bool:
        """Whether `other_view` may have rows; call it after the rows of `view`."""
        return True

    def other_rows(self, capacity: int | None = None) -> Iterator[Batch]:
        if self.has_other_rows():
            yield from read_other(type(self)(self.source, self.model, self.options, self.log), capacity)

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        """Byte ranges to read, as (offset, length), in this order.  The default is the whole input."""
        return ((0, None),)

    def feed(self, in_: fp_window, batch: fp_batch, err: fp_err) -> int:
        """Decode from `in_` into `batch`.

        FP_MORE: all whole records in the window were consumed; refill it.
        FP_FULL: drain the batch and call again with the same window.
        FP_DONE: this range is complete.  Negative: an error, described by `err`.
        """
        raise NotImplementedError

    def summary(self) -> Summary | None:
        """The totals, if the input states them: then rows are not read, and this adds the parts to the model and the
        facts to the log.  None: the rows must be read."""
        return None

    def finish(self) -> None:
        """Add counts and facts to the log.  Called once, after the last range."""


class Writer:
    """One output being written.  `put` and `end` append to `out`; the engine drains it."""

    format: ClassVar[str]
    view: str
    written: int = 0  # rows in the output; known after `end`
    advice: ClassVar[Message | None] = None  # the advice if no rows were written
    costless: ClassVar[frozenset[str]] = frozenset()  # codes of rows left out because they have no cost
    first_time: int | None = None  # timeline: the earliest time, if rows do not come in order of time

    def __init__(self, model: Model, sink: Sink, options: Options, log: Log) -> None:
        self.model = model
        self.sink = sink
        self.options = options
        self.log = log
        self.out = owned(ffi.new("struct fp_buf *"), "output")
        self.err = ffi.new("struct fp_err *")
        self.start()

    def start(self) -> None:
        """Write nothing yet.  The constructor calls it."""

    def put_all(self, batches: Iterable[Batch]) -> None:
        """Call `put` for each batch."""
        for batch in batches:
            self.model.check_memory()
            self.put(batch)
            if self.out.n >= DRAIN:
                self.drain()

    def put(self, batch: Batch) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def check(self, status: int) -> int:
        """A status, of which `err` states more.  Errors: FastprofError, MemoryError."""
        return check_sums(status, self.err, self.model, self.format)

    def take_all(self, take: Callable[[], int]) -> None:
        """Call `take`, which writes rows of a batch, until FP_DONE.  FP_FULL: `out` is full."""
        while self.check(take()):
            self.drain()

    def drain(self) -> None:
        """Write `out` to the sink and empty it: after each batch, by writers with much output earlier."""
        if self.out.failed:
            raise MemoryError("no memory for output")
        if self.out.n:
            self.sink.write(memoryview(ffi.buffer(self.out.p, self.out.n)))
            self.out.n = 0

    def text(self, data: bytes) -> None:
        """Append bytes made in Python (headers, once per part)."""
        enough(lib.fp_buf_reserve(self.out, len(data)))
        ffi.memmove(self.out.p + self.out.n, data, len(data))
        self.out.n += len(data)


# How certain a registration is of its format.
NO, MAYBE, SURE = 0, 1, 2


class Scan(NamedTuple):
    """The columns and rows of a table that a query reads.  DuckDB filters again, so more may be built."""

    columns: frozenset[str] | None = None  # case-folded; None: all
    threads: frozenset[int] | None = None  # thread ids; None: all
    times: tuple[int, int] = (0, UINT64)  # the first and the last `ts`
    functions: Callable[[str], bool] | None = None  # whether rows of a function are read; not of stacks
    all_values: bool = False  # value types are read whatever their names

    def reads(self, name: str) -> bool:
        return self.columns is None or name.casefold() in self.columns


class Capabilities(NamedTuple):
    """What a format can hold.  The plan drops and counts everything else, and adds up rows that become equal."""

    values: bool = True  # several value types at once
    labels: bool = True  # stacks: labels and threads of samples
    threads: bool = False  # stacks: threads of samples, even without `labels`
    nested: bool = False  # timeline: draws calls, so they must nest, in nanoseconds
    times: bool = True  # stacks: times of samples
    in_time: bool = False  # stacks: needs rows with times in their order
    calls: bool = True  # graph: call arcs, jumps, objects and addresses, not only self costs by line
    names: bool = True  # names of functions and addresses
    short_names: bool = False  # made for viewing: C++ names are short unless --demangle overrides it
    branches: bool = False  # stacks: rows of branch stacks rather than samples, if an input has both
    allocator: bool = True  # stacks of heaps: frames of the allocator at their leaves
    places: bool = True  # stacks: addresses, objects, files and lines of frames, not only names of functions
    files: bool = False  # stacks: files and first lines of functions, even without `places`
    # stacks: refers to stacks of earlier batches.  Otherwise a bridge may remove the stacks that it added to the model
    # (fp_model_empty_stacks), so that distinct stacks take no memory.
    keeps_stacks: bool = True
    stacks_at_a_time: int = 0  # stacks: how many are in the model before they are removed, if the output depends on it
    renews_stacks: bool = False  # stacks: removed stacks are added again before they occur again (set by plans)
    replaces_frames: bool = False  # stacks: all that are added to the model pass through the operator (set by plans)
    of_one: bool = False  # rows of one of several inputs, which pass through separate operators (set by plans)
    trims: bool = False  # stacks: callers may be cut
    repeats_frames: bool = False  # stacks: writes all frames of a stack with each row
    # Keeps stacks as in the source: addresses are symbolized only with --symbols.
    verbatim: bool = False
    model_order: bool = False  # writes entries of the model in the model's order
    table: bool = False  # accepts rows of a table (bridges/rows/as_table.py), not batches
    columns: frozenset[str] = frozenset()  # of a table: names of columns that the path of the file gives
    scan: Scan = Scan()  # of a table
    all_tables: bool = False  # of a table: its reader can read the other tables of the profile
    unmerged: bool = False  # accepts the rows of several inputs without merging them into one part
    # With values=False, how well a value type fits the single column: 0 is best, None: it does not fit.
    rank: Callable[[ValueType], int | None] = lambda value_type: 0
    wanted: str = ""  # what `rank` accepts, for errors
    alternative: str = ""  # formats to suggest for a view that cannot be converted to this format's
    same: tuple[str, ...] = ()  # names of equivalent value types: if one is kept, the others are not lost
    together: tuple[str, ...] = ()  # with values=False: names of value types that are all kept if there are no others
    # Attributes of functions, objects, threads and value types that it does not write, as
    # bridges/rows/unrepresentable.py names them.
    lacks: frozenset[str] = frozenset()
    header: frozenset[str] | None = None  # the fields of parts that it writes; None: all


EVERYTHING = Capabilities()
STACKS_AT_A_TIME = 1 << 19  # some 20 MiB

# Fields of parts in profile.proto, for which OpenTelemetry has attributes.
PPROF_FIELDS = frozenset(
    ["command", "comments", "descriptions", "doc_url", "drop_frames", "duration_ns", "keep_frames", "period", "time_ns"]
)


class Budget(NamedTuple):
    """The size that a format's viewers open, and the approximate bytes of calls, or of stacks.

    The sizes only have to be right to a factor of two: the output is measured.
    """

    nbytes: int  # the default of --budget
    call: int  # bytes of a call
    names: int = 0  # copies of the function's name per call
    event: int = 0  # bytes of an event without its payload; 0: the format has no events
    stack: int = 0  # bytes of a distinct stack
    sample: int = 0  # of a sample
    frame: int = 0  # of each of its frames


class Format(NamedTuple):
    """One entry of the registry, made by a registration.

    `sniff` gets the first 4 KiB after decompression, not the file's name, and returns NO, MAYBE or SURE; it never
    raises.  `claims` returns whether a directory, given by its path, is one input of the format.  `could_be` returns
    whether an unrecognized input with one of the suffixes may be of this format.  With `long_lines`, `sniff` gets all
    of a first line that is longer than 4 KiB, if no format claims its beginning.  `reader` and `writer` are
    "module:class" in the format's package, imported when first used.
    """

    name: str
    view: str  # "any": each input has its own view, an output that of the first input
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], int] | None = None
    claims: Callable[[str], bool] | None = None
    could_be: Callable[[bytes], bool] | None = None
    long_lines: bool = False
    reader: str = ""
    writer: str = ""
    converter: str | Callable[..., Any] = ""  # instead of a reader: see inputs/converted.py
    plugin: str = ""  # of another package: which, for messages
    prefixes: tuple[str, ...] = ()  # of file names, as in callgrind.out.123
    holds: Capabilities = EVERYTHING
    in_order: bool = False  # a graph without calls: rows are usually sorted by function and line, each position once
    reads: tuple[Option[Any], ...] = ()  # options that its reader uses
    selects: tuple[Option[Any], ...] = ()  # filters that its reader applies; for other inputs an operator does
    writes: tuple[Option[Any], ...] = ()  # options that its writer uses
    package: str = ""  # the format's package; set by the registry
    budget: Budget | None = None  # made for viewers with a size limit
    row_bytes: int = 0  # timeline: the minimum size of a row in an uncompressed file; 0: unknown
    second_view: str = ""  # another view that it can be written from, if all inputs have it
    holds_both: bool = False  # a file holds rows of both views
    reads_also: str = ""  # another view that some of its files have, or that an option reads
    docs: str = ""  # its page, if not docs/formats/NAME.md

    def view_for(self, of: Iterable[str]) -> str:
        """The view that its writer gets for inputs of these views; for "any" the most detailed one."""
        views = {*of}
        if self.view == "any":
            return views.pop() if len(views) == 1 else "graph" if "graph" in views else "stacks"
        return self.second_view if views == {self.second_view} else self.view

    def reader_class(self) -> Callable[[Source, Model, Options, Log], Reader]:
        """A class, or a function that chooses a class by the input's content."""
        found: Callable[[Source, Model, Options, Log], Reader] = self._load(self.reader)
        return found

    def writer_class(self) -> type[Writer]:
        found: type[Writer] = self._load(self.writer)
        return found

    def load_converter(self) -> Any:
        return self._load(self.converter) if isinstance(self.converter, str) else self.converter

    @property
    def is_read(self) -> bool:
        return bool(self.reader or self.converter)

    def _load(self, place: str) -> Any:
        return loaded(f"{self.package}.{place}")


def read(reader: Reader, capacity: int | None = None, *, forgets: bool = False) -> Iterator[Batch]:
    """Source -> batches.  Each batch is valid until the next one is requested."""
    most, size = CAPACITY[reader.view], reader.source.size
    if reader.source.mark and not reader.is_second:
        reader.log.count(REPORTED["byte-order-marks"])
    if size is not None:  # allocating a batch takes as long as reading some KB
        most = min(most, max(size // _ROW_BYTES, _LEAST_ROWS))
    batch = Batch(reader.view, capacity or (min(most, _FIRST_ROWS) if reader.view == "stacks" else most))
    for offset, length in reader.ranges():
        batch = yield from decode(reader, batch, offset, length, 0 if capacity else most)
    yield from last(reader, batch)
    finish(reader)
    if forgets:
        reader.forget()


def read_other(second: Reader, capacity: int | None = None) -> Iterator[Batch]:
    """The rows of the other view of an input, by a new reader."""
    del second.model.inputs[-1], second.model.formats[-1]  # those of the first reader
    second.reads_second_view, second.is_second = True, True
    second.turn()
    return read(second, capacity)


def finish(reader: Reader) -> None:
    """Call the reader's `finish` after its last row.

    Errors: FastprofError if there was no row because none of the input's content can be represented.  It is not a
    FormatError, because the input is not damaged.
    """
    before = {entry.code: n for entry, _, n in reader.log.not_representable.counted()}
    reader.finish()
    if reader.n_read or reader.is_second:
        return
    content = [
        entry.message(n - before.get(entry.code, 0), values)
        for entry, values, n in reader.log.not_representable.counted()
        if entry.code not in reader.remarks and n > before.get(entry.code, 0)
    ]
    if content:
        where = f"{reader.source.name}: {reader.format}: no readable {_ROWS[reader.view]}, only "
        raise FastprofError(joined("", [where, joined(", ", content)]))


def decode(
    reader: Reader, batch: Batch, offset: int, length: int | None, most: int = 0
) -> Generator[Batch, None, Batch]:
    """A range of the source -> full batches.  Returns the batch with the remaining rows.

    With `most`, the size of batches of stacks changes, up to this many rows: see _resized.
    """
    source = reader.source
    err = ffi.new("struct fp_err *")
    in_, c, model = source.in_, batch.c, reader.model
    n_stacks = model.count("stacks")
    source.select(offset, length)
    status = lib.FP_MORE
    while status != lib.FP_DONE:
        status = reader.feed(in_, c, err)
        reader.model.check_memory()
        if reader.model.c.strings.n_cut != reader.model.n_cut:
            log_cut_names(reader)
        if status < 0:
            check(status, err, source.name, reader.format)
        elif status == lib.FP_FULL:
            reader.n_read += len(batch)
            yield batch
            if most and reader.view == "stacks":
                batch = _resized(batch, most, model.count("stacks") - n_stacks)
            empty(batch)
            c, n_stacks = batch.c, model.count("stacks")
        elif status == lib.FP_MORE:
            source.refill()
    return batch


def _resized(batch: Batch, most: int, new_stacks: int) -> Batch:
    """The batch, or one of another size if it had too many or few new stacks.

    What adds up stacks has to keep those of a batch, and is faster if they are in the caches.
    """
    had = rows = int(batch.c.cap)
    if new_stacks > 2 * _NEW_STACKS:
        rows = max(min(had, _LEAST_ROWS), had * _NEW_STACKS // new_stacks)
    elif had < most and new_stacks < _NEW_STACKS // 2:
        rows = min(most, 4 * had)
    if rows == had:
        return batch
    other = Batch(batch.view, rows, batch.c.n_values)
    other.c.part = batch.part
    return other


def log_cut_names(reader: Reader) -> None:
    """Count names that were too long for the model as losses.  Errors: FormatError, unless lenient."""
    model, most = reader.model, f"{lib.FP_NAME_MOST >> 20} MiB"
    strings = model.c.strings
    n, model.n_cut = strings.n_cut - model.n_cut, strings.n_cut
    if reader.options[LENIENT]:
        reader.log.count(REPORTED["cut-names"], n, most=most)
        return
    place = reader.source.find(model.string(strings.cut)[:_RECOGNIZED])
    detail = Message("a name is longer than the limit of {most}; {--lenient} truncates it", most=most)
    raise reader.damaged(detail, place)


def last(reader: Reader, batch: Batch) -> Iterator[Batch]:
    """The remaining rows."""
    if len(batch):
        reader.n_read += len(batch)
        yield batch
        empty(batch)


def batches_of(
    view: str, n_values: int, part: int, pull: Callable[[fp_batch], int], n_rows: int | None = None
) -> Iterator[Batch]:
    """Batches of `part`, each valid until the next is requested; at least one, which may be empty.

    `pull` appends rows to a struct fp_batch * and returns FP_FULL while there are more, then FP_DONE.  It raises other
    statuses itself, except that a batch that cannot grow is a MemoryError here.  `n_rows`: how many are expected.
    """
    batch = Batch(view, CAPACITY[view] if n_rows is None else min(CAPACITY[view], max(n_rows, 1)), n_values)
    batch.c.part, status = part, lib.FP_FULL
    while status == lib.FP_FULL:
        status = enough(pull(batch.c))
        yield batch
        empty(batch)


def write(batches: Iterable[Batch], writer: Writer) -> None:
    """Batches -> Sink.  The caller commits the sink."""
    try:
        writer.put_all(batches)
    finally:
        if isinstance(batches, Generator):
            batches.close()  # also after an error: it may have started threads
    writer.end()
    writer.drain()
