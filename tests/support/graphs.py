"""Graph profiles in tests: rows with names instead of ids, as read by the product; and its output."""

from __future__ import annotations

import io
from pathlib import Path

from fastprof import formats, plan
from fastprof.core.engine import read, write
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from tests.reference.callgrind import Function, Part, Row
from tests.support.product import open_input

KINDS = ("cost", "call", "jump", "jcnd", "block")


def rows_of(batch: Batch, model: Model) -> list[Row]:
    """The rows of one batch; columns that a kind does not have must be 0."""
    columns = {name: list(batch[name]) for name in batch.columns}
    values = [list(batch.values(k)) for k in range(batch.c.n_values)]
    rows = []
    for i in range(len(batch)):
        c = {name: column[i] for name, column in columns.items()}
        kind = KINDS[c["kind"]]
        position = c["address"], c["bb"], c["line"]
        target = c["target_address"], c["target_bb"], c["target_line"]
        callee = _function(model, c["callee"]) if kind in ("call", "jump", "jcnd") else None
        row = Row(
            kind,
            _function(model, c["function"]),
            model.string(c["file"]),
            position,
            tuple(column[i] for column in values),
            callee,
            model.string(c["target_file"]),
            target,
            c["count"],
            c["count2"],
        )
        if kind in ("cost", "block"):
            assert (c["callee"], row.target_file, target, row.count, row.count2) == (0, b"", (0, 0, 0), 0, 0)
        rows.append(row)
    return rows


def _function(model: Model, function_id: int) -> Function:
    f = model.get_function(function_id)
    return Function(f.object, f.file, f.name)


def read_parts(
    data: bytes | Path,
    options: Options | None = None,
    window: int | None = None,
    capacity: int | None = None,
    from_: str | None = None,
    wide: int = 2,
) -> tuple[list[Part], Log]:
    """All parts of an input in the reference's terms, and the report.

    `wide` 1: cost lines are read as on a machine without AVX-512; 0: nor AVX2.
    """
    opened = open_input(data, options, window, from_)
    if wide < 2:
        opened.reader._lexer.wide = wide  # type: ignore[attr-defined]
    found: dict[int, Part] = {}
    for batch in read(opened.reader, capacity):
        part = opened.model.parts[batch.part]
        here = found.setdefault(batch.part, Part())
        here.events = [t.name for t in part.value_types]
        here.positions = list(part.positions)
        here.rows += rows_of(batch, opened.model)
    for index, here in found.items():
        here.summary = opened.model.parts[index].summary
        here.totals = opened.model.parts[index].totals
    return list(found.values()), opened.log


def rewrite(
    data: bytes | Path,
    to: str = "callgrind",
    options: Options | None = None,
    window: int | None = None,
    wide: int = 2,
) -> bytes:
    """The product's output for the input in format `to`; `wide` 1: as on a machine without AVX-512; 0: nor AVX2."""
    options = options or Options()
    opened = open_input(data, options, window)
    out = io.BytesIO()
    make = formats.get(to).writer_class()
    writer = make(opened.model, Sink(out), options, opened.log)
    if wide < 2:
        opened.reader._lexer.wide = writer._body.wide = wide  # type: ignore[attr-defined]
    made = plan.make([[opened.reader]], plan.writing(formats.get(to))._replace(view="graph"), options)
    write(made.rows(opened.model, opened.log), writer)
    return out.getvalue()
