"""What `simpleperf report-sample --protobuf` writes, by its published schema and the `protobuf` package."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from tests.reference.profile_proto import build

Record = build(
    {
        "Entry": [
            ("vaddr_in_file", 1, "uint64"),
            ("file_id", 2, "uint32"),
            ("symbol_id", 3, "int32"),
            ("execution_type", 4, "int32"),  # an enum
        ],
        "Unwinding": [("raw_error_code", 1, "uint32"), ("error_addr", 2, "uint64"), ("error_code", 3, "int32")],
        "Sample": [
            ("time", 1, "uint64"),
            ("thread_id", 2, "int32"),
            ("callchain", 3, "Entry*"),
            ("event_count", 4, "uint64"),
            ("event_type_id", 5, "uint32"),
            ("unwinding_result", 6, "Unwinding"),
        ],
        "Lost": [("sample_count", 1, "uint64"), ("lost_count", 2, "uint64")],
        "File": [
            ("id", 1, "uint32"),
            ("path", 2, "string"),
            ("symbol", 3, "string*"),
            ("mangled_symbol", 4, "string*"),
        ],
        "Thread": [("thread_id", 1, "uint32"), ("process_id", 2, "uint32"), ("thread_name", 3, "string")],
        "MetaInfo": [
            ("event_type", 1, "string*"),
            ("app_package_name", 2, "string"),
            ("app_type", 3, "string"),
            ("android_sdk_version", 4, "string"),
            ("android_build_type", 5, "string"),
            ("trace_offcpu", 6, "bool"),
        ],
        "Switch": [("switch_on", 1, "bool"), ("time", 2, "uint64"), ("thread_id", 3, "uint32")],
        "Record": [
            ("sample", 1, "Sample"),
            ("lost", 2, "Lost"),
            ("file", 3, "File"),
            ("thread", 4, "Thread"),
            ("meta_info", 5, "MetaInfo"),
            ("context_switch", 6, "Switch"),
        ],
    },
    "simpleperf_report_proto",
    "Record",
    "proto2",
)

Entry = tuple[int, int, int]  # address, file, symbol
HEAD, END = b"SIMPLEPERF\1\0", bytes(4)
ERRORS = ("", "unknown", "not enough stack", "invalid memory", "no unwind information")


def sample(
    entries: Iterable[Entry], thread: int = 7, time: int = 1, count: int = 1, event: int = 0, error: int = 0
) -> dict[str, Any]:
    """The fields of a record."""
    chain = [dict(zip(("vaddr_in_file", "file_id", "symbol_id"), entry, strict=True)) for entry in entries]
    one: dict[str, Any] = {"time": time, "thread_id": thread, "callchain": chain, "event_count": count}
    if error:
        one["unwinding_result"] = {"raw_error_code": 9, "error_addr": 1, "error_code": error}
    return {"sample": one | {"event_type_id": event}}


def write(records: Iterable[dict[str, Any]]) -> bytes:
    found = [Record(**fields).SerializeToString() for fields in records]
    return HEAD + b"".join(struct.pack("<I", len(one)) + one for one in found) + END


def rows(data: bytes) -> list[Any]:
    """Samples as tests.support.stackdump has them, with object and address of frames and the names of threads."""
    at, records = len(HEAD), []
    while nbytes := struct.unpack_from("<I", data, at)[0]:
        records.append(Record.FromString(data[at + 4 : at + 4 + nbytes]))
        at += 4 + nbytes
    files = {r.file.id: r.file for r in records if r.HasField("file")}
    n_events = next(len(r.meta_info.event_type) for r in records if r.HasField("meta_info"))
    found = []
    for one in (r.sample for r in records if r.HasField("sample")):
        stack, values = [], [0] * 2 * n_events
        for entry in one.callchain:
            file, k = files[entry.file_id], entry.symbol_id
            names = []
            if k >= 0:
                own = file.mangled_symbol[k] if k < len(file.mangled_symbol) else file.symbol[k]
                names = [(file.symbol[k].encode(), own.encode())]
            stack.append((file.path.encode(), entry.vaddr_in_file, tuple(names)))
        values[2 * one.event_type_id : 2 * one.event_type_id + 2] = 1, one.event_count
        error = ERRORS[one.unwinding_result.error_code].encode()
        found.append((tuple(stack), ((b"unwinding", error),) if error else (), tuple(values)))
    return found
