"""The tables of docs/tables.md as batches, from columns of any origin (_columns.pyx, _tables.pyx).

A chunk is some rows of a table: columns by name, each an Array of Arrow's, a list, or an object with a buffer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.c_memory import address_of
from fastprof.core.engine import CAPACITY
from fastprof.core.model import KINDS, Batch, Model, Part, ValueType, empty
from fastprof.formats.arrow._columns import Array, Cells, Stream, convert, read
from fastprof.formats.arrow._tables import Spans, Stacks, Threads, feed_graph, resolve

Chunk = Mapping[str, Any]
Fail = Callable[[str], Exception]
# Names of columns, chunks, and what metadata state: units by column, and the clock ("" if they do not)
Columns = tuple[list[str], Iterable[Chunk], dict[str, str], str]

_TEXT, _NUMBER, _EITHER = "texts", "numbers", ""
_THREAD = {"process": _EITHER, "thread": _EITHER}
_PLACE = {"function": _TEXT, "file": _TEXT, "line": _NUMBER, "address": _NUMBER, "object": _TEXT}
COLUMNS: dict[str, dict[str, str]] = {
    "spans": {
        "function": _TEXT,
        **dict.fromkeys(("ts", "end", "dur"), _NUMBER),
        **_THREAD,
        **dict.fromkeys(("object", "category"), _TEXT),
        **dict.fromkeys(("depth", "id", "self", "parent"), _NUMBER),
    },
    "samples": {"ts": _NUMBER, "stack_id": _NUMBER, "function": _TEXT, **_THREAD, "labels": _TEXT},
    "frames": {"stack_id": _NUMBER, "depth": _NUMBER, **_PLACE},
    "graph": {"kind": _TEXT, **_PLACE, "callee": _TEXT, "calls": _NUMBER},
}
_NEEDED = {
    "spans": ("function", "ts"),
    "samples": ("stack_id",),
    "frames": ("stack_id", "depth"),
    "graph": ("kind", "function"),
}
VIEWS = {"spans": "timeline", "samples": "stacks", "graph": "graph"}
_ALIASES = {"name": "function", "start": "ts", "duration": "dur", "tid": "thread", "pid": "process"}
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "ticks": 1}  # nanoseconds of one; a tick is none


class Layout(NamedTuple):
    """What the columns of a table are."""

    table: str
    names: dict[str, str]  # by the name in docs/tables.md: its column
    values: list[tuple[str, str]]  # others: the column of a value type, and its unit
    scale: int = 1  # nanoseconds of a unit of time

    def cells(
        self, chunk: Chunk, model: Model, fail: Fail, base: int
    ) -> tuple[dict[str, Cells], list[Cells | None], int]:
        """The cells of columns and of values (None: all are missing), and the number of rows; `base`: rows before."""
        found: dict[str, Cells] = {}
        kinds = COLUMNS[self.table]
        for name, column in [*self.names.items(), *((column, column) for column, _ in self.values)]:
            scale = {"ts": self.scale, "end": self.scale, "dur": self.scale, "address": 0}.get(name, 1)
            with failing(fail, f"column {column!r:.80}: ", base):
                values = chunk[column] if isinstance(chunk[column], Array) else _times(chunk[column])
                how: Any = read if isinstance(values, Array) else convert
                cells = found[name] = how(values, address_of(model.c), scale)
                wanted = kinds.get(name, _NUMBER)
                if wanted and cells.is_text != (wanted == _TEXT) and not cells.is_empty:
                    raise ValueError(f"has {_NUMBER if wanted == _TEXT else _TEXT}, expected {wanted}")
                if wanted and cells.is_text != (wanted == _TEXT):
                    del found[name]  # has no value at all, and so no type
        lengths = {name: len(cells) for name, cells in found.items()}
        if len({*lengths.values()}) > 1:
            each = ", ".join(f"{self.names.get(name, name)} {length}" for name, length in lengths.items())
            raise fail(f"the columns have different lengths: {each}")
        n = max(lengths.values(), default=0)
        if lack := [name for name in _NEEDED[self.table] if name not in found] if n else []:
            raise fail(f"column {self.names[lack[0]]!r:.80} has no values")
        return found, [found.get(name) for name, _ in self.values], n


def _times(column: Any) -> Any:
    """A column of dates or durations in nanoseconds, by NumPy, which its maker imported; others unchanged."""
    numpy: Any = sys.modules.get("numpy")
    if not numpy or not str(getattr(column, "dtype", "")).lower().startswith(("datetime", "timedelta", "duration")):
        return column
    times = numpy.asarray(column)
    if times.dtype.kind not in "mM" or times.ndim != 1:
        return times
    items = times.astype(f"{times.dtype.kind}8[ns]").view("i8")
    valid = numpy.packbits(~numpy.isnat(times), bitorder="little")
    buffers = [(array.ctypes.data, array.nbytes) for array in (valid, items)]
    return Array.of(b"tsn:", len(items), buffers, None, (valid, items))


@contextmanager
def failing(fail: Fail, what: str, base: int = 0) -> Iterator[None]:
    """Within it a ValueError becomes the error that `fail` makes of its text; rows are counted from the first chunk."""
    try:
        yield
    except ValueError as error:
        text = re.sub(r"^row (\d+)", lambda found: f"row {int(found[1]) + base:,}", str(error))
        raise fail(what + text) from None


def layout(
    table: str, names: Iterable[str], fail: Fail, units: Mapping[str, str] | None = None, scale: int = 1
) -> Layout:
    """The layout of a table with columns of these names; `units` are those of value types.

    Errors: those of `fail` for a column that is missing, unknown or there twice."""
    known, found, others = COLUMNS[table], dict[str, str](), list[str]()
    for column in names:
        name = column if column in known else _ALIASES.get(column, column)
        if name in found or column in others:
            raise fail(f"the columns {found.get(name, column)!r:.80} and {column!r:.80} are the same")
        if name in known:
            found[name] = column
        else:
            others.append(column)
    lack = [name for name in _NEEDED[table] if name not in found]
    if table == "spans" and not lack and not {"end", "dur"} & found.keys():
        lack = ["end or dur"]
    if lack:
        raise fail(f"has no column {', '.join(lack)}")
    if others and table in ("spans", "frames"):
        raise fail(f"the column {others[0]!r:.80} is unknown; known ones are {', '.join(known)}")
    for name in ("self", "parent"):  # follow from the others
        if table == "spans":
            found.pop(name, None)
    return Layout(table, found, [(name, (units or {}).get(name, "")) for name in others], scale)


def guessed(names: Iterable[str]) -> str | None:
    """The table with columns of these names; None if there is no such table."""
    found = {*names}
    if {"ts", "dur", "function"} <= found:
        return "spans"
    if {"stack_id"} <= found:
        return "frames" if {"depth"} <= found else "samples"
    return "graph" if {"kind", "function", "calls"} <= found else None


def described(
    columns: Iterable[tuple[Any, ...]], metadata: Mapping[bytes, bytes]
) -> tuple[list[str], dict[str, str], str]:
    """Names, units and clock of the columns that have a type."""
    there = [(name, data) for name, kind, data, *_ in columns if kind != b"n"]
    found = [(name, data.get(b"unit", b"").decode("utf-8", "replace")) for name, data in there]
    units = {name: unit for name, unit in found if unit}
    return [name for name, _ in found], units, metadata.get(b"clock", b"").decode("utf-8", "replace")


def of_stream(stream: Stream, fail: Fail) -> Columns:
    """The columns of Arrow's C stream."""

    def chunks() -> Iterator[Chunk]:
        while True:
            with failing(fail, ""):
                arrays = next(stream, None)
            if arrays is None:
                return
            found = zip(stream.columns, arrays, strict=True)
            yield {column[0]: array for column, array in found if column[1] != b"n"}

    names, units, clock = described(stream.columns, stream.metadata)
    return names, chunks(), units, clock


