"""Databases with the layout of Nsight Systems' and ROCm's exports."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path

NSYS = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE PROCESSES (globalPid INT, pid INT, name TEXT);
CREATE TABLE ThreadNames (nameId INT NOT NULL, priority INT, globalTid INT);
CREATE TABLE TARGET_INFO_GPU (id INT NOT NULL, name TEXT, busLocation TEXT);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
    contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT, globalPid INT, demangledName INT NOT NULL,
    shortName INT NOT NULL, gridX INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
    contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT, globalPid INT, bytes INT NOT NULL,
    copyKind INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
    contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT, globalPid INT, bytes INT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INT NOT NULL, end INT NOT NULL, eventClass INT NOT NULL,
    globalTid INT, correlationId INT, nameId INT NOT NULL, returnValue INT NOT NULL);
CREATE TABLE OSRT_API (start INT NOT NULL, end INT NOT NULL, eventClass INT NOT NULL, globalTid INT, nameId INT);
CREATE TABLE NVTX_EVENTS (start INT NOT NULL, end INT, eventType INT NOT NULL, rangeId INT, category INT, color INT,
    text TEXT, globalTid INT, endGlobalTid INT, textId INT, domainId INT);
CREATE TABLE SCHED_EVENTS (start INT NOT NULL, cpu INT NOT NULL, isSchedIn INT NOT NULL, globalTid INT);
"""
ROCPD = """
CREATE TABLE "rocpd_string{id}" (id INTEGER NOT NULL PRIMARY KEY, guid TEXT, string TEXT NOT NULL);
CREATE TABLE "rocpd_info_process{id}" (id INTEGER NOT NULL PRIMARY KEY, pid INT, command TEXT);
CREATE TABLE "rocpd_info_thread{id}" (id INTEGER NOT NULL PRIMARY KEY, tid INT, name TEXT);
CREATE TABLE "rocpd_info_agent{id}" (id INTEGER NOT NULL PRIMARY KEY, type TEXT, absolute_index INT, name TEXT,
    product_name TEXT);
CREATE TABLE "rocpd_info_stream{id}" (id INTEGER NOT NULL PRIMARY KEY, name TEXT);
CREATE TABLE "rocpd_info_kernel_symbol{id}" (id INTEGER NOT NULL PRIMARY KEY, kernel_name TEXT, display_name TEXT);
CREATE TABLE "rocpd_region{id}" (id INTEGER NOT NULL PRIMARY KEY, pid INT, tid INT, start BIGINT NOT NULL,
    "end" BIGINT NOT NULL, name_id INT);
CREATE TABLE "rocpd_kernel_dispatch{id}" (id INTEGER NOT NULL PRIMARY KEY, pid INT, tid INT, agent_id INT,
    kernel_id INT, queue_id INT, stream_id INT, start BIGINT NOT NULL, "end" BIGINT NOT NULL);
CREATE TABLE "rocpd_memory_copy{id}" (id INTEGER NOT NULL PRIMARY KEY, pid INT, tid INT, start BIGINT NOT NULL,
    "end" BIGINT NOT NULL, name_id INT, dst_agent_id INT, size INT, queue_id INT, stream_id INT);
CREATE VIEW rocpd_region AS SELECT * FROM "rocpd_region{id}";
"""
RPD = """
CREATE TABLE rocpd_string (id INTEGER NOT NULL PRIMARY KEY, string TEXT NOT NULL);
CREATE TABLE rocpd_api (id INTEGER NOT NULL PRIMARY KEY, pid INT, tid INT, start INT, "end" INT, apiName_id INT,
    args_id INT);
CREATE TABLE rocpd_op (id INTEGER NOT NULL PRIMARY KEY, gpuId INT, queueId INT, sequenceId INT, start INT, "end" INT,
    description_id INT, opType_id INT);
"""
UUID = "_0000_11ff"
PID, TID = 77, 78
GLOBAL = PID << 24 | TID


