"""SQLite databases of GPU profilers: the statements of docs/formats/gpu-sqlite.md."""

from __future__ import annotations

import io
import os
import re
import sqlite3
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof import formats
from fastprof.core.errors import FormatError, UnrecognizedError
from fastprof.core.source import Source
from fastprof.formats.gpu_sqlite import database
from tests.support import gpu_sqlite
from tests.support.gpu_sqlite import GLOBAL, NSYS, NSYS_ROWS, PID, RPD, RPD_ROWS, TID, UUID, made, nsys, rocpd, rpd
from tests.support.paths import CORPUS

Span = tuple[str, str, str | None, int, int]


def spans(data: Any, **options: Any) -> list[Span]:
    """Thread, name, category, begin and duration."""
    with fastprof.open(data, **options) as profile:
        rows = [*profile.rows("spans")]
        names = profile._model.names
        thread = {(pid, tid): name.decode() for (_, pid, tid), name in names.threads.items()}
    found = []
    for row in rows:
        key = row["process"], row["thread"]
        found.append((thread.get(key, str(row["thread"])), row["function"], row["category"], row["ts"], row["dur"]))
    return sorted(found, key=lambda one: (one[3], one[1]))


@pytest.mark.parametrize("path", sorted((CORPUS / "gpu-sqlite" / "good").iterdir()), ids=lambda path: path.name)
def test_it_is_recognized(path: Path) -> None:
    with Source(path.read_bytes()) as source:
        assert formats.claimants(source) == ["gpu-sqlite"]


def test_databases_of_nsight_systems() -> None:
    assert spans(nsys()) == [
        ("79", "read", "osrt", 20, 20),
        ("worker", "step", "nvtx", 100, 100),
        ("worker", "forward", "nvtx", 105, 55),
        ("worker", "cudaLaunchKernel", "cuda_runtime", 110, 20),
        ("worker", "cudaMemcpyAsync", "cuda_runtime", 140, 10),
        ("NVTX ranges", "window", "nvtx", 150, 110),
        ("worker", "NCCL: AllReduce", "nvtx", 210, 20),
        ("stream 7", "memcpy Host-to-Device", "gpu_memcpy", 300, 100),
        ("stream 7", "memset", "gpu_memset", 410, 10),
        ("stream 7", "void gemm<float>(float*)", "kernel", 500, 200),
        ("stream 13", "void gemm<float>(float*)", "kernel", 600, 300),
        ("stream 7", "void gemm<float>(float*)", "kernel", 800, 50),
        ("stream 7", "memcpy DtoH", "gpu_memcpy", 950, 10),
    ]
    log = fastprof.info(nsys())
    assert log.not_representable == {"other-tables": 1} and not log.losses and not log.repairs
    assert log.facts["profiler"] == "nsys"
    with fastprof.open(nsys()) as profile:
        assert [row["ts"] for row in profile.rows("events") if row["op"] not in ("enter", "exit")] == [170]


def test_processes_and_threads_have_names() -> None:
    threads = {row.name for row in fastprof.top(nsys(), by="thread").rows}
    assert threads == {
        f"train ({PID}): worker ({TID})",
        f"train ({PID}): thread {TID + 1}",
        f"train ({PID}): NVTX ranges",
        "GPU 0 (H100): stream 7 (7)",
        "GPU 0 (H100): stream 13 (13)",
    }


def test_databases_of_rocm() -> None:
    assert spans(rocpd()) == [
        ("main", "hipLaunchKernel", "region", 100, 100),
        ("Default Stream", "MEMORY_COPY_HOST_TO_DEVICE", "gpu_memcpy", 210, 80),
        ("Default Stream", "sum(float*)", "kernel", 300, 150),
    ]
    assert spans(rpd()) == [
        (str(TID), "hipModuleLaunchKernel", "hip_api", 5, 4),
        ("queue 3", "sum", "kernel", 10, 10),
    ]
    threads = {row.name for row in fastprof.top(rocpd(), by="thread").rows}
    assert threads == {f"./jacobi ({PID}): main ({TID})", "GPU 4 (MI300A): Default Stream (1)"}


def test_files_pipes_and_compressed_files_are_the_same(tmp_path: Path) -> None:
    data = nsys()
    path = tmp_path / "a name?with#marks.sqlite"
    path.write_bytes(data)
    expected = spans(data)
    assert spans(path) == expected
    assert spans(io.BytesIO(data)) == expected
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(data[:60_000])
        pipe.write(data[60_000:])
    with os.fdopen(reader, "rb") as pipe:
        assert spans(pipe) == expected
    fastprof.convert(path, tmp_path / "x.folded.gz", to="folded")
    assert path.read_bytes() == data and not list(tmp_path.glob("*-journal"))


