"""The model and the batch as Python sees them: thin owners of the C structs.

Names, frames and contexts, which may be many, live in C tables with dense
ids (`csrc/core/model.h`).  Value types, parts and free-text lines, of which a
profile has a handful, are the plain Python objects of this file.
"""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import index

from fastprof.core import text_counts
from fastprof.core._c import ffi, lib
from fastprof.core._typing import TYPE_CHECKING, Any, Literal, NamedTuple, T, fp_table
from fastprof.core.c_memory import address_of, enough, owned
from fastprof.core.errors import FastprofError, inputs_of
from fastprof.core.thread_names import Names

if TYPE_CHECKING:
    from fastprof.core.arrow_column import ArrowColumn
    from fastprof.core.times import Span

# The words of enum fp_op and enum fp_kind: the values of the columns `op` and `kind`, by which `info` counts records
OPS = {
    lib.FP_OP_ENTER: "enter",
    lib.FP_OP_EXIT: "exit",
    lib.FP_OP_TAIL_EXIT: "tail exit",
    lib.FP_OP_ENTER_ARGS: "enter with arguments",
    lib.FP_OP_ARGUMENT: "argument",
    lib.FP_OP_CUSTOM: "custom event",
    lib.FP_OP_TYPED: "typed event",
}
KINDS = {
    lib.FP_COST: "cost",
    lib.FP_CALL: "call",
    lib.FP_JUMP: "jump",
    lib.FP_JCND: "conditional jump",
    lib.FP_BLOCK: "empty block",
}
VIEWS = {"timeline": lib.FP_TIMELINE, "stacks": lib.FP_STACKS, "graph": lib.FP_GRAPH}

# column -> (memoryview format, item bytes)
_FORMATS: dict[str, tuple[Literal["Q", "I", "H", "B"], int]] = {
    "uint64_t": ("Q", 8),
    "uint32_t": ("I", 4),
    "uint16_t": ("H", 2),
    "uint8_t": ("B", 1),
}
_ARROW = {"uint64_t": b"L", "uint32_t": b"I", "uint16_t": b"S", "uint8_t": b"C"}
_COLUMNS: dict[str, dict[str, str]] = {
    "timeline": {
        "time": "uint64_t",
        "aux": "uint64_t",
        "function": "uint32_t",
        "thread": "uint32_t",
        "cpu": "uint16_t",
        "op": "uint8_t",
    },
    "stacks": {"time": "uint64_t", "stack": "uint32_t", "thread": "uint32_t", "label": "uint32_t"},
    "graph": {
        "kind": "uint8_t",
        "function": "uint32_t",
        "file": "uint32_t",
        "line": "uint32_t",
        "address": "uint64_t",
        "bb": "uint64_t",
        "callee": "uint32_t",
        "target_file": "uint32_t",
        "target_line": "uint32_t",
        "target_address": "uint64_t",
        "target_bb": "uint64_t",
        "count": "uint64_t",
        "count2": "uint64_t",
    },
}
_NO_ID = lib.FP_NO_ID  # an attribute of `lib` takes twice as long
_NAMES = 8 << 20  # bytes of names beyond which they leave memory
_STEP = 32 << 20  # bytes by which a model grows between two checks of available memory
MAX_VALUE_TYPES = 1024  # of a part: each is a column in every batch, however short its name in the file


class ValueType(NamedTuple):
    """One column of values: an event of Callgrind, a sample type of pprof.

    `formula` is the text of an inherited event ("Ir + 2 Dr") or "".
    """

    name: str
    unit: str = ""
    long_name: str = ""
    formula: str = ""