def made(schema: str, rows: dict[str, Iterable[tuple[object, ...]]], *more: str) -> bytes:
    """Rows by table, with values of its first columns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA page_size=1024")
        db.execute("PRAGMA journal_mode=OFF")
        db.executescript(schema)
        db.execute("BEGIN")
        for table, values in rows.items():
            n = len(db.execute(f'PRAGMA table_info("{table}")').fetchall())
            marks = ", ".join("?" * n)
            full = ((*row, *[None] * (n - len(row))) for row in values)
            db.executemany(f'INSERT INTO "{table}" VALUES ({marks})', full)
        for statement in more:
            db.execute(statement)
        db.execute("COMMIT")
        db.close()
        return path.read_bytes()


def nsys(rows: dict[str, Iterable[tuple[object, ...]]] | None = None, *more: str) -> bytes:
    return made(NSYS, NSYS_ROWS if rows is None else rows, *more)


NSYS_ROWS: dict[str, Iterable[tuple[object, ...]]] = {
    "StringIds": [(1, "void gemm<float>(float*)"), (2, "gemm"), (3, "cudaLaunchKernel_v7000"), (4, "worker"),
                  (5, "forward"), (6, "read"), (7, "cudaMemcpyAsync_v3020")],
    "PROCESSES": [(PID << 24, PID, "train")],
    "ThreadNames": [(4, 0, GLOBAL)],
    "TARGET_INFO_GPU": [(0, "H100")],
    "ENUM_CUDA_MEMCPY_OPER": [(1, "CUDA_MEMCPY_OPER_HTOD", "Host-to-Device")],
    "CUPTI_ACTIVITY_KIND_KERNEL": [(500, 700, 0, 1, 7, 9, PID << 24, 1, 2, 8),
                                   (800, 850, 0, 1, 7, 9, PID << 24, 1, 2, 8),
                                   (600, 900, 0, 1, 13, 9, PID << 24, 1, 2, 8)],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [(300, 400, 0, 1, 7, 8, PID << 24, 4096, 1),
                                   (950, 960, 0, 1, 7, 8, PID << 24, 64, 2)],
    "CUPTI_ACTIVITY_KIND_MEMSET": [(410, 420, 0, 1, 7, 8, PID << 24, 4096)],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [(110, 130, 0, GLOBAL, 9, 3, 0), (140, 150, 0, GLOBAL, 9, 7, 0)],
    "OSRT_API": [(20, 40, 0, GLOBAL + 1, 6)],
    "NVTX_EVENTS": [(0, None, 75, None, None, None, "NCCL", GLOBAL, None, None, 5),
                    (100, 200, 59, None, None, None, "step", GLOBAL, None, None, 0),
                    (105, 160, 59, None, None, None, None, GLOBAL, None, 5, 0),
                    (150, 260, 60, 1, None, None, "window", GLOBAL, None, None, 0),
                    (210, 230, 59, None, None, None, "AllReduce", GLOBAL, None, None, 5),
                    (170, None, 34, None, None, None, "mark", GLOBAL, None, None, 0)],
    "SCHED_EVENTS": [(1, 0, 1, GLOBAL)],
}  # fmt: skip
ROCPD_ROWS: dict[str, Iterable[tuple[object, ...]]] = {
    f"rocpd_string{UUID}": [(1, None, "hipLaunchKernel"), (2, None, "MEMORY_COPY_HOST_TO_DEVICE")],
    f"rocpd_info_process{UUID}": [(1, PID, "./jacobi")],
    f"rocpd_info_thread{UUID}": [(1, TID, "main")],
    f"rocpd_info_agent{UUID}": [(2, "GPU", 4, "gfx942", "MI300A")],
    f"rocpd_info_stream{UUID}": [(1, "Default Stream")],
    f"rocpd_info_kernel_symbol{UUID}": [(9, "_Z3sumPf.kd", "sum(float*)")],
    f"rocpd_region{UUID}": [(1, 1, 1, 100, 200, 1)],
    f"rocpd_kernel_dispatch{UUID}": [(1, 1, 1, 2, 9, 1, 1, 300, 450)],
    f"rocpd_memory_copy{UUID}": [(1, 1, 1, 210, 290, 2, 2, 4096, 1, 1)],
}
RPD_ROWS: dict[str, Iterable[tuple[object, ...]]] = {
    "rocpd_string": [(1, "hipModuleLaunchKernel"), (2, "sum")],
    "rocpd_api": [(1, PID, TID, 5, 9, 1, None)],
    "rocpd_op": [(1, 0, 3, 0, 10, 20, 2, 1)],
}


def rocpd() -> bytes:
    return made(ROCPD.format(id=UUID), ROCPD_ROWS)


def rpd() -> bytes:
    return made(RPD, RPD_ROWS)


def many(n: int) -> bytes:
    """n calls of one function, one after the other."""
    return nsys(
        {"StringIds": [(1, "f")], "CUPTI_ACTIVITY_KIND_RUNTIME": [(i, i, 0, GLOBAL, 1, 1, 0) for i in range(n)]}
    )
