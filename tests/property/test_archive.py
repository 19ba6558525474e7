"""The archive against the slow reader of tests/reference/archive.py, and on random input."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof import formats
from fastprof.core._c import lib
from fastprof.core.engine import read, write
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part, empty
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.formats.archive import write as archive_write
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.write import ArchiveWriter
from tests.reference import archive as reference
from tests.support.archives import TABLES, dump, graph, stacks, timeline, write_archive
from tests.support.paths import needs_shared, shared_data

WIDE = {"mappings": (1, 3, 5), "frames": (1,), "labels": (3,)}


def _compare(data: bytes, want: list[Any], model_tables: dict[str, list[tuple[int, ...]]]) -> None:
    (profile,) = reference.read(data)
    rows = [row for row in want if row[0] == "row"]
    assert len(profile.rows) == len(rows)
    for (part, columns, values), (_, want_part, want_columns, want_values) in zip(profile.rows, rows, strict=True):
        assert part == want_part
        assert {name: columns[name] for name in want_columns} == want_columns
        assert values == want_values
    assert profile.strings == dict(w for w in want if w[0] == "strings")["strings"]
    for name in TABLES:
        narrow = []
        for row in model_tables[name][1:]:
            words, at = [], 0
            while at < len(row):
                wide = at in WIDE.get(name, ())
                words.append(row[at] | row[at + 1] << 32 if wide else row[at])
                at += 2 if wide else 1
            narrow.append(tuple(words))
        assert profile.tables[name][1:] == narrow


@pytest.mark.parametrize("maker", [timeline, stacks, graph])
def test_the_reference_reads_the_same(maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_write, "CHUNK_ROWS", 1500)
    data, want = write_archive(maker, rows=4000)
    _compare(data, want, {name: rows for name, *rest in want if name in TABLES for rows in rest})


@needs_shared
@pytest.mark.parametrize(
    "path",
    ["xray/fdr5-lua-clang19/trace.xray", "xray/fdr5-events-clang19/trace.xray", "callgrind/mt_instr_jumps.callgrind",
     "gperftools/threads/threads.prof"],
)  # fmt: skip
def test_the_reference_reads_real_profiles(path: str) -> None:
    found = shared_data(*path.split("/"))
    model, out, log = Model(), io.BytesIO(), Log()
    source = Source(str(found))
    reader = formats.detect(source).reader_class()
    opened = reader(source, model, Options(), log)
    writer = ArchiveWriter(model, Sink(out), Options(), log)
    writer.view = opened.view
    write(read(opened), writer)
    data = out.getvalue()
    copy = Model()
    want = dump(ArchiveReader(Source(data), copy, Options(), Log()), copy)
    _compare(data, want, {name: rows for name, *rest in want if name in TABLES for rows in rest})


U64 = st.integers(0, (1 << 64) - 1)
ROW = st.tuples(
    st.integers(0, 7),
    st.one_of(U64, st.integers(0, 300), st.integers(1 << 60, (1 << 60) + 99)),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([0, 1, 65535]),
    U64,
)


@given(st.lists(ROW, max_size=80), st.integers(1, 9))
# 2^64 - 1 and 9 have a common divisor that 1, 0 and 10 lack
@example(rows=[(0, 1, 1, 1, 0, 0), (0, 0, 1, 1, 0, 0), (0, 10, 1, 1, 0, 0)], size=1)
# all are multiples of 15, but the step from 2^64 - 1 to 0 is 1
@example(rows=[(0, 75, 1, 1, 0, 0), (0, (1 << 64) - 1, 1, 1, 0, 0), (0, 0, 1, 1, 0, 0)], size=1)
def test_any_timeline(rows: list[tuple[int, ...]], size: int) -> None:
    """Times in any order and exits without enters: every row is restored, by the reference too."""

    def batches(model: Model) -> Iterator[Batch]:
        model.add_part(Part())
        for i in range(6):
            model.function(f"#{i}")
        for i in range(3):
            lib.fp_model_thread(model.c, 0, 1, i)
        batch = Batch("timeline", size)
        c = batch.c
        for op, time, function, thread, cpu, aux in rows:
            i = c.n
            c.op[i], c.time[i], c.thread[i], c.cpu[i] = op, time, thread, cpu
            c.function[i] = function if op < 4 or op == lib.FP_OP_TYPED else 0
            c.aux[i] = aux if op in (lib.FP_OP_ARGUMENT, lib.FP_OP_BUFFER) else 0
            c.n += 1
            if c.n == size:
                yield batch
                empty(batch)
        if c.n:
            yield batch

    model, out = Model(), io.BytesIO()
    writer = ArchiveWriter(model, Sink(out), Options(), Log())
    writer.view = "timeline"
    write(batches(model), writer)
    original, copy = Model(), Model()
    want = dump(batches(original), original)
    assert dump(ArchiveReader(Source(out.getvalue()), copy, Options(), Log()), copy) == want
    _compare(out.getvalue(), want, dict(w for w in want if w[0] in TABLES))
