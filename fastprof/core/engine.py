"""What a format is, and the only two loops: Source -> batches and batches -> Sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, ClassVar, NamedTuple
from fastprof.core.errors import check
from fastprof.core.model import Batch, Model, ValueType
from fastprof.core.options import Option, Options
from fastprof.core.owner import owned
from fastprof.core.report import Report
from fastprof.core.sink import Sink
from fastprof.core.source import Source

# Rows a batch: its columns stay within a core's L2 cache.  Value columns lie one
# behind the other, so a power of two would put a row's values into one cache set.
CAPACITY = {"timeline": 8192, "stacks": 4088, "graph": 2040}
DRAIN = 256 * 1024


class Summary:
    """What the rows of an input add up to.  `c` is a struct fp_summary."""

    def __init__(self) -> None:
        self.c = ffi.new("struct fp_summary *", {"first_time": (1 << 64) - 1})
        self.overflowed = False
        # of the input alone: bridges may add some
        self.functions = 0
        self.stacks = 0
        self.threads: list[tuple[int, ...]] = []  # input, pid, tid
        self._totals = ffi.NULL

    def reserve(self, n: int) -> None:
        """Room for the totals of n value columns."""
        c = self.c
        if n > c.n_totals:
            more = ffi.new("int64_t[]", n)
            if c.n_totals:
                ffi.memmove(more, self._totals, c.n_totals * 8)
            self._totals, c.totals, c.n_totals = more, more, n

    def add(self, batch: Batch) -> None:
        self.reserve(batch.c.n_values)
        self.overflowed |= bool(lib.fp_batch_summarize(batch.c, self.c))

    def count(self, model: Model) -> None:
        """The model's tables, once all rows were added."""
        self.functions, self.stacks = model.count("functions") - 1, model.count("stacks") - 1
        self.threads = [model.row("threads", i) for i in range(1, model.count("threads"))]

    def seen(self, batches: Iterable[Batch], model: Model) -> Iterator[Batch]:
        """Adds batches while they pass by."""
        for batch in batches:
            self.add(batch)
            yield batch
        self.count(model)


class Reader:
    """One input being read.  A room subclasses it; its `feed` is the compiled decoder."""

    format: ClassVar[str]
    view: str  # known once the reader is made: some formats hold one of several views
    addresses: bool = False  # stacks: frames are addresses that may be given names
    formulas: bool = False  # parts may have events that are computed from others

    def __init__(self, source: Source, model: Model, options: Options, report: Report) -> None:
        self.source = source
        self.model = model
        self.options = options
        self.report = report
        model.inputs.append(source.name)

    def ranges(self) -> Iterable[tuple[int, int | None]]:
        """Byte ranges to read, in order.  The default is the whole input, as it comes."""
        return ((0, None),)

    def feed(self, in_: Any, batch: Any, err: Any) -> int:
        """Decode from `in_` (struct fp_in *) into `batch` (struct fp_batch *).

        FP_MORE: everything whole was consumed, refill.  FP_FULL: drain the
        batch and call again with the same window.  FP_DONE: this range is
        complete.  Negative: `err` says what.
        """
        raise NotImplementedError

    def summary(self) -> Summary | None:
        """What the rows add up to, if the input says so where it need not be read; the parts are then in the model
        and the facts in the report.  None: they have to be read."""
        return None

    def finish(self) -> None:
        """Called once after the last range: put counts and facts into the report."""


class Writer:
    """One output being written.  `put` and `end` append to `out`; the engine drains it."""

    format: ClassVar[str]
    view: str

    def __init__(self, model: Model, sink: Sink, options: Options, report: Report) -> None:
        self.model = model
        self.sink = sink
        self.options = options
        self.report = report
        self.out = owned(ffi.new("struct fp_buf *"), lib.fp_buf_free, "output")

    def put(self, batch: Batch) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def drain(self) -> None:
        """Write away what is in `out`.  The engine does; an `end` that makes much output may, too."""
        if self.out.failed:
            raise MemoryError("no memory for output")
        if self.out.n:
            self.sink.write(ffi.buffer(self.out.p, self.out.n))
            self.out.n = 0

    def text(self, data: bytes) -> None:
        """Append bytes made in Python (headers, once per part)."""
        if lib.fp_buf_reserve(self.out, len(data)):
            raise MemoryError("no memory for output")
        ffi.memmove(self.out.p + self.out.n, data, len(data))
        self.out.n += len(data)


