"""Times in an archive come back as they were stored, whatever the kinds of rows."""

from __future__ import annotations

import io
from random import Random

import pytest

from fastprof.core._c import lib
from fastprof.core.engine import read, write
from fastprof.core.log import Log
from fastprof.core.model import Batch, Model, Part
from fastprof.core.options import Options
from fastprof.core.sink import Sink
from fastprof.core.source import Source
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.write import ArchiveWriter


def _read_back(batch: Batch, model: Model) -> list[int]:
    out = io.BytesIO()
    write([batch], ArchiveWriter(model, Sink(out), Options(), Log()))
    return [t for b in read(ArchiveReader(Source(out.getvalue()), Model(), Options(), Log())) for t in b["time"]]


@pytest.mark.parametrize("kinds", [1, 4000])
def test_few_kinds_of_rows_and_many(kinds: int) -> None:
    """Times by function and step: with 40,000 kinds of rows the writer no longer counts each kind apart."""
    random, model = Random(kinds), Model()
    model.add_part(Part())
    threads = [lib.fp_model_thread(model.c, 0, 1, tid) for tid in (1, 2)]
    functions = [model.function(f"f{i}") for i in range(kinds)]
    n, at = 40_000, [10**18, 10**18 + 5]
    batch = Batch("timeline", n)
    times = []
    for i in range(n):
        k = i // 100 % 2
        at[k] += random.randrange(3, 3 + 8 * kinds) * 10 + random.randrange(2)
        at[k] += 5 << 31 if i % 9000 == 77 else -60 if i % 7001 == 5 else 0
        times.append(at[k])
        batch.c.time[i], batch.c.thread[i], batch.c.function[i] = at[k], threads[k], random.choice(functions)
    batch.c.n = n
    assert _read_back(batch, model) == times


@pytest.mark.parametrize("jitter", [0, 1])
def test_steady_and_irregular_rows_take_turns(jitter: int) -> None:
    """Rows of few bits are read by a loop of their own, which meets long steps, misses and steps back, too."""
    random, model, n, at = Random(7), Model(), 80_000, 10**18
    model.add_part(Part())
    thread, function = lib.fp_model_thread(model.c, 0, 1, 1), model.function("f")
    batch = Batch("timeline", n)
    times = []
    for i in range(n):
        odd = random.randrange(2 if i // 10_000 % 2 else 200)
        at += 40 if odd else random.choice([10, 500, 70_000, 10 << 13, 5 << 40, 5 << 55, -600])
        at += 0 if random.randrange(60) else jitter * random.choice([1, -1, 4])
        times.append(at % 2**64)
        batch.c.time[i], batch.c.thread[i], batch.c.function[i] = times[-1], thread, function
    batch.c.n = n
    assert _read_back(batch, model) == times