class Part:
    """The header of a run of batches: one dump, one thread's section, one input.

    Text from a file is bytes, so that no encoding loses anything.  `descriptions` are (key, value) of Callgrind's
    `desc:` lines, or comments of other formats with key b"".  FIELDS and EXTRA declare the types.
    """

    # Written out: importing dataclasses costs a tenth of a short conversion.
    def __init__(
        self,
        value_types: list[ValueType] | None = None,
        positions: tuple[str, ...] = ("line",),  # of instr, bb, line
        *,
        creator: bytes = b"",
        pid: int | None = None,
        thread: int | None = None,
        number: int | None = None,
        command: bytes | None = None,
        trigger: bytes | None = None,
        descriptions: list[tuple[bytes, bytes]] | None = None,
        comments: list[bytes] | None = None,
        summary: list[int] | None = None,
        totals: list[int] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.value_types = value_types or []
        self.positions = positions
        self.creator = creator
        self.pid = pid
        self.thread = thread
        self.number = number
        self.command = command
        self.trigger = trigger
        self.descriptions = descriptions or []
        self.comments = comments or []
        # Totals stated by the source, not computed from rows.
        self.summary = summary
        self.totals = totals
        self.extra = extra or {}

    def named(self, name: str) -> Any:
        """A field; `pid` and `thread` are text if they are not numbers."""
        return self.extra.get(f"{name}_text", getattr(self, name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"Part({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


# All keys of a part's `extra`, with the shape of each value (core/schema.py).  A key is present only if the source
# states it.  core/parts.py merges them.
EXTRA: dict[str, Any] = {
    # The name of the default value type.  By pprof; by bridges that make stacks.
    "default_sample_type": str,
    # The duration of the recording, in nanoseconds.  By pprof.
    "duration_ns": int,
    # The start of the recording, in nanoseconds since 1970.  By pprof.
    "time_ns": int,
    # The sampling period: a number, and its (type, unit).  By pprof, gperftools and OProfile.
    "period": int,
    "period_type": (str, str),
    # Regular expressions of functions that viewers drop with their callees, and of functions that they keep
    # nevertheless.  By pprof; the former by gperftools, for the profiler's functions.
    "drop_frames": bytes,
    "keep_frames": bytes,
    # The name of the main program's object, if addresses do not show it.  By pprof, and by the estimate of
    # stacks, which takes the most expensive object.
    "program": bytes,
    # The URL of documentation of the profile.  By pprof.
    "doc_url": bytes,
    # Events that are not columns: computed from others, or only described.  By Callgrind.
    "inherited": [ValueType],
    # Comments after the part's first row.  By Callgrind.
    "remarks": [bytes],
    # The summary also followed the rows.  By Callgrind.
    "late_summary": bool,
    # A process or thread identified by text instead of a number.  By Callgrind.
    "pid_text": bytes,
    "thread_text": bytes,
    # Rows are self costs alone: calls, and thus inclusive costs, are unknown.  By Cachegrind.
    "self_costs": bool,
    # The CPU of the samples, if CPUs are kept separate.  By OProfile.
    "cpu": range(1 << 63),
    # Keys of labels added by a bridge, not by the source.  By the stack machine: cpu.
    "labels": (str, ...),
    # Labels of the input (--label-path and others), sorted by key.  By graphs, whose rows have none.
    "input_labels": ((bytes, bytes), ...),
    # Names of processes and threads, by their ids.  By formats that have them.
    "process_names": [(int, bytes)],
    "thread_names": [(int, int, bytes)],
    # Their ids in the source by their numbers in the model, if these differ: texts, ids beyond 32 bits; empty: none.
    "own_ids": [(int, bytes)],
    # The frequency of the clock of a timeline's times; 0: unknown.  By XRay.
    "ticks_per_second": range(1 << 64),
    # The source of calls: number of threads, first and last tick, and repairs.  By the stack machine.
    "threads": int,
    "ticks": (int, int),
    "mended": {str: int},
    # In a merged part: the number of its sources, their differing texts, the keys of this table in
    # which they differ, and the orders of their value types.  By core/parts.py.
    "merged": {
        "parts": range(1, 1 << 63),
        "creator": text_counts.SHAPE,
        "pid": text_counts.SHAPE,
        "thread": text_counts.SHAPE,
        "trigger": text_counts.SHAPE,
        "command": text_counts.SHAPE,
        "comments": text_counts.SHAPE,
        "remarks": text_counts.SHAPE,
        "descriptions": (int, [(bytes, text_counts.SHAPE)]),
        "unlike": [str],
        "orders": [[(str, str)]],  # of names and units of value types
    },
}

# The fields of a part.
FIELDS: dict[str, Any] = {
    "value_types": [ValueType],
    "positions": (str, ...),
    "creator": bytes,
    "pid": int,
    "thread": int,
    "number": int,
    "command": bytes,
    "trigger": bytes,
    "descriptions": [(bytes, bytes)],
    "comments": [bytes],
    "summary": [int],
    "totals": [int],
    "extra": dict,
}


_TABLES = ("strings", "objects", "mappings", "functions", "lines", "frames", "stacks", "labels", "threads")


class Function(NamedTuple):
    """A row of the function table, its strings as bytes."""

    object: bytes
    file: bytes
    name: bytes
    system_name: bytes
    line: int


class Model:
    """Everything that batches refer to by id: C tables and parts.

    `numbers`: the functions' numbers in the source, if names come from another file.  `inputs` are the names of the
    inputs, `formats` their formats.  Owns the C model; batches and readers borrow it.
    """

    def __init__(self) -> None:
        self.c = owned(lib.fp_model_new(), "the model")
        self._strings = ffi.addressof(self.c.strings)
        self.parts: list[Part] = []
        # By part: an earlier one of the same profile, all of whose value types it has, and those found since.
        self.continued: dict[int, int] = {}
        self.open_parts: set[int] = set()  # parts that a later one may continue
        self.numbers: dict[int, int] = {}  # by function id
        self.inputs: list[str] = []
        self.formats: list[str] = []
        self.names = Names()  # of processes and threads
        self.function_texts: dict[int, str] = {}  # of functions whose name another one has: see only_names
        self.titles: dict[str, str] = {}  # names to show by input, if its own says nothing, as that of a member
        self.times: list[Span] = []  # of the inputs that --time-range applies to
        self.n_cut = 0  # names that readers truncated and reported
        self._checked = 0  # bytes of the tables when check_memory last queried the system
        self.names_file: list[Any] | None = []  # of names that left memory; None: they stay, as this process may fork
        self.keeps_stacks = 0  # how many hold rows that refer to stacks: see core/held.py
        self.takes_walks = False  # the end copies stacks of one walk, though it keeps stacks
        self.gives_walk = False  # its rows are those of such a walk
        self.has_last_calls = False  # its rows are for Go's compiler: bridges/rows/last_call.py
        self.spills: list[Callable[[], None]] = []  # each ends references to stacks, before they are removed
        self.lock = RLock()  # hold it to read or change anything: several threads may use the model
        self.nbytes_of_threads: dict[int, Callable[[int, int], int]] = {}  # by input, if known: bytes by pid and tid

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Release the lock, which the caller holds, during the block."""
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()

    def again(self) -> Model:
        """Start over with the same input: keep tables and ids, drop the parts, which are added again."""
        from copy import copy

        model = copy(self)
        model.parts, model.inputs, model.formats, model.times = [], [], [], []
        model.continued, model.open_parts = {}, set()
        return model

    def continues(self, part: int, earlier: int) -> bool:
        """Whether a part continues an earlier one, directly or through parts that have no rows."""
        while (part := self.continued.get(part, -1)) > earlier:
            pass
        return part == earlier >= 0

    def whole_parts(self, indices: Iterable[int]) -> list[Part]:
        """These parts without those that others of them continue."""
        indices = [*indices]
        continued = set[int]()
        for part in indices:
            at = part
            while (at := self.continued.get(at, -1)) >= 0 and at not in continued:
                continued.add(at)
        return [self.parts[index] for index in indices if index not in continued]

    def intern(self, text: str | bytes) -> int:
        """The id of a string; str is stored as UTF-8."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        value = lib.fp_strings_intern(self._strings, data, len(data))
        return value if value != _NO_ID else self._id(value)

    # These methods return the id of a row, added if new.  Errors: MemoryError; IndexError for an unknown id;
    # FastprofError for a number that does not fit its column.

    def object(self, name: str | bytes, build_id: str | bytes = b"") -> int:
        return self._row(lib.fp_model_object, self.intern(name), self.intern(build_id) if build_id else 0)

    def mapping(self, object_id: int, start: int, limit: int, offset: int = 0, flags: int = 0) -> int:
        """Addresses `start` to `limit` - 1, which map the object's file from `offset` on; FP_MAPPING_* flags."""
        n, object_id = self.c.objects.n, index(object_id)
        if not 0 <= object_id < n:
            raise IndexError(f"objects {object_id} of {n}")
        return self._row(lib.fp_model_mapping, object_id, start, limit, offset, flags)

    def function(
        self,
        name: str | bytes,
        file: str | bytes = b"",
        object_id: int = 0,
        system_name: str | bytes = b"",
        line: int = 0,
    ) -> int:
        """The id of a function; its identity is all five arguments."""
        object_id = self._known("objects", object_id)
        strings = self.intern(file), self.intern(name), self.intern(system_name)
        return self._row(lib.fp_model_function, object_id, *strings, line)

    def function_of(self, name: int, file: int, object_id: int) -> int:
        """The id of a function from ids of strings, for callers that keep them."""
        if not (0 <= name < self._strings.n and 0 <= file < self._strings.n):
            raise IndexError(f"strings {name} and {file} of {self._strings.n}")
        return self._row(lib.fp_model_function, self._known("objects", object_id), file, name, 0, 0)

    def line(self, function_id: int, line: int = 0, column: int = 0, outer: int = 0) -> int:
        """An entry of a line chain; `outer` is the entry into which it is inlined."""
        function_id = self._known("functions", function_id)
        outer = self._known("lines", outer)
        return self._row(lib.fp_model_line, function_id, line, column, outer)

    def frame(self, mapping_id: int, address: int, flags: int = 0, lines: int = 0) -> int:
        """`lines` is the innermost entry of a line chain; FP_FRAME_* flags."""
        mapping_id = self._known("mappings", mapping_id)
        lines = self._known("lines", lines)
        return self._row(lib.fp_model_frame, mapping_id, address, flags, lines)

    def stack(self, parent: int, frame_id: int) -> int:
        """The stack of `frame_id` called from the stack `parent` (0: no caller)."""
        parent = self._known("stacks", parent)
        frame_id = self._known("frames", frame_id)
        return self._row(lib.fp_model_stack, parent, frame_id)

    def label(
        self, key: str | bytes, string: str | bytes = b"", number: int = 0, unit: str | bytes = b"", after: int = 0
    ) -> int:
        """The label set `after` (0: none) plus one label."""
        after = self._known("labels", after)
        strings = self.intern(key), self.intern(string)
        return self._row(lib.fp_model_label, after, *strings, number, self.intern(unit))

    def input(self) -> int:
        """The number of a new input, whose threads are distinct from those of other inputs."""
        return self._row(lib.fp_model_input)

    def thread(self, pid: int, tid: int, input_: int = 0) -> int:
        """A thread of an input; use input 0 if inputs need not be distinguished."""
        return self._row(lib.fp_model_thread, input_, pid, tid)

    def counter_unit(self, name: int, unit: bytes) -> None:
        lib.fp_model_counter_unit(self.c, name, unit, len(unit))

    def check_memory(self) -> None:
        """Call it for each batch: many names move to a temporary file.  Errors: FastprofError when tables and distinct
        stacks, which cannot be spilled, need more memory than is available: the machine would swap or kill a process.
        """
        if lib.fp_model_rest_names(self.c, _NAMES) and self.names_file is not None:
            from fastprof.core.spill import names_to_file

            names_to_file(self._strings, self.names_file)
        n = int(lib.fp_model_bytes(self.c))
        if n >= self._checked + _STEP:
            from fastprof.core.free_memory import check_left

            check_left(inputs_of(self), n, n - self._checked + _STEP)
            self._checked = n

    def empty_stacks(self, *, taken: bool = False) -> None:
        """Remove all stacks; their ids are reused.  Only if they are not needed any more (Capabilities.keeps_stacks).

        Does nothing the first time if a reader needs them.  `taken`: the end that keeps stacks has them itself.
        """
        if self.c.n_waiting:
            self.c.is_refused = True
        elif taken or not self.keeps_stacks:
            for spill in self.spills:
                spill()
            lib.fp_model_empty_stacks(self.c)

    def add_part(self, part: Part) -> int:
        """Append a part and return its index, which batches carry.

        Errors: FastprofError if a summary, which may be a sum of several, exceeds 64 bits.
        """
        for value_type, value in zip(part.value_types, part.summary or (), strict=False):
            if abs(value) >= 1 << 63:
                what = f"the sum of the summary: lines in value type {value_type.name} exceeds 2^63 - 1"
                raise FastprofError(f"{inputs_of(self)}{what}")
        self.parts.append(part)
        return len(self.parts) - 1

    def string(self, string_id: int) -> bytes:
        strings, string_id = self.c.strings, index(string_id)
        if not 0 <= string_id < strings.n:
            raise IndexError(f"string {string_id} of {strings.n}")
        start = strings.start[string_id]
        return bytes(ffi.buffer(strings.bytes + start, strings.start[string_id + 1] - start))

    def row(self, table: str, row_id: int) -> tuple[int, ...]:
        """The words of a row of "objects", "mappings", "functions", "lines", "frames", ...

        Errors: KeyError for another table, IndexError for an unknown id.
        """
        row_id, t = self._known(table, row_id), self._table(table)
        return tuple(t.words[row_id * t.width : (row_id + 1) * t.width])

    def count(self, table: str) -> int:
        """The number of ids in a table, including the reserved 0."""
        return int(self._table(table).n)

    def distinct_functions(self) -> int:
        """The number of functions that are not the same, as verbs show them."""
        return self._id(lib.fp_model_distinct_functions(self.c))

    def get_function(self, function_id: int) -> Function:
        object_id, file, name, system_name, line = self.row("functions", function_id)
        object_name = self.string(self.row("objects", object_id)[0]) if object_id else b""
        return Function(object_name, self.string(file), self.string(name), self.string(system_name), line)

    def _table(self, name: str) -> fp_table:
        if name not in _TABLES:
            raise KeyError(f"unknown table {name!r:.80}, expected {', '.join(_TABLES)}")
        table: fp_table = getattr(self.c, name)
        return table

    def _known(self, table: str, row_id: int) -> int:
        """The id as an int: an object of another type may convert to a different number each time."""
        if table == "strings":
            raise KeyError("strings are not rows; use `string`")
        n, row_id = self._table(table).n, index(row_id)
        if not 0 <= row_id < n:
            raise IndexError(f"{table} {row_id} of {n}")
        return row_id

    def _row(self, enter: Callable[..., int], *columns: int) -> int:
        try:
            value = enter(self.c, *columns)
        except OverflowError as error:
            row = f"{enter.__name__.removeprefix('fp_model_')} {', '.join(map(str, columns))}"
            raise FastprofError(f"{inputs_of(self)}{row}: {error}") from None
        return value if value != _NO_ID else self._id(value)

    @staticmethod
    def _id(value: int) -> int:
        if value == _NO_ID:
            raise MemoryError("no memory for the model's tables")
        return value


class Batch:
    """A run of rows as columns.  Batches of readers and bridges are valid until these are pulled again.

    `batch["time"]` is a memoryview over C memory, without a copy; NumPy takes
    it by `numpy.asarray`, Arrow by the PyCapsule interface.
    """

    def __init__(self, view: str, capacity: int, n_values: int = 0) -> None:
        if capacity < 1:
            raise ValueError(f"a batch of {capacity} rows")
        self.view = view
        self.c = owned(lib.fp_batch_new(VIEWS[view], capacity, n_values), "a batch")

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} rows, {self.view}: {', '.join(self.columns)}>"

    def copy(self) -> Batch:
        """A copy whose rows stay valid."""
        other = Batch.__new__(Batch)
        other.view = self.view
        other.c = owned(lib.fp_batch_copy(self.c), "a batch")
        return other

    def __len__(self) -> int:
        return int(self.c.n)

    @property
    def has_rows(self) -> bool:
        """Whether any row is not the beginning of a buffer."""
        if self.view != "timeline":
            return len(self) > 0
        return bytes(self["op"]).count(lib.FP_OP_BUFFER) < len(self)

    @property
    def part(self) -> int:
        return int(self.c.part)

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns of this view; value columns are `values(k)`."""
        return tuple(_COLUMNS[self.view])

    def _pointer(self, pointer: T) -> T:
        """The pointer, which now keeps the batch's memory alive."""
        c = self.c

        def keep(_: T) -> None:
            assert c  # kept alive by this closure

        return ffi.gc(pointer, keep)

    def __getitem__(self, column: str) -> memoryview:
        format_, width = _FORMATS[_COLUMNS[self.view][column]]
        pointer = self._pointer(getattr(self.c, column))
        return memoryview(ffi.buffer(pointer, self.c.n * width)).cast(format_)

    def values(self, k: int) -> memoryview:
        """Value column `k`, signed 64-bit."""
        k = index(k)  # with NumPy's int16 the product below would wrap around
        if not 0 <= k < self.c.n_values:
            raise IndexError(f"value column {k} of {self.c.n_values}")
        return memoryview(ffi.buffer(self._pointer(self.c.values + k * self.c.cap), self.c.n * 8)).cast("q")

    def payload(self, row: int) -> bytes:
        """The payload of an event row of a timeline.  Errors: IndexError; ValueError for a row without one."""
        row = index(row)
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        if self.view != "timeline" or self["op"][row] not in (lib.FP_OP_CUSTOM, lib.FP_OP_TYPED):
            raise ValueError(f"row {row} is not an event; only events have a payload")
        slice_ = self["aux"][row]
        if (slice_ >> 32) + (slice_ & 0xFFFFFFFF) > self.c.bytes_n:
            raise ValueError(f"row {row}: the batch is no longer valid")
        return bytes(ffi.buffer(self.c.bytes + (slice_ >> 32), slice_ & 0xFFFFFFFF))

    # ---- Arrow (PyCapsule interface) -----------------------------------

    def arrow_columns(self) -> list[ArrowColumn]:
        """The columns, then the values as value0, value1, ..."""
        from fastprof.core.arrow_column import ArrowColumn

        c = self.c
        columns = [
            ArrowColumn(name.encode(), _ARROW[type_], address_of(getattr(c, name)))
            for name, type_ in _COLUMNS[self.view].items()
        ]
        start = address_of(c.values)
        return columns + [ArrowColumn(b"value%d" % k, b"l", start + 8 * k * c.cap) for k in range(c.n_values)]

    def __arrow_c_schema__(self) -> object:
        from fastprof.core import _arrow

        return _arrow.schema(self.arrow_columns())

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The rows as an Arrow struct array over the batch's own memory.

        The array keeps that memory alive, but like the batch's its rows are valid only until the reader or bridge is
        pulled again.
        """
        from fastprof.core import _arrow

        columns = self.arrow_columns()
        return _arrow.schema(columns), _arrow.array(self, len(self), columns)


def empty(batch: Batch) -> None:
    """Removes the rows."""
    lib.fp_batch_reset(batch.c)


def set_values(batch: Batch, n_values: int) -> None:
    """Sets the number of value columns.  Errors: MemoryError."""
    enough(lib.fp_batch_set_values(batch.c, n_values))
