"""Counts attributes that a target cannot hold, once for each table entry that has them.

The registrations of formats declare what they lack: `Capabilities.lacks` and `Capabilities.header`.  Bridges and
writers count the rows that they drop.  Attributes of functions, objects, threads and parts are counted here, after the
last row, by entry, not by row.
"""

from collections.abc import Iterable, Iterator

from fastprof.bridges import names_processes
from fastprof.bridges.rows.reported import REPORTED
from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import Capabilities
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, ValueType
from fastprof.core.parts import comments_of, remarks_of

# What a target may lack, by the code of the log.
LACKS = frozenset(
    {
        "addresses",
        "build-ids",
        "call-objects",
        "call-places",
        "columns",
        "cpus",
        "default-type",
        "first-lines",
        "function-places",
        "idle-threads",
        "inherited-events",
        "long-names",
        "mappings",
        "objects",
        "parts",
        "system-names",
        "thread-names",
        "thread-numbers",
        "units",
        "value-names",
    }
)
# Codes that do not make the output an error: the rows are written without these attributes.
CODES = LACKS | {
    "call-times",
    "header-fields",
    "inlined",
    "inlined-calls",
    "joined-stacks",
    "part-addresses",
    "period",
    "start-time",
    "threads",
    "unshown-arcs",
}

# Fields of a part with their printed names; Capabilities.header lists those that the target keeps.
HEADER = {
    "command": "command",
    "comments": "comments",
    "cpu": "CPU",
    "descriptions": "descriptions",
    "doc_url": "URL",
    "drop_frames": "drop frames",
    "duration_ns": "duration",
    "keep_frames": "keep frames",
    "input_labels": "labels",
    "number": "part number",
    "period": "period",
    "pid": "process",
    "thread": "thread",
    "time_ns": "time",
    "trigger": "trigger",
}