# How sure a door is that an input is its format's.
NO, MAYBE, SURE = 0, 1, 2


class Holds(NamedTuple):
    """What a format has room for.  The plan drops the rest, counts it, and sums up the rows that are then equal."""

    values: bool = True  # several value types at once
    labels: bool = True  # stacks: labels and threads of samples
    times: bool = True  # stacks: times of samples
    calls: bool = True  # graph: call arcs, jumps, objects and addresses, not only self costs by line
    names: bool = True  # names of addresses
    places: bool = True  # stacks: addresses, objects, files and lines of frames, not only names of functions
    # Keeps what was in the source as it was: addresses are given names only when --symbols asks for it.
    verbatim: bool = False
    # How well a value type suits a format that holds one: 0 is best, None not at all.
    suits: Callable[[ValueType], int | None] = lambda value_type: 0
    told: tuple[str, ...] = ()  # names of value types of which one tells the others


EVERYTHING = Holds()


class Format(NamedTuple):
    """One entry of the registry: what a room's door offers.

    `sniff` looks at the first 4 KiB after decompression and answers NO, MAYBE
    or SURE; it never raises and never needs the name.  `reader` and `writer`
    are "module:class" within the room, imported when first used.
    """

    name: str
    view: str  # "any": a reader knows its view once it is open, a writer takes the first reader's
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], int] | None = None
    reader: str = ""
    writer: str = ""
    prefixes: tuple[str, ...] = ()  # of file names, as in callgrind.out.123
    holds: Holds = EVERYTHING
    reads: tuple[Option[Any], ...] = ()  # options that its reader looks at
    selects: tuple[Option[Any], ...] = ()  # as `reads`, but choosing what is read: every input has to look at them
    writes: tuple[Option[Any], ...] = ()  # options that its writer looks at
    room: str = ""  # the package, as the registry found it

    def reader_class(self) -> type[Reader]:
        found: type[Reader] = self._load(self.reader)
        return found

    def writer_class(self) -> type[Writer]:
        found: type[Writer] = self._load(self.writer)
        return found

    def _load(self, place: str) -> Any:
        from importlib import import_module

        module, _, name = place.partition(":")
        return getattr(import_module(f"{self.room}.{module}"), name)


def read(reader: Reader, capacity: int | None = None, *, keep: bool = False) -> Iterator[Batch]:
    """Source -> batches.  Each batch is valid until the next one is asked for; with `keep`, for ever."""
    source = reader.source
    capacity = capacity or CAPACITY[reader.view]
    batch = Batch(reader.view, capacity)
    err = ffi.new("struct fp_err *")
    in_, c = source.in_, batch.c
    for offset, length in reader.ranges():
        source.select(offset, length)
        status = lib.FP_MORE
        while status != lib.FP_DONE:
            status = reader.feed(in_, c, err)
            if status < 0:
                check(status, err, source.name, reader.format)
            elif status == lib.FP_FULL:
                yield batch
                if keep:
                    batch = Batch(reader.view, capacity, c.n_values)
                    c = batch.c
                else:
                    batch.reset()
            elif status == lib.FP_MORE:
                source.refill()
    if len(batch):
        yield batch
    reader.finish()


def write(batches: Iterable[Batch], writer: Writer) -> None:
    """Batches -> Sink.  The caller commits the sink."""
    out = writer.out
    for batch in batches:
        writer.put(batch)
        if out.n >= DRAIN:
            writer.drain()
    writer.end()
    writer.drain()
