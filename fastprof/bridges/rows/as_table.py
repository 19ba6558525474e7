"""Rows of a view -> rows of an Arrow table (csrc/ends/arrow.h).

    enter f 10, enter g 20, exit g 50, exit f 60   becomes   id  ts  dur  self  function  depth  parent
                                                              1  20   30    30  g             1       0
                                                              0  10   50    20  f             0

A batch has ids; a table has names, threads and places.  Columns of names are dictionary-encoded: each batch of rows has
the texts of all rows so far, so a later batch has the same texts, possibly followed by more.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache

from fastprof.bridges import TABLE, TABLES
from fastprof.bridges.rows.filter import Mask, mask_of_threads
from fastprof.bridges.rows.nest import Clocks, nest
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any, NamedTuple, Pointer, fp_ends_texts, fp_mask
from fastprof.core.arrow_column import WIDTHS, ArrowColumn, Texts
from fastprof.core.c_memory import address_of, enough, owned
from fastprof.core.engine import EVERYTHING, Capabilities, Scan
from fastprof.core.errors import FastprofError, check_sums, inputs_of
from fastprof.core.log import Log
from fastprof.core.model import KINDS, OPS, Batch, Model, ValueType
from fastprof.core.options import UINT64, Options
from fastprof.core.parts import match_part
from fastprof.core.unknown_names import UNKNOWN_BYTES
from fastprof.core.version import __version__

CAPACITY = 128 * 1024  # rows
_FIRST = 1024  # rows; a table grows from this to CAPACITY, because most profiles of a folder are small


class _Kind(NamedTuple):
    """The type of a column.  `texts`: the words of an enum, or the name of a table of struct fp_ends_tables."""

    name: str
    format: bytes
    nullable: bool = False
    texts: list[str] | str = ""
    is_time: bool = False


def _time(name: str, nullable: bool = False) -> _Kind:
    return _Kind(name, b"l", nullable, is_time=True)


def _names(name: str, texts: str) -> _Kind:
    return _Kind(name, b"i", True, texts)


def _words(words: dict[int, str]) -> list[str]:
    return [words[number] for number in range(len(words))]


_FUNCTION, _FILE, _OBJECT = _names("function", "functions"), _names("file", "files"), _names("object", "objects")
_CATEGORY = _names("category", "objects")  # of a call: its object, if that is no file
_THREAD = (_Kind("thread", b"I", True), _Kind("process", b"I", True))
_LINE, _ADDRESS = _Kind("line", b"I", True), _Kind("address", b"L", True)
# In the order in which csrc/ends/arrow.c numbers them.
LAYOUTS = {
    "events": (_time("ts"), _Kind("op", b"C", texts=_words(OPS)), _FUNCTION, *_THREAD, _Kind("cpu", b"S")),
    "spans": (
        _Kind("id", b"l"),
        *map(_time, ("ts", "dur", "self")),
        _FUNCTION,
        *_THREAD,
        _Kind("depth", b"i"),
        _Kind("parent", b"l", True),
        _OBJECT,
        _CATEGORY,
    ),
    "samples": (_time("ts", True), _Kind("stack_id", b"I"), _FUNCTION, *_THREAD, _names("labels", "labels")),
    "frames": (_Kind("stack_id", b"I"), _Kind("depth", b"i"), _FUNCTION, _FILE, _LINE, _ADDRESS, _OBJECT),
    "graph": (
        _Kind("kind", b"C", texts=_words(KINDS)),
        _FUNCTION,
        _FILE,
        _LINE,
        _OBJECT,
        _ADDRESS,
        _names("callee", "callees"),
        _Kind("calls", b"l", True),
    ),
}


class Rows:
    """Rows of a table, for Arrow (PyCapsule interface).  They own their memory."""

    def __init__(self, c: object, n: int, columns: list[ArrowColumn], metadata: dict[bytes, bytes]) -> None:
        self.c, self.columns, self.metadata = c, columns, metadata  # c: the owner of the columns' memory
        self._n = n

    def __len__(self) -> int:
        return self._n

    def compact(self) -> Rows:
        """A copy without the room for more rows."""
        owned, columns, n_bits = [], [], (self._n + 7) // 8
        for column in self.columns:
            width = WIDTHS[column.format]
            data = ffi.new("uint8_t[]", self._n * width + n_bits or 1)
            ffi.memmove(data, ffi.cast("void *", column.items), self._n * width)
            valid = address_of(data) + self._n * width
            if column.valid:
                ffi.memmove(data + self._n * width, ffi.cast("void *", column.valid), n_bits)
            owned.append(data)
            columns.append(column._replace(items=address_of(data), valid=valid if column.valid else 0))
        return Rows(owned, self._n, columns, self.metadata)

    def __arrow_c_schema__(self) -> object:
        from fastprof.core import _arrow

        return _arrow.schema(self.columns, self.metadata)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        from fastprof.core import _arrow

        return self.__arrow_c_schema__(), _arrow.array(self.c, len(self), self.columns)


class _Texts:
    """A growing copy of texts.  When it is full, it moves; earlier batches keep the old copy."""

    def __init__(self, c: fp_ends_texts, *, of_places: bool) -> None:
        self._c, self._of_places = c, of_places
        self._bytes, self._offsets = ffi.new("uint8_t[]", 1), ffi.new("int64_t[]", 2)
        self._n = 0
        self.unknown = 0  # of places: the number of the text `???`; 0: no row has it

    def now(self) -> Texts:
        strings = self._c.texts
        n, start = int(strings.n), strings.start
        had, n_bytes = int(self._offsets[self._n]), int(start[n])
        if n > self._n:
            self._offsets = _room(self._offsets, "int64_t[]", self._n + 1, n + 1)
            self._bytes = _room(self._bytes, "uint8_t[]", had, n_bytes)
            ffi.memmove(self._offsets + self._n, start + self._n, (n + 1 - self._n) * 8)
            ffi.memmove(self._bytes + had, strings.bytes + had, n_bytes - had)
            for i in range(self._n, n) if self._of_places else ():
                if ffi.buffer(strings.bytes + start[i], start[i + 1] - start[i])[:4] in UNKNOWN_BYTES:
                    self.unknown = i
            self._n = n
        owner = self._offsets, self._bytes
        return Texts(n, address_of(self._offsets), address_of(self._bytes), owner)


def _room(array: Pointer[int], type_: str, used: int, need: int) -> Pointer[int]:
    """`array`, or a copy of its first `used` items in an array of twice the size."""
    if need <= len(array):
        return array
    larger = ffi.new(type_, 2 * need)
    ffi.memmove(larger, array, used * ffi.sizeof(ffi.typeof(array).item))
    return larger


class _Table:
    """Makes the rows of one table."""

    def __init__(self, name: str, model: Model, log: Log, holds: Capabilities) -> None:
        self.name = name
        self.scan = holds.scan
        self._elsewhere = {column.casefold() for column in holds.columns}
        self._is_alone = not holds.all_tables
        self._model, self._log = model, log
        self.time_unit = b"ns"
        self._layout = [*LAYOUTS[name]]
        # a table has at least one column, so that its rows can be counted
        shortest = min((kind for kind in self._layout if not kind.nullable), key=lambda kind: WIDTHS[kind.format])
        self._built = [self.scan.reads(kind.name) for kind in self._layout]
        is_counted = not any(self._built)
        if is_counted:
            self._built[self._layout.index(shortest)] = True
        self._put = getattr(lib, f"fp_ends_tables_{name}")
        self.c = owned(lib.fp_ends_tables_new(model.c), "a table")
        self._texts: dict[str, _Texts] = {}
        self._words: dict[str, Texts] = {}
        for kind in self._layout:
            if isinstance(kind.texts, list):
                self._words[kind.name] = Texts.of(kind.texts)
            elif kind.texts:
                self._texts[kind.texts] = _Texts(
                    getattr(self.c, kind.texts), of_places=kind in (_FILE, _OBJECT, _CATEGORY)
                )
        self._events: list[ValueType] = []
        self._masks = self._filtered()
        self.c.only_counted = is_counted and not self._masks and self.scan.times == EVERYTHING.scan.times
        self._part = -1
        self._given = 0  # batches of rows
        self._samples = 0
        self._err, self._at = ffi.new("struct fp_err *"), ffi.new("uint32_t *")
        self._begin()
        if name in TABLES["stacks"]:
            model.spills.append(self._forget)

    def _forget(self) -> None:
        """The model's stacks are about to be removed: later ones get the ids after theirs."""
        forgotten = self.c.forgotten + self._model.count("stacks") - 1
        if forgotten >= int(lib.FP_NO_ID) - self._model.count("stacks"):
            raise FastprofError(f"{inputs_of(self._model)}table {self.name}: more than 2^32 contexts")
        self.c.forgotten = forgotten

    def _begin(self) -> None:
        self._rows = owned(lib.fp_ends_columns_new(_FIRST if not self._given else CAPACITY), "a table")
        for kind, is_built in zip(self._layout, self._built, strict=True):
            self._add(kind, is_built)

    def _add(self, kind: _Kind, is_built: bool) -> None:
        enough(lib.fp_ends_columns_add(self._rows, WIDTHS[kind.format] if is_built else 0, kind.nullable))

    def _filtered(self) -> list[tuple[fp_mask, Mask]]:
        """Set which rows are built.  Returns the masks to show for each batch."""
        threads, (first, last), functions = self.scan.threads, self.scan.times, self.scan.functions
        model, masks = self._model, []
        self.c.first_time, self.c.last_time = first, last
        if threads is not None:
            masks.append((self.c.only_threads, mask_of_threads(model, threads)))
        if functions is not None and self.name in ("events", "spans", "graph"):

            def is_read(function: int) -> bool:
                name = utf8(model.get_function(function).name.decode("utf-8", "surrogateescape"))
                return "\ufffd" in name or functions(name)  # names that are not UTF-8 are made unique

            masks.append((self.c.only_functions, Mask(model, "functions", is_read)))
        return masks

    def put(self, batch: Batch) -> Iterator[Rows]:
        """Add a batch; yield the rows of each full table."""
        if batch.part != self._part and self.name in ("samples", "graph"):
            self._part = batch.part
            self._change_part(batch)
        for c, mask in self._masks:
            mask.show(c)
        self._at[0] = 0
        self._samples += len(batch)
        while True:
            status = self._put(self.c, batch.c, self._at, self._rows, self._err)
            check_sums(status, self._err, self._model, f"table {self.name}")
            if status == lib.FP_FULL and self._rows.cap < CAPACITY:
                enough(lib.fp_ends_columns_grow(self._rows, min(4 * self._rows.cap, CAPACITY)))
            elif status == lib.FP_FULL:
                yield self._full()
                self._begin()
            elif status == lib.FP_NEEDS:
                text = _label_text(self._model, self.c.requested).encode("utf-8", "replace")
                enough(lib.fp_ends_tables_label(self.c, text, len(text)))
            else:
                break

    def end(self) -> Iterator[Rows]:
        """Yield the remaining rows, or an empty table if there were none."""
        if self._rows.n or not self._given:
            yield self._full()
        c, log = self.c, self._log
        if self.name in TABLES["stacks"]:
            self._model.spills.remove(self._forget)
        log.count(REPORTED["call-arguments"], c.arguments)
        log.count(REPORTED["replaced-bytes"], c.replaced)
        log.count(REPORTED["jumps"], c.jumps)
        if self.name != "spans":
            log.count(REPORTED["payloads"], c.events)
        if self._is_alone:
            self._count_other_tables()

    def _count_other_tables(self) -> None:
        """Count what this table lacks and another has."""
        if self.name == "spans":
            self._log.count(REPORTED["events"], self.c.events)
        elif self.name == "samples":
            self._log.count(REPORTED["frames"], self._model.count("frames") - 1)
        elif self.name == "frames":
            self._log.count(REPORTED["samples"], self._samples)

    def _full(self) -> Rows:
        self._given += 1
        texts = self._words | {name: texts.now() for name, texts in self._texts.items()}
        columns = [self._column(i, kind, texts) for i, kind in enumerate(self._layout) if self._built[i]]
        return Rows(self._rows, int(self._rows.n), columns, self._metadata())

    def _column(self, i: int, kind: _Kind, texts: dict[str, Texts]) -> ArrowColumn:
        c = self._rows.all[i]
        if kind in (_FILE, _OBJECT) and (unknown := self._texts[str(kind.texts)].unknown):
            lib.fp_absent(ffi.cast("uint32_t *", c.items), c.valid, self._rows.n, unknown)
        fixed = len(LAYOUTS[self.name])
        event = self._events[i - fixed] if i >= fixed else None
        metadata = {b"unit": self.time_unit} if kind.is_time else {}
        if event and event.unit:
            metadata[b"unit"] = utf8(event.unit).encode()
        if event and event.long_name:
            metadata[b"description"] = utf8(event.long_name).encode()
        return ArrowColumn(
            utf8(kind.name).encode(),
            kind.format,
            address_of(c.items),
            kind.nullable,
            address_of(c.valid),
            texts.get(kind.texts if isinstance(kind.texts, str) else kind.name),
            metadata,
        )

    def _metadata(self) -> dict[bytes, bytes]:
        view = next(view for view, names in TABLES.items() if self.name in names)
        found = {
            "version": __version__,
            "view": view,
            "format": ", ".join(dict.fromkeys(self._model.formats)),
            "table": self.name,
        }
        if view != "graph":
            found["clock"] = self.time_unit.decode()
        return {key.encode(): value.encode() for key, value in found.items()}

    def _change_part(self, batch: Batch) -> None:
        known = len(self._events)
        columns = match_part(self._model, batch.part, int(batch.c.n_values), self._events)
        for event in self._events[known:]:
            if self._given:
                raise FastprofError(
                    f"{inputs_of(self._model)}part {batch.part + 1} counts {event.name}, which the {CAPACITY:,} rows "
                    "before do not, and all rows of a table have the same columns: choose one part, or merge first"
                )
            taken = {kind.name.casefold() for kind in self._layout} | self._elsewhere
            self._layout.append(_Kind(unused(event.name, taken), b"l", True))
            self._built.append(self.scan.all_values or self.scan.reads(self._layout[-1].name))
            self._add(self._layout[-1], self._built[-1])
        first = len(LAYOUTS[self.name])
        self.c.value_columns = self._value_columns = ffi.new("uint32_t[]", [first + k for k in columns] or [0])
        self.c.n_value_columns = len(columns)
        positions = self._model.parts[batch.part].positions
        self.c.has_addresses, self.c.has_lines = "instr" in positions, "line" in positions


