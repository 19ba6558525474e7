"""Graph rows summed up by place (csrc/bridges/aggregate.h): what a bridge and a writer share."""

from __future__ import annotations

from collections.abc import Iterator

from fastprof.core._c import ffi, lib
from fastprof.core._typing import Any
from fastprof.core.engine import CAPACITY
from fastprof.core.errors import FastprofError
from fastprof.core.model import Batch, Model, Part, ValueType


class Table:
    """The sums of many graph batches.  Columns are the value types of all parts, matched by name (two of
    the same name in one part become one), or with `by_position` those of the one part there is.

    `lines` keeps only self costs by file, function name and line.
    Errors: FastprofError when a sum does not fit into 64 bits.
    """

    def __init__(self, model: Model, *, lines: bool = False, by_position: bool = False) -> None:
        self._model = model
        self._by_position = by_position
        self.value_types: list[ValueType] = []
        c = lib.fp_aggregate_new(model.c, lib.FP_AGGREGATE_LINES if lines else lib.FP_AGGREGATE_GRAPH)
        if not c:
            raise MemoryError("no memory to sum up rows")
        self._c = ffi.gc(c, lib.fp_aggregate_free)
        self._err = ffi.new("struct fp_err *")
        self._columns: dict[int, Any] = {}  # of each part: where its values go

    def put(self, batch: Batch) -> None:
        columns = self._columns.get(batch.part)
        if columns is None:
            columns = self._columns[batch.part] = ffi.new("uint32_t[]", self._place(self._model.parts[batch.part]))
        status = lib.fp_aggregate_put(self._c, batch.c, columns, self._err)
        if status == lib.FP_E_OVERFLOW:
            raise FastprofError(
                f"the costs or counts at line {self._err.got} of a function add up to more than 64 bits hold "
                "(costs up to 2^63 - 1, counts up to 2^64 - 1)"
            )
        if status < 0:
            raise MemoryError("no memory to sum up rows")

    def _place(self, part: Part) -> list[int]:
        if self._by_position:
            self.value_types = part.value_types
            return list(range(len(part.value_types)))
        names = [t.name for t in self.value_types]
        for value_type in part.value_types:
            if value_type.name not in names:
                names.append(value_type.name)
                self.value_types.append(value_type)
        return [names.index(t.name) for t in part.value_types]

    @property
    def dropped(self) -> int:
        """Calls and jumps that a table of lines has no room for."""
        return int(lib.fp_aggregate_dropped(self._c))

    def batches(self, part: int, rank: list[int] | None = None) -> Iterator[Batch]:
        """The rows, as batches of `part`: functions as first seen, or by `rank`, one number for each
        function of the model and all different."""
        order = ffi.NULL if rank is None else ffi.new("uint32_t[]", rank)
        if lib.fp_aggregate_finish(self._c, order):
            raise MemoryError("no memory to sort rows")
        batch = Batch("graph", CAPACITY["graph"], len(self.value_types))
        batch.c.part = part
        status = lib.FP_FULL
        while status == lib.FP_FULL:
            status = lib.fp_aggregate_pull(self._c, batch.c)
            if status < 0:
                raise MemoryError("no memory for a batch")
            yield batch
            batch.reset()


# What parts may differ in, and how a merged one says so.
_LISTED = {"creator": b"Original creators", "pid": b"Processes", "thread": b"Threads", "trigger": b"Triggers"}


def merged_part(parts: list[Part], value_types: list[ValueType]) -> Part:
    """One header for several: what they agree on, everything that merely describes, and the sum of their summaries.

    Processes, threads and triggers that differ are listed in descriptions, commands in the command.
    Errors: FastprofError when a sum does not fit into 64 bits.
    """
    merged = Part(value_types=value_types)
    if not parts:
        return merged
    merged.positions = tuple(p for p in ("instr", "bb", "line") if any(p in part.positions for part in parts))
    merged.command = b"; ".join(dict.fromkeys(part.command for part in parts if part.command is not None)) or None
    for name, title in _LISTED.items():
        values = list(dict.fromkeys(part.named(name) for part in parts))
        if len(values) == 1:
            setattr(merged, name, getattr(parts[0], name))
            if f"{name}_text" in parts[0].extra:
                merged.extra[f"{name}_text"] = values[0]
        else:
            text = (b"%d" % v if isinstance(v, int) else v or b"none" for v in values if v is not None)
            merged.descriptions.append((title, b"; ".join(text)))
    merged.descriptions += dict.fromkeys(line for part in parts for line in part.descriptions)
    merged.comments = list(dict.fromkeys(line for part in parts for line in part.comments))
    summaries = [part.summary for part in parts if part.summary is not None]
    if len(summaries) == len(parts):
        sums = dict.fromkeys((t.name for t in value_types), 0)
        for part, summary in zip(parts, summaries, strict=True):
            for value_type, value in zip(part.value_types, summary, strict=False):
                sums[value_type.name] += value
        if any(abs(value) >= 1 << 63 for value in sums.values()):
            raise FastprofError("the sum of the summary: lines is beyond 2^63 - 1")
        merged.summary = list(sums.values())
    remarks = dict.fromkeys(line for part in parts for line in part.extra.get("remarks", []))
    if remarks:
        merged.extra["remarks"] = list(remarks)
    inherited = {e.name: e for part in parts for e in part.extra.get("inherited", [])}
    if inherited:
        merged.extra["inherited"] = list(inherited.values())
    return merged


def rank_by_name(model: Model) -> list[int]:
    """A place for each function: by file, then name, as bytes."""
    n = model.count("functions")
    keys = []
    for i in range(n):
        _, file, name, *_ = model.row("functions", i)
        keys.append((model.string(file), model.string(name), i))
    rank = [0] * n
    for place, (_, _, i) in enumerate(sorted(keys)):
        rank[i] = place
    return rank