class Unrepresentable:
    """Counts the losses between `given`, the rows read, and `taken`, the rows written."""

    def __init__(self, model: Model, holds: Capabilities, log: Log) -> None:
        self._model, self._holds, self._log = model, holds, log
        self._given: dict[int, str] = {}  # the view of each part
        self._taken: dict[int, str] = {}
        self._found = ffi.new("struct fp_unrepresentable *")
        self._events: set[ValueType] = set()  # inherited
        self._without_rows = 0  # parts of inputs without rows
        self._inputs = 0
        self._threads = False  # whether written rows have threads
        self._seen = bytearray()  # by thread: whether it has rows
        self._on_cpus = 0  # rows

    def given(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Pass on the rows of one input, and record what they have."""
        self._inputs += 1
        for batch in batches:
            if batch.part not in self._given:
                self._events |= _inherited([self._model.parts[batch.part]])  # of no use with a single value
            self._given[batch.part] = batch.view
            if "cpus" in self._holds.lacks:
                self._on_cpus += lib.fp_unrepresentable_cpus(batch.c)
            if self._holds.table:
                self._threads = self._threads or bool(lib.fp_unrepresentable_has_thread(batch.c))
            yield batch
        if not self._given:
            self._without_rows = len(self._model.parts)

    def taken(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        if self._holds.table:
            yield from batches
            return
        for batch in batches:
            self._taken[batch.part] = batch.view
            self._threads = self._threads or bool(lib.fp_unrepresentable_has_thread(batch.c))
            if "idle-threads" in self._holds.lacks:
                self._seen.extend(bytes(max(self._model.count("threads") - len(self._seen), 0)))
                lib.fp_unrepresentable_threads(batch.c, ffi.from_buffer(self._seen), len(self._seen))
            yield batch

    def log_counts(self) -> None:
        """Count the losses; call it when all rows have been written."""
        self._log.count(REPORTED["cpus"], self._on_cpus)
        sources = self._model.whole_parts(self._given)
        written = sources if self._holds.table else self._model.whole_parts(self._taken)
        without_rows = self._model.whole_parts(range(self._without_rows))
        self._log_header(sources or without_rows, written or without_rows)
        self._log_values(sources, written)
        self._log_entries()
        self._log_threads(sources or without_rows, written)
        self._log_parts(sources)

    def _log_header(self, sources: list[Part], written: list[Part]) -> None:
        kept = self._holds.header
        views = {*self._taken.values()}
        shown = (self._holds.labels and "stacks" in views) or any(names_processes(v, self._holds) for v in views)
        named = {name for part in sources for name in (*vars(part), *part.extra)}
        lost = [
            title
            for name, title in HEADER.items()
            if name in named
            and not (name == "number" and self._inputs > 1)  # merging renumbers parts
            and any(_has_field(part, name, len(sources)) for part in sources)
            and ((kept is not None and name not in kept) or not any(_kept(part, name) for part in written))
            and not (name in ("pid", "thread") and self._threads)
            and not (name == "input_labels" and shown)
        ]
        self._log.count(REPORTED["header-fields"], len(lost), fields=", ".join(lost))

    def _log_values(self, sources: list[Part], written: list[Part]) -> None:
        lacks = self._holds.lacks
        known = {t.name: t for part in sources for t in part.value_types}
        types = [*dict.fromkeys(known[t.name] for part in written for t in part.value_types if t.name in known)]
        several = any(len(part.value_types) > 1 for part in written)
        defaults = {part.extra.get("default_sample_type") for part in sources} - {None}
        counts = {
            "value-names": sum(_is_named(t) and t.name not in self._holds.same for t in types),
            "units": sum([t.unit not in ("", "count") for t in types]),
            "long-names": sum([t.long_name != "" for t in types]),
            "inherited-events": len(self._events | _inherited(sources)),
            "default-type": several * len(defaults),
        }
        self._log.count_all(REPORTED, {code: n for code, n in counts.items() if code in lacks})

    def _log_entries(self) -> None:
        lacks = self._holds.lacks
        found = self._found
        lib.fp_unrepresentable_count(self._model.c, found)
        is_timeline = "timeline" in self._given.values()
        counts = {
            "objects": found.objects,
            "first-lines": found.first_lines,
            "function-places": found.places * is_timeline,
            "call-objects": found.objects * is_timeline,
            "call-places": found.call_places * is_timeline,
            "system-names": found.system_names,
            "columns": found.columns,
            "build-ids": found.build_ids,
            "mappings": found.mappings,
        }
        self._log.count_all(REPORTED, {code: n for code, n in counts.items() if code in lacks})

    def _log_threads(self, sources: list[Part], written: list[Part]) -> None:
        lacks, model = self._holds.lacks, self._model
        numbers = {model.row("threads", i)[1:] for i in range(1, model.count("threads"))} - {(0, 0)}
        threads, processes = self._names(sources, numbers)
        bridged = {*self._given.values()} != {*self._taken.values()} and "graph" not in self._given.values()
        joined = bridged and not self._holds.table and not self._threads and not any(part.thread for part in written)
        if "thread-names" in lacks:
            names = len(threads) + len(processes)
        elif "idle-threads" in lacks:
            busy = {model.row("threads", i)[1:] for i, seen in enumerate(self._seen) if seen}
            names = len(threads.keys() - busy) + len(processes.keys() - {pid for pid, _ in busy})
        else:
            names = 0
        unnamed = {(pid, tid) for pid, tid in numbers if pid or (pid, tid) not in threads}
        self._log.count_all(
            REPORTED,
            {
                "threads": joined * len(numbers),
                "thread-names": ("thread-names" in lacks) * names,
                "idle-threads": ("thread-names" not in lacks) * names,
                "thread-numbers": ("thread-numbers" in lacks) * len(unnamed),
            },
        )

    def _names(self, sources: list[Part], numbers: set[tuple[int, ...]]) -> tuple[dict[Any, bytes], dict[int, bytes]]:
        """The names of threads and processes, or the ids in the source that are not numbers of the model."""
        but = {b""} | (self._label_texts() if {"thread-names", "idle-threads"} & self._holds.lacks else set())
        threads: dict[Any, bytes] = {}
        processes: dict[int, bytes] = {}
        own: dict[int, bytes] = {}
        for extra in (part.extra for part in sources):
            threads |= {(pid, tid): name for pid, tid, name in extra.get("thread_names", ()) if name not in but}
            processes |= {pid: name for pid, name in extra.get("process_names", ()) if name not in but}
            own |= {number: id_ for number, id_ in extra.get("own_ids", ()) if id_}
        return (
            {(pid, tid): own[tid] for pid, tid in numbers if tid in own} | threads,
            {pid: own[pid] for pid, _ in numbers if pid in own} | processes,
        )

    def _label_texts(self) -> set[bytes]:
        """The texts of labels of rows.  Names that are labels as well, as comm, are not counted twice."""
        if "stacks" not in self._given.values():
            return set()
        labels, model = self._model.c.labels, self._model
        words = memoryview(ffi.buffer(labels.words, 4 * labels.n * labels.width)).cast("I")
        return {model.string(i) for i in {*words[labels.width + lib.FP_LABEL_STRING :: labels.width]}}

    def _log_parts(self, sources: list[Part]) -> None:
        lacks = self._holds.lacks
        joined = len(sources) > max(len(self._taken), 1) or (len(self._taken) > 1 and "parts" in lacks)
        addresses = sum({"instr", "bb"} & {*part.positions} != set() for part in sources)
        frames = self._found.addresses if "stacks" in self._given.values() else 0
        self._log.count_all(
            REPORTED,
            {
                "parts": (joined and self._inputs == 1) * len(sources),
                "part-addresses": ("addresses" in lacks) * addresses,
                "addresses": ("addresses" in lacks) * frames,
            },
        )


def _is_named(value_type: ValueType) -> bool:
    """Whether its name is more specific than a plain count."""
    return value_type[:2] not in (("samples", "count"), ("samples", ""))


def _inherited(parts: Iterable[Part]) -> set[ValueType]:
    return {event for part in parts for event in part.extra.get("inherited", [])}


def _has_field(part: Part, name: str, n_parts: int) -> bool:
    """Whether a part of a source with `n_parts` has this field of the header."""
    value: Any = _field(part, name)
    if name == "number":
        return value is not None and (n_parts > 1 or value != 1)  # number 1 of a single part carries no information
    if name == "descriptions":
        value = [(key, text) for key, text in value if key != b"Source"]  # Source names only the file's format
    return value not in (None, 0, b"", "", [])


def _field(part: Part, name: str) -> Any:
    if name == "comments":
        return [*comments_of(part), *remarks_of(part)]
    return part.named(name) if name in ("pid", "thread") else getattr(part, name, part.extra.get(name))


def _kept(part: Part, name: str) -> bool:
    """Whether a written part has the field, or lists its values in different parts."""
    merged = part.extra.get("merged", {})
    also = name == "input_labels" and "descriptions" in merged  # those that differ
    return _field(part, name) not in (None, b"", []) or name in merged or also
