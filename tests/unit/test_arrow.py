"""Batches and streams through Arrow's PyCapsule interface, against pyarrow."""

from __future__ import annotations

import gc
import gzip
import io
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pyarrow
import pyarrow.parquet
import pytest

import fastprof
from fastprof.core.errors import UsageError
from fastprof.core.model import _TABLES as TABLES
from tests.contract.dump import CORPUS, files
from tests.support.chosen import cases
from tests.support.paths import REPO
from tests.support.xraylog import FdrLog
from tests.unit.test_io import Unseekable

GOOD = [CORPUS / file for file in files("good")]
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
    _ = [bytearray(1 << 16) for _ in range(50)]  # overwrite the freed memory
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


def _known_rows(profile: fastprof.Profile) -> list[Any]:
    """The batches of a pass: columns, parts and the log."""
    found: list[Any] = []
    for batch in profile:
        columns = [batch[name].tolist() for name in batch.columns]
        values = [batch.values(k).tolist() for k in range(batch.c.n_values)]
        found.append((columns, values, batch.part))
    return [*found, [repr(part) for part in profile._model.parts], profile.log.as_dict()]


@pytest.mark.parametrize("path", cases(GOOD), ids=files("good"))
def test_each_pass_is_the_same(path: Path) -> None:
    with fastprof.open(path) as profile:
        first = _known_rows(profile)
        counts = [profile._model.count(table) for table in TABLES]
        next(iter(profile), None)  # an abandoned iterator
        assert _known_rows(profile) == first
        assert [profile._model.count(table) for table in TABLES] == counts


@pytest.mark.parametrize("path", [POOL, XDEBUG])
@pytest.mark.parametrize("how", ["path", "gz", "bytes", "file", "gz file"])
def test_each_stream_begins_anew(how: str, path: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with fastprof.open(path) as profile:
        want = pyarrow.table(profile)
    with path.open("rb") as file, packed.open("rb") as packed_file:
        given = {"path": path, "gz": packed, "bytes": path.read_bytes(), "file": file, "gz file": packed_file}[how]
        with fastprof.open(given) as profile:  # type: ignore[arg-type]
            profile.__arrow_c_stream__()  # a stream that no consumer reads
            pyarrow.RecordBatchReader.from_stream(profile).read_next_batch()  # an abandoned stream
            assert pyarrow.table(profile) == want
            assert pyarrow.table(profile) == want
            assert len(profile._model.parts) == 1
        assert not file.closed and not packed_file.closed


def _long_log() -> bytes:
    log = FdrLog()
    for thread in (1, 2):
        buffer = log.buffer(tid=thread).cpu(0, 0)
        for _ in range(15_000):
            buffer.enter(1, 1).exit(1, 1)
    return log.bytes()


@pytest.mark.parametrize("as_file", [False, True])
def test_streams_take_turns(as_file: bool) -> None:
    """Streams of a query that joins a profile with itself, also in threads."""
    data = _long_log()
    with fastprof.open(data) as profile:
        want = pyarrow.table(profile)
    with fastprof.open(io.BytesIO(data) if as_file else data) as profile:
        streams = [pyarrow.RecordBatchReader.from_stream(profile) for _ in range(3)]
        batches = list(zip(*streams, strict=True))
        assert [pyarrow.Table.from_batches(each) for each in zip(*batches, strict=True)] == [want] * 3
        streams = [pyarrow.RecordBatchReader.from_stream(profile) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda stream: stream.read_all(), streams)) == [want] * 4


def test_a_pipe_has_one_stream() -> None:
    with fastprof.open(Unseekable(XDEBUG.read_bytes())) as profile:  # type: ignore[arg-type]
        assert pyarrow.table(profile).num_rows == 155
        for again in (profile.__arrow_c_stream__, profile.__iter__):
            with pytest.raises(UsageError, match="<file>: a pipe can be read only once"):
                again()


def test_a_file_that_changes_between_streams(tmp_path: Path) -> None:
    path = tmp_path / "callgrind.out.1"
    path.write_bytes(XDEBUG.read_bytes())
    with fastprof.open(path) as profile:
        assert pyarrow.table(profile).num_rows == 155
        path.write_bytes(b"events: Ir\nfn=f\n1 2\n")
        with pytest.raises(OSError, match=r"callgrind\.out\.1: changed since it was opened"):
            pyarrow.table(profile)


def test_nothing_is_read_when_it_is_closed() -> None:
    with fastprof.open(_long_log()) as profile:
        stream = pyarrow.RecordBatchReader.from_stream(profile)
        rows = iter(profile)
        next(rows)
    with pytest.raises(OSError, match="<bytes>: is closed"):
        stream.read_all()
    with pytest.raises(UsageError, match="<bytes>: is closed"):
        next(rows)
    with pytest.raises(UsageError, match="<bytes>: is closed"):
        pyarrow.table(profile)


def test_duckdb_asks_several_times() -> None:
    with fastprof.open(_long_log()) as profile:  # DuckDB finds `profile` by its name
        table = pyarrow.table(profile)
        times = Counter(table.column("time").to_pylist())
        assert table.num_rows > 60_000
        db = duckdb.connect()
        for _ in range(2):
            found = db.sql("select count(*), sum(time) from profile").fetchall()
            assert found == [(table.num_rows, sum(time * n for time, n in times.items()))]
        joined = db.sql("select count(*) from profile a join profile b using (time)").fetchall()
        assert joined == [(sum(n * n for n in times.values()),)]


def test_duckdb_is_told_that_a_pipe_cannot_be_read_again() -> None:
    profile = fastprof.open(Unseekable(XDEBUG.read_bytes()))  # noqa: F841
    with pytest.raises(Exception, match="a pipe can be read only once"):
        duckdb.connect().sql("select count(*) from profile").fetchall()


@pytest.mark.parametrize("to", ["arrow", "parquet"])
def test_value_types_that_all_inputs_have(to: str, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in "ab"]
    paths[0].write_text("events: Ir Dr\nfn=f\n1 2 3\n")
    paths[1].write_text("events: Dr Dw\nfn=f\n1 5 7\n")
    for choice, columns in ("intersect", {"Dr": 8}), ("union", {"Ir": 2, "Dr": 8, "Dw": 7}):
        out = tmp_path / "out"
        fastprof.convert(paths, out, to=to, **{choice: True})
        table = pyarrow.ipc.open_stream(out).read_all() if to == "arrow" else pyarrow.parquet.read_table(out)
        assert {name: sum(table[name].to_pylist()) for name in table.column_names if name[0] in "ID"} == columns


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