def unused(name: str, taken: Container[str]) -> str:
    """`name`, or name_2, name_3 and so on if it is taken, ignoring case.  `taken`: case-folded names."""
    found, n = name, 1
    while found.casefold() in taken:
        n += 1
        found = f"{name}_{n}"
    return found


def utf8(text: str) -> str:
    """Valid UTF-8 without NUL."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\0", "\ufffd")


def _label_text(model: Model, label: int) -> str:
    """A label set as JSON: {"bytes": 512, "size [kilobytes]": 4, "thread": "7"}.  A repeated key has a list.
    Keys and lists are sorted, so equal sets have equal texts, independent of the order of recording."""
    found: list[tuple[str, str | int]] = []
    while label:
        label, key, string, low, high, unit = model.row("labels", label)
        number = low | high << 32
        name, unit_name = _text(model, key), _text(model, unit)
        value = _text(model, string) if string else number - ((number >> 63) << 64)
        found.append((f"{name} [{unit_name}]" if unit_name and unit_name != name else name, value))
    by_key: dict[str, Any] = {}
    for name, value in sorted(found, key=lambda label: (label[0], isinstance(label[1], str), label[1])):
        if name not in by_key:
            by_key[name] = value
        elif isinstance(by_key[name], list):
            by_key[name].append(value)
        else:
            by_key[name] = [by_key[name], value]
    return _encode()(by_key)


@cache
def _encode() -> Callable[[Any], str]:
    from json import JSONEncoder  # for tables with labels only

    return JSONEncoder(ensure_ascii=False).encode


def _text(model: Model, string: int) -> str:
    return model.string(string).decode("utf-8", "backslashreplace")


def _needed(batches: Iterable[Batch], model: Model, scan: Scan, *, numbered: bool) -> Iterator[Batch]:
    """The batches without the rows of threads that a query does not read, unless it reads numbers of calls, which count
    those of all threads.  Calls of a thread depend on no other one."""
    if scan.threads is None or (numbered and (scan.reads("id") or scan.reads("parent"))):
        yield from batches
        return
    chosen, mask = ffi.new("struct fp_select *"), mask_of_threads(model, scan.threads)
    chosen.last_time = UINT64
    for batch in batches:
        mask.show(chosen.threads)
        lib.fp_select_rows(chosen, batch.c, 0)
        yield batch


def of_timeline(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Rows]:
    """The table of a timeline, 128 Ki rows at a time; at least one batch, which may be empty.

    Errors: UsageError if one clock is known and another is not; FastprofError for a time of 2^63 nanoseconds or more.
    """
    table = _Table(options[TABLE] or TABLES["timeline"][0], model, log, holds)
    spans = table.name == "spans"
    clocks = Clocks(model, options)
    part, on_cpus = -1, 0
    batches = _needed(batches, model, table.scan, numbered=spans)
    for batch in nest(batches, model, options, log) if spans else batches:
        if batch.part != part:
            part = batch.part
            if spans:  # `nest` has converted times to nanoseconds if the clock is known
                in_ns = bool(model.parts[part].extra["ticks_per_second"])
            else:
                lib.fp_ends_tables_clock(table.c, clocks.of(part))
                in_ns = clocks.in_ns
            table.time_unit = b"ns" if in_ns else b"ticks"
        on_cpus += lib.fp_unrepresentable_cpus(batch.c) if spans else 0
        yield from table.put(batch)
    yield from table.end()
    if not holds.all_tables:
        log.count(REPORTED["cpus"], on_cpus)
    if not spans:
        clocks.log_to(log)


def of_stacks(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Rows]:
    """The table of stacks.  Errors: FastprofError for value types that first appear in a later part."""
    return _rows(options[TABLE] or TABLES["stacks"][0], batches, model, log, holds)


def of_graph(
    batches: Iterable[Batch], model: Model, options: Options, log: Log, holds: Capabilities = EVERYTHING
) -> Iterator[Rows]:
    """The table of a graph."""
    return _rows("graph", batches, model, log, holds)


def _rows(name: str, batches: Iterable[Batch], model: Model, log: Log, holds: Capabilities) -> Iterator[Rows]:
    table = _Table(name, model, log, holds)
    for batch in batches:
        yield from table.put(batch)
    yield from table.end()
