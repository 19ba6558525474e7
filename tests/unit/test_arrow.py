"""Batches and streams through Arrow's PyCapsule interface, against pyarrow."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import numpy
import pyarrow
import pytest

import fastprof
from tests.support.paths import REPO
from tests.support.xraylog import FdrLog

POOL = REPO / "tests" / "corpus" / "xray" / "good" / "fdr5-pool-clang19.xray"
XDEBUG = REPO / "tests" / "corpus" / "callgrind" / "good" / "xdebug.callgrind"


@pytest.mark.parametrize("path", [POOL, XDEBUG])
def test_a_batch(path: Path) -> None:
    with fastprof.open(path) as profile:
        for batch in profile:
            array = pyarrow.record_batch(batch)
            assert array.num_rows == len(batch)
            for name in batch.columns:
                assert array.column(name).to_pylist() == batch[name].tolist()
            for k in range(batch.c.n_values):
                assert array.column(f"value{k}").to_pylist() == batch.values(k).tolist()
            array.validate(full=True)


def test_no_copy() -> None:
    with fastprof.open(POOL) as profile:
        batch = next(iter(profile))
        array = pyarrow.record_batch(batch)
        assert array.column("time").buffers()[1].address == numpy.asarray(batch["time"]).ctypes.data


def test_memory_outlives_the_batch() -> None:
    with fastprof.open(POOL) as profile:
        batch = next(iter(profile))
    expected = batch["time"].tolist()
    array, column = pyarrow.record_batch(batch), numpy.asarray(batch["time"])
    time = array.column("time")
    del batch, profile, array
    gc.collect()
    _ = [bytearray(1 << 16) for _ in range(50)]  # something else takes freed memory
    assert time.to_pylist() == expected
    assert column.tolist() == expected


@pytest.mark.parametrize("path", [POOL, XDEBUG])
def test_a_stream(path: Path) -> None:
    with fastprof.open(path) as profile:
        rows: list[tuple[int, ...]] = []
        for batch in profile:
            columns = batch.columns
            rows += zip(*(batch[name].tolist() for name in columns), strict=True)
    with fastprof.open(path) as profile:
        table = pyarrow.table(profile)
    table.validate(full=True)
    assert list(zip(*(table.column(name).to_pylist() for name in columns), strict=True)) == rows


def test_batches_of_a_stream_stay() -> None:
    log = FdrLog()
    buffer = log.buffer().cpu(0, 0)
    for _ in range(30_000):
        buffer.enter(1, 1).exit(1, 1)
    with fastprof.open(log.bytes()) as profile:
        stream = pyarrow.RecordBatchReader.from_stream(profile)
        batches = list(stream)
    assert len(batches) > 2
    times = [t for b in batches for t in b.column("time").to_pylist()]
    assert times[1:] == list(range(1, 60_001))


def test_an_empty_stream_has_a_schema() -> None:
    with fastprof.open(FdrLog().bytes()) as profile:
        table = pyarrow.table(profile)
    assert table.num_rows == 0
    assert table.column_names[0] == "time"


def test_errors_come_through() -> None:
    log = FdrLog()
    log.buffer().cpu(0, 5).enter(1).metadata(10)
    with fastprof.open(log.bytes()) as profile, pytest.raises(OSError, match="at byte 120: metadata kind is 10"):
        pyarrow.table(profile)


def test_capsules_that_nobody_takes_are_released() -> None:
    with fastprof.open(POOL) as profile:
        for batch in profile:
            before = sys.getrefcount(batch)
            capsules = batch.__arrow_c_array__()
            assert sys.getrefcount(batch) > before
            del capsules
            gc.collect()
            assert sys.getrefcount(batch) == before
    with fastprof.open(POOL) as profile:
        profile.__arrow_c_stream__()


def test_pyarrow_is_not_needed() -> None:
    code = (
        "import fastprof, sys\n"
        f"profile = fastprof.open({str(POOL)!r})\n"
        "[b.__arrow_c_array__() for b in profile]\n"
        "assert 'pyarrow' not in sys.modules and 'numpy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPO)
