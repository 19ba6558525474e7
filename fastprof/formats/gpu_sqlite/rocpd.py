"""Databases of ROCm's profilers: rocprofv3's rocpd, and RPD of rocmProfileData.

    rocpd_string_UUID             id, string                                       of RPD without UUID, as the others
    rocpd_kernel_dispatch_UUID    start, end, agent_id, stream_id, kernel_id ...   a call on a stream
    rocpd_memory_copy_UUID        start, end, dst_agent_id, stream_id, name_id ...
    rocpd_region_UUID             start, end, pid, tid, name_id ...                a call on a thread
    rocpd_api, rocpd_op           start, end, pid, tid, apiName_id; gpuId, queueId, description_id   of RPD

Ids of processes, threads, agents, streams and kernels are those of tables rocpd_info_NAME_UUID.
Source: rocprofiler-sdk's share/rocprofiler-sdk-rocpd/rocpd_tables.sql; rocmProfileData's schema_data.
"""

import re
from collections.abc import Callable, Iterator

from fastprof.core._typing import Any
from fastprof.formats.gpu_sqlite.database import Database, Place, Query, text

_KINDS = {
    "region": (b"region", ("name_id",), ("pid", "tid")),
    "kernel_dispatch": (b"kernel", ("kernel_id",), ("agent_id", "stream_id")),
    "memory_copy": (b"gpu_memcpy", ("name_id",), ("dst_agent_id", "stream_id")),
    "memory_allocate": (b"gpu_memory", ("type",), ("pid", "tid")),
    "api": (b"hip_api", ("apiName_id",), ("pid", "tid")),
    "op": (b"kernel", ("description_id",), ("gpuId", "queueId")),
}
_TABLE = re.compile(rf"rocpd_({'|'.join(_KINDS)})(_[0-9a-f_]+)?", re.IGNORECASE)


def is_rocpd(db: Database) -> bool:
    return any(map(_TABLE.fullmatch, db.tables))


class Rocpd:
    """What the tables mean."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def queries(self) -> Iterator[Query]:
        for table, columns in self._db.tables.items():
            if not (found := _TABLE.fullmatch(table)):
                continue
            kind, of = found[1].lower(), found[2] or ""
            category, names, threads = _KINDS[kind]
            if not {"start", "end", *names, *threads} <= columns:
                continue
            name = self._db.names(f"rocpd_string{of}", "id", "string")
            if kind == "kernel_dispatch":
                name = self._db.names(f"rocpd_info_kernel_symbol{of}", "id", "display_name", "kernel_name")
            place = self._thread(of) if threads == ("pid", "tid") else self._stream(of, is_op=kind == "op")
            yield Query(table, category, ("start", "end"), names, threads, name, place)

    def _thread(self, of: str) -> Callable[..., Place]:
        """Numbers of RPD are those of the system."""
        db = self._db
        pids, commands = (db.mapped(f"rocpd_info_process{of}", "id", column) for column in ("pid", "command"))
        tids, names = (db.mapped(f"rocpd_info_thread{of}", "id", column) for column in ("tid", "name"))

        def place(pid: Any, tid: Any) -> Place:
            return Place(pids.get(pid, pid), text(commands.get(pid)), tids.get(tid, tid), text(names.get(tid)))

        return place

    def _stream(self, of: str, *, is_op: bool) -> Callable[..., Place]:
        db = self._db
        agents = db.mapped(f"rocpd_info_agent{of}", "id", "product_name", "name")
        numbers = db.mapped(f"rocpd_info_agent{of}", "id", "absolute_index", "logical_index")
        streams = db.mapped(f"rocpd_info_stream{of}", "id", "name")

        def place(agent: Any, stream: Any) -> Place:
            number, name = numbers.get(agent, agent), text(agents.get(agent))
            shown = (b"GPU " + text(number) if number is not None else b"copies") + (
                b" (" + name + b")" if name else b""
            )
            named = text(streams.get(stream)) or (b"queue " if is_op else b"stream ") + text(stream)
            return Place(("gpu", of, agent), shown, ("gpu", of, agent, stream), named, text(stream))

        return place
