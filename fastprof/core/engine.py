"""What a format is, and the only two loops: Source -> batches and batches -> Sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from fastprof.core.errors import check
from fastprof.core.io import Sink, Source
from fastprof.core.model import Batch, Model

if TYPE_CHECKING:
    from typing import Literal

    Demangle = Literal["full", "templates", "none"]

# Rows a batch: its columns stay within a core's L2 cache.  Value columns lie one
# behind the other, so a power of two would put a row's values into one cache set.
CAPACITY = {"timeline": 8192, "stacks": 4088, "graph": 2040}
DRAIN = 256 * 1024


# What `--labels` names: the labels that samples come with, and what else may become one.
LABELS = ("own", "thread", "process", "part", "cpu")


class Options(NamedTuple):
    """Everything a user may ask of a conversion; the command line's names, spelled out."""

    lenient: bool = False
    symbols: tuple[str, ...] = ()
    symbolize: bool = True  # look up addresses of stacks
    sysroot: str = ""  # put before the paths of mapped objects
    debug_dirs: tuple[str, ...] = ("/usr/lib/debug",)  # of separate debug files
    force_symbols: bool = False  # take a named binary although its build id differs
    demangle: Demangle = "full"
    time_unit: str = "ns"  # ns, ticks
    per_thread: bool = False
    labels: tuple[str, ...] | None = None  # of LABELS: what samples are labelled with; None = what they come with
    inline_calls: bool = False  # stacks -> graph: inlined functions are called, not part of their caller
    stacks: str = "estimate"  # graph -> stacks: self, arcs, estimate
    prune: float = 1e-5  # graph -> stacks: estimated shares below this part of the total end in [pruned]
    compress_names: bool = True
    compress_positions: bool = True
    compute_events: bool = False  # inherited events become columns
    aggregate: bool = False  # sum up graph rows that say the same place
    period_us: int | None = None  # microseconds a sample, instead of what the profile says
    keep_signal_frames: bool = False
    time_ns: int | None = None  # when the profile was taken, nanoseconds since 1970
    comments: tuple[str, ...] = ()
    name_addresses: bool = False  # pprof: addresses without symbol get a function [object+0xADDR]
    max_memory: int = 20 << 20  # bytes of distinct rows kept before they spill to disk
    # archive: what to write, and which chunks to read
    level: int = 0  # of compression, 1 to 22; 0 = the default
    member: str | None = None  # name of the profile to read from an archive of several
    time_range: tuple[int, int] | None = None  # first and last tick (stacks: nanosecond), both included
    threads: tuple[int, ...] = ()  # thread ids; empty = all
    part: int | None = None  # number of the part, from 1

    @property
    def apart(self) -> frozenset[str]:
        """What costs are kept apart by although the source adds them up: of thread, process, part, cpu."""
        asked = frozenset(self.labels or ()) - {"own"}
        return asked | {"thread", "process", "part"} if self.per_thread else asked

    @property
    def wanted_labels(self) -> frozenset[str]:
        """The labels that samples keep, of LABELS."""
        return self.apart | (frozenset(("own", "thread", "process")) if self.labels is None else {*self.labels})


# What options can be: one of these words, or a whole number in a range.
CHOICES = {
    "demangle": ("full", "templates", "none"),
    "time_unit": ("ns", "ticks"),
    "stacks": ("estimate", "arcs", "self"),
    "labels": LABELS,
}
RANGES = {
    "period_us": (1, (1 << 63) - 1),
    "time_ns": (0, (1 << 63) - 1),
    "max_memory": (1, (1 << 64) - 1),
    "level": (1, 22),
    "time_range": (0, (1 << 64) - 1),
    "threads": (0, (1 << 64) - 1),
    "part": (1, (1 << 64) - 1),
}
_TEXTS = {"symbols", "sysroot", "debug_dirs", "comments", "member"}
_SEVERAL = {"symbols", "debug_dirs", "labels", "comments", "time_range", "threads"}


def misfit(name: str, value: Any) -> str:
    """Why the option `name` of Options cannot be `value`; "" when it can."""
    if name not in _SEVERAL:
        return _misfit_of_one(name, value)
    if not isinstance(value, (tuple, list)):
        return f"{value!r} is not a list or tuple"
    if why := next(filter(None, (_misfit_of_one(name, one) for one in value)), ""):
        return why
    if name == "time_range" and not (len(value) == 2 and value[0] <= value[1]):
        return f"{value!r} is not a range, from a first to a last"
    return ""


def _misfit_of_one(name: str, value: Any) -> str:
    if isinstance(Options._field_defaults[name], bool) and not isinstance(value, bool):
        return f"{value!r} is neither True nor False"
    if name in CHOICES and value not in CHOICES[name]:
        return f"{value!r} is none of {', '.join(CHOICES[name])}"
    if name in RANGES:
        least, most = RANGES[name]
        if not isinstance(value, int) or not least <= value <= most:
            return f"{value!r} is not a whole number from {least} to {most}"
    if name in _TEXTS and not isinstance(value, str):
        return f"{value!r} is not a text"
    if name == "prune" and not (isinstance(value, (int, float)) and 0 <= value <= 1):
        return f"{value!r} is not a share from 0 to 1"
    return ""


class Report:
    """What happened on the way, by name and count.

    `repairs` are oddities that real writers produce and that were mended;
    `losses` is what could not be kept (exit code 3 with --lenient, or said
    when the target cannot hold it); `facts` is what `info` prints.
    """

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.repairs: Counter[str] = Counter()
        self.losses: Counter[str] = Counter()  # of the input: damage
        self.unsaid: Counter[str] = Counter()  # what the target cannot say
        self.warnings: list[str] = []
        self.facts: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"Report({', '.join(f'{name}={value!r}' for name, value in vars(self).items() if value)})"

    def warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)


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

    def __init__(self, source: Source, model: Model, options: Options, report: Report) -> None:
        self.source = source
        self.model = model
        self.options = options
        self.report = report

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
    names: bool = True  # has a place for the names of addresses
    labels: bool = False  # stacks: samples have labels, and no times; equal ones are to come as one

    def __init__(self, model: Model, sink: Sink, options: Options, report: Report) -> None:
        self.model = model
        self.sink = sink
        self.options = options
        self.report = report
        self.out = ffi.gc(ffi.new("struct fp_buf *"), lib.fp_buf_free)

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


class Format(NamedTuple):
    """One entry of the registry: what a room's door offers.

    `sniff` looks at the first 4 KiB after decompression; it never raises and
    never needs the name.  `reader` and `writer` are "module:class" within the
    room, imported when first used.
    """

    name: str
    view: str  # "any": a reader knows its view once it is open, a writer takes the first reader's
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], bool] | None = None
    reader: str = ""
    writer: str = ""
    prefixes: tuple[str, ...] = ()  # of file names, as in callgrind.out.123
    # options that nothing but its reader, or its writer, looks at; by their names in Options
    reads: tuple[str, ...] = ()
    selects: tuple[str, ...] = ()  # as `reads`, but choosing what is read: all of several inputs have to look at them
    writes: tuple[str, ...] = ()
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