def test_a_log_next_to_the_file_is_ignored(tmp_path: Path) -> None:
    """The file is immutable: neither its journal is played back, nor is anything written."""
    path = tmp_path / "x.sqlite"
    path.write_bytes(nsys())
    (tmp_path / "x.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))
    (tmp_path / "x.sqlite-wal").write_bytes(bytes(600))
    assert len(spans(path)) == 13
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.sqlite", "x.sqlite-journal", "x.sqlite-wal"]


def test_calls_that_overlap_are_on_lanes() -> None:
    kernels = [(10, 30, 0, 1, 7, 9, 0, 1, 2), (20, 40, 0, 1, 7, 9, 0, 2, 2)]
    data = nsys({"StringIds": [(1, "f"), (2, "g")], "CUPTI_ACTIVITY_KIND_KERNEL": kernels})
    assert [(name, begin, n) for _, name, _, begin, n in spans(data)] == [("f", 10, 20), ("g", 20, 20)]
    assert fastprof.info(data).repairs == {"overlapping-calls": 1}


@pytest.mark.parametrize(
    "row",
    [
        ("x", 200, 0, GLOBAL, 9, 1, 0),
        (100, 1.5, 0, GLOBAL, 9, 1, 0),
        (100, 99, 0, GLOBAL, 9, 1, 0),
        (-1, 99, 0, GLOBAL, 9, 1, 0),
        (1, 99, 0, b"thread", 9, 1, 0),
        (1, "99", 0, None, 9, 1, 0),
    ],
)
def test_rows_of_wrong_types_are_located(row: tuple[object, ...]) -> None:
    good = (100, 200, 0, GLOBAL, 9, 1, 0)
    rows = {"StringIds": [(1, "f")], "CUPTI_ACTIVITY_KIND_RUNTIME": [good, row, good]}
    schema = re.sub(r" INT\b", "", NSYS)
    with pytest.raises(FormatError, match="table CUPTI_ACTIVITY_KIND_RUNTIME: row 2: start "):
        fastprof.info(made(schema, rows))
    log = fastprof.info(made(schema, rows), lenient=True)
    assert log.losses == {"broken-rows": 1}
    assert [one[1:4:2] for one in spans(made(schema, rows), lenient=True)] == [("f", 100)] * 2


def test_names_that_are_missing() -> None:
    row = (100, 200, 0, GLOBAL, 9, 77, 0)
    data = nsys({"CUPTI_ACTIVITY_KIND_RUNTIME": [row, row]})
    assert {one[1] for one in spans(data)} == {"[unknown]"}
    assert fastprof.info(data).repairs == {"unnamed-calls": 1}


def test_names_of_a_gigabyte_are_refused() -> None:
    """Here of 2 MiB: names have at most 1 MiB, texts 64 MiB."""
    data = nsys({"StringIds": [(1, "f" * (2 << 20))], "CUPTI_ACTIVITY_KIND_RUNTIME": [(1, 2, 0, GLOBAL, 9, 1, 0)]})
    with pytest.raises(FormatError, match="longer than the limit"):
        fastprof.info(data)
    assert fastprof.info(data, lenient=True).losses == {"cut-names": 1}


def test_pages_that_are_damaged() -> None:
    rows = [(100 + i, 200 + i, 0, GLOBAL, 9, 1, 0) for i in range(400)]
    data = bytearray(nsys({"StringIds": [(1, "f")], "CUPTI_ACTIVITY_KIND_RUNTIME": rows}))
    n = len(data) // 1024
    data[(n - 3) * 1024 : (n - 2) * 1024] = b"\xff" * 1024
    with pytest.raises(FormatError, match="malformed"):
        fastprof.info(bytes(data))
    assert fastprof.info(bytes(data), lenient=True).losses == {"unreadable-rest": 1}
    with pytest.raises(FormatError):
        fastprof.info(nsys()[:3000])


def test_a_length_that_sqlite_cannot_allocate(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite reports that memory is out: the file is damaged, unless it really is."""
    data = bytearray((CORPUS / "gpu-sqlite" / "good" / "nsys.sqlite").read_bytes())
    data[8328:8337] = b"\xff" * 9  # the size of a row in the table of tables
    with pytest.raises(FormatError, match="has a length that SQLite cannot allocate") as caught:
        fastprof.info(bytes(data), from_="gpu-sqlite")
    assert caught.value.offset == 0  # of the table of tables
    monkeypatch.setattr(database, "_NEEDED", 1 << 60)
    with pytest.raises(MemoryError):
        fastprof.info(bytes(data), from_="gpu-sqlite")


def test_pages_that_are_linked_again_and_again() -> None:
    """An inner page whose children are all the same leaf has more rows than the file has bytes."""
    rows = [(100 + i, 200 + i, 0, GLOBAL, 9, 1, 0) for i in range(4000)]
    data = bytearray(nsys({"StringIds": [(1, "f")], "CUPTI_ACTIVITY_KIND_RUNTIME": rows}))
    inner = [at for at in range(1024, len(data), 1024) if data[at] == 5]
    pages = {int.from_bytes(data[at + 8 : at + 12], "big") for at in inner}
    root = next(at for at in inner if at // 1024 + 1 not in pages)
    cells = int.from_bytes(data[root + 3 : root + 5], "big")
    places = [int.from_bytes(data[root + 12 + 2 * i : root + 14 + 2 * i], "big") for i in range(cells)]
    below = next(at for at in inner if at != root) if len(inner) > 1 else 0
    assert cells > 1
    for place in places:
        data[root + place : root + place + 4] = data[root + places[0] : root + places[0] + 4]
    assert below >= 0
    log = fastprof.info(bytes(data), lenient=True)  # ends, with as many rows as the pages have
    assert log.facts["records"] < len(data) if "records" in log.facts else True


def test_what_is_no_table_is_not_read() -> None:
    """Views and virtual tables run code of the file."""
    view = "CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME AS WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL SELECT start + 1 "
    view += "FROM c) SELECT start, start AS end, 0 AS globalTid, 1 AS nameId FROM c"
    schema = NSYS.replace("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME", "CREATE TABLE other")
    assert spans(made(schema, {"StringIds": [(1, "f")]}, view)) == []


def test_other_databases_are_refused() -> None:
    with pytest.raises(FormatError, match="no tables of Nsight Systems or rocpd, but songs"):
        fastprof.info(made("CREATE TABLE songs (id INT)", {}))
    with pytest.raises(UnrecognizedError, match="SQLite"):
        fastprof.info(made("CREATE TABLE songs (id INT)", {}, "PRAGMA application_id=77"))


def test_tables_may_be_missing_and_have_fewer_columns() -> None:
    """nsys makes tables when it needs them, and versions differ in columns."""
    schema = "CREATE TABLE StringIds (id INTEGER, value TEXT); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL "
    schema += "(start INTEGER, end INTEGER, shortName INTEGER, streamId INTEGER); "
    schema += "CREATE TABLE NVTX_EVENTS (start, end, text, globalTid)"
    rows = {
        "StringIds": [(1, "f")],
        "CUPTI_ACTIVITY_KIND_KERNEL": [(5, 9, 1, 3)],
        "NVTX_EVENTS": [(1, 20, "step", GLOBAL)],
    }
    assert spans(made(schema, rows)) == [(str(TID), "step", "nvtx", 1, 19), ("stream 3", "f", "kernel", 5, 4)]


def test_several_rocpd_sessions_in_one_database() -> None:
    both = gpu_sqlite.ROCPD.format(id=UUID) + gpu_sqlite.ROCPD.format(id="_0000_22").split("CREATE VIEW")[0]
    rows = gpu_sqlite.ROCPD_ROWS | {key.replace(UUID, "_0000_22"): rows for key, rows in gpu_sqlite.ROCPD_ROWS.items()}
    assert len(spans(made(both, rows))) == 6


def test_memory_is_bounded() -> None:
    rows = [(100 + i, 101 + i, 0, GLOBAL, 9, 1, 0) for i in range(9000)]
    data = nsys({"StringIds": [(1, "f")], "CUPTI_ACTIVITY_KIND_RUNTIME": rows})
    assert spans(data, max_memory=1) == spans(data)
    assert sqlite3.sqlite_version_info >= (3, 31)
    assert NSYS_ROWS


def test_texts_that_no_row_names_take_no_memory() -> None:
    """RPD has a text for the arguments of each call."""
    strings = [(1, "f"), *((i, f"{i:300}") for i in range(2, 20_000))]
    data = made(RPD, {"rocpd_string": strings, "rocpd_api": [(1, PID, TID, 5, 9, 1, 7)]})
    tracemalloc.start()
    try:
        assert spans(io.BytesIO(data))[0][1] == "f"
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_names_of_a_table_without_a_key() -> None:
    schema = RPD.replace(
        "CREATE TABLE rocpd_string (id INTEGER NOT NULL PRIMARY KEY", "CREATE TABLE rocpd_string (id INT"
    )
    data = made(schema, RPD_ROWS)
    assert spans(data) == spans(rpd())