class Rows:
    """Batches of one table.  `add` chunks, then read `batches` once."""

    def __init__(self, of: Layout, model: Model, part: Part, input_: int, fail: Fail) -> None:
        self.of, self.model, self.fail = of, model, fail
        self.part = model.add_part(part)
        self._input = input_
        self._c = address_of(model.c)
        self._threads = Threads(self._c, input_)
        self._base = 0

    def batches(self, chunks: Iterable[Chunk]) -> Iterator[Batch]:
        """Each batch is valid until the next one is requested."""
        return {"spans": self._spans, "samples": self._samples, "graph": self._graph}[self.of.table](chunks)

    def _read(self, chunks: Iterable[Chunk], of: Layout) -> Iterator[tuple[dict[str, Cells], list[Cells | None], int]]:
        self._base = 0
        for chunk in filter(None, chunks):  # one without columns has no rows
            cells, values, n = of.cells(chunk, self.model, self.fail, self._base)
            if n:
                yield cells, values, n
            self._base += n
            self.model.check_memory()

    def _batch(self, view: str) -> Batch:
        batch = Batch(view, CAPACITY[view], len(self.of.values))
        batch.c.part = self.part
        return batch

    def _name_threads(self) -> None:
        found = self._threads
        self.model.names.put(self.model.parts[self.part], self._input, found.processes, found.threads, found.ids)

    def _spans(self, chunks: Iterable[Chunk]) -> Iterator[Batch]:
        spans = Spans(self._c, self._threads)
        for cells, _, _ in self._read(chunks, self.of):
            with failing(self.fail, "", self._base):
                spans.add(cells)
        spans.sort()
        self._name_threads()
        batch, more = self._batch("timeline"), True
        while more:
            more = spans.feed(address_of(batch.c))
            yield batch
            empty(batch)

    def with_frames(self, chunks: Iterable[Chunk], of: Layout) -> None:
        """Add the frames of the stacks of samples, before these are read."""
        self._stacks = Stacks(self._c, self._threads)
        for cells, _, _ in self._read(chunks, of):
            with failing(self.fail, "frames: ", self._base):
                self._stacks.add_frames(cells)
        with failing(self.fail, "frames: "):
            self._stacks.sort()

    _stacks: Stacks | None = None

    def _samples(self, chunks: Iterable[Chunk]) -> Iterator[Batch]:
        stacks = self._stacks or Stacks(self._c, self._threads)
        batch = self._batch("stacks")
        for cells, values, n in self._read(chunks, self.of):
            start = 0
            while start < n:
                with failing(self.fail, "", self._base):
                    start = stacks.feed(address_of(batch.c), start, cells, values, self._labels)
                self._name_threads()
                yield batch
                empty(batch)

    def _labels(self, text: int) -> int:
        """The label set of a text as docs/tables.md describes it: {"bytes": 512, "key": ["a", "b"], "size [MB]": 4}."""
        from json import loads

        model, label = self.model, 0
        try:
            found = loads(model.string(text))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ValueError(f"labels are {model.string(text)[:80]!r}, expected an object of JSON")
        for key, value in found.items():
            for one in value if isinstance(value, list) else [value]:
                name, _, unit = key.partition(" [")
                unit = unit.removesuffix("]")
                if one == "":
                    continue
                if isinstance(one, str):
                    label = model.label(name, one, unit=unit, after=label)
                elif isinstance(one, int) and -(1 << 63) <= one < 1 << 63:
                    label = model.label(name, number=one, unit=unit, after=label)
                else:
                    raise ValueError(f"the label {key!r:.80} is {one!r:.40}, expected a text or an integer")
        return label

    def _graph(self, chunks: Iterable[Chunk]) -> Iterator[Batch]:
        functions: dict[int, dict[int, int]] = {}
        kinds = {self.model.intern(name): code for code, name in KINDS.items()}
        kept: list[Batch] = []  # until the functions of all callees are known
        part = self.model.parts[self.part]
        for cells, values, n in self._read(chunks, self.of):
            start = 0
            if "address" in cells and not cells["address"].is_empty:
                part.positions = "instr", "line"
            while start < n:
                kept.append(self._batch("graph"))
                with failing(self.fail, "", self._base):
                    start = feed_graph(self._c, address_of(kept[-1].c), start, cells, values, functions, kinds)
        for batch in kept:
            resolve(self._c, address_of(batch.c), functions)
            yield batch


def value_types(of: Layout) -> list[ValueType]:
    return [ValueType(name, unit) for name, unit in of.values]
