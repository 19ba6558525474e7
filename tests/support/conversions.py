"""Corpus files converted into every written format."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pyarrow

from fastprof import formats, plan
from fastprof.bridges.rows.as_table import LAYOUTS, Rows
from fastprof.core.engine import read, write
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Option, Options
from fastprof.core.sink import Sink
from fastprof.symbols import SYMBOLIZE
from fastprof.verbs.outputs import checked
from fastprof.verbs.run import refuse_total_loss
from tests.support.paths import CORPUS
from tests.support.product import open_input

# By table: columns that are not value types.
FIXED = {name: {kind.name for kind in layout} for name, layout in LAYOUTS.items()}
WRITERS = [f.name for f in formats.formats() if f.writer]
# Written from addresses in a program with debug information, which most profiles here do not have.
OF_PROGRAMS = {"bolt", "gcov-profile", "llvm-profile"}
OF_ANY = [to for to in WRITERS if to not in OF_PROGRAMS]
# The available files with symbols depend on the machine.
HERE = Options(symbolize=False)


def format_of(file: str) -> str:
    """The format of a corpus file: its folder."""
    return file.split("/")[0]


class Sums:
    """The sums of rows: the values of each type, calls, and the number of rows of each kind in a timeline."""

    def __init__(self) -> None:
        self.values: Counter[str] = Counter()
        self.units: dict[str, str] = {}
        self.calls = 0
        self.kinds: Counter[int] = Counter()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sums) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return str(vars(self))

    def seen(self, batches: Iterator[Batch], model: Model) -> Iterator[Batch]:
        """Add batches as they pass through."""
        for batch in batches:
            if isinstance(batch, Rows):
                self.add_rows(batch)
                yield batch
                continue
            kinds = batch["kind"] if batch.view == "graph" else [0] * len(batch)
            for k in range(batch.c.n_values):
                value_type = model.parts[batch.part].value_types[k]
                name = value_type.name
                self.units[name] = value_type.unit
                self.values[name] += sum(v for v, kind in zip(batch.values(k), kinds, strict=True) if not kind)
            if batch.view == "graph":
                self.calls += sum(n for n, kind in zip(batch["count"], kinds, strict=True) if kind == 1)
            if batch.view == "timeline":
                self.kinds.update(batch["op"])
            yield batch

    def add_rows(self, rows: Rows) -> None:
        """Add the rows of a table; those of a timeline are calls, which have no kinds."""
        found = pyarrow.record_batch(rows)
        for column, kind in zip(found.column_names, rows.columns, strict=True):
            if column not in FIXED[rows.metadata[b"table"].decode()]:
                of = found.to_pylist() if kind.nullable else []
                self.values[column] += sum(row[column] or 0 for row in of if row.get("kind", "cost") == "cost")
        if {"kind", "calls"} <= {*found.column_names}:
            self.calls += sum(row["calls"] or 0 for row in found.to_pylist() if row["kind"] == "call")


class Conversion(NamedTuple):
    data: bytes
    given: Sums  # the writer's input
    log: Log
    used: set[Option[Any]]  # by readers, operators and the writer


def convert(file: str, to: str, options: Options = HERE, capacity: int | None = None) -> Conversion:
    """A corpus file as `to`.  Errors: UsageError if no conversion exists, FastprofError if a sum does not fit."""
    return convert_bytes((CORPUS / file).read_bytes(), format_of(file), to, options, capacity)


def convert_bytes(data: bytes, from_: str, to: str, options: Options = HERE, capacity: int | None = None) -> Conversion:
    opened = open_input(data, options, None, from_)
    target, out, given = formats.get(to), io.BytesIO(), Sums()
    made = plan.make([[opened.reader]], plan.writing(target), options)
    with Sink(out) as sink:
        writer = target.writer_class()(opened.model, sink, options, opened.log)
        writer.view = made.pipelines[0].view
        rows = checked(made.rows(opened.model, opened.log, capacity), writer.view, target, opened.model, opened.log)
        write(given.seen(rows, opened.model), writer)
        refuse_total_loss([opened.reader], writer, opened.log)
        sink.commit()
    return Conversion(out.getvalue(), given, opened.log, made.used)


@cache
def converted(file: str, to: str) -> Conversion:
    """`convert` with unchanged batches, made once."""
    return convert(file, to)


def sums_of(data: bytes, name: str) -> Sums:
    """The totals of a file as read."""
    opened, sums = open_input(data, None, None, name), Sums()
    for _ in sums.seen(read(opened.reader), opened.model):
        pass
    return sums


def keywords(done: Conversion) -> dict[str, Any]:
    """The options of `convert` as keywords, without those that have no effect."""
    return HERE.given if SYMBOLIZE in done.used else {}
