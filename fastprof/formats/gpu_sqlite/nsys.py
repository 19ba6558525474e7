"""Databases of `nsys export --type sqlite`: docs.nvidia.com/nsight-systems, "SQLite Schema Reference".

    StringIds                     id, value
    CUPTI_ACTIVITY_KIND_KERNEL    start, end, deviceId, streamId, globalPid, demangledName ...        a call on a stream
    CUPTI_ACTIVITY_KIND_RUNTIME   start, end, globalTid, nameId ...                                   a call on a thread
    NVTX_EVENTS                   start, end or null, eventType, globalTid, text or textId, domainId

A globalTid has the process in bits 24 to 47 and the thread in bits 0 to 23.
"""

import re
from collections.abc import Iterator

from fastprof.core._typing import Any
from fastprof.formats.gpu_sqlite.database import CALL, EVENT, SKIPPED, Database, Place, Query, text

_COPIES = {1: b"HtoD", 2: b"DtoH", 3: b"HtoA", 4: b"AtoH", 5: b"AtoA", 6: b"AtoD", 7: b"DtoA", 8: b"DtoD", 9: b"HtoH",
           10: b"PtoP"}  # fmt: skip
_STREAMS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (b"kernel", ("demangledName", "shortName", "mangledName", "name")),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (b"gpu_memcpy", ("copyKind",)),
    "CUPTI_ACTIVITY_KIND_MEMSET": (b"gpu_memset", ()),
}
_CATEGORIES = {"CUPTI_ACTIVITY_KIND_RUNTIME": b"cuda_runtime", "CUPTI_ACTIVITY_KIND_DRIVER": b"cuda_driver"}
_PUSHED, _MARK, _RANGE = 59, 34, 60  # types of NVTX_EVENTS
_DOMAIN = 75


def is_nsys(db: Database) -> bool:
    return "StringIds" in db.tables


class Nsys:
    """What the tables mean."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._string = db.names("StringIds", "id", "value")
        processes = db.mapped("PROCESSES", "globalPid", "name")
        self._processes = {key >> 24 & 0xFFFFFF: text(name) for key, name in processes.items() if isinstance(key, int)}
        names = db.mapped("ThreadNames", "globalTid", "nameId")
        self._threads = {key: self._string(name) for key, name in names.items()}
        self._gpus = db.mapped("TARGET_INFO_GPU", "id", "name")
        self._copies = {**_COPIES, **db.mapped("ENUM_CUDA_MEMCPY_OPER", "id", "label", "name")}
        self._domains = dict[Any, bytes]()
        if {"eventType", "domainId", "text"} <= db.tables.get("NVTX_EVENTS", frozenset()):
            for kind, domain, name in db.select("NVTX_EVENTS", "eventType", "domainId", "text"):
                if kind == _DOMAIN:
                    self._domains[domain] = text(name)

    def queries(self) -> Iterator[Query]:
        for table, columns in self._db.tables.items():
            if not {"start", "end"} <= columns:
                continue
            if table in _STREAMS and "streamId" in columns:
                category, names = _STREAMS[table]
                named = tuple(name for name in names if name in columns)[:1]
                keys = tuple(key for key in ("globalPid", "deviceId", "contextId", "streamId") if key in columns)
                of = self._copy if category == b"gpu_memcpy" else self._string if named else self._memset
                yield Query(table, category, ("start", "end"), named, keys, of, self._stream(keys))
            elif table == "NVTX_EVENTS" and "globalTid" in columns:
                named = tuple(name for name in ("eventType", "text", "textId", "domainId") if name in columns)
                of, kind, place = self._nvtx(named)
                threads = ("globalTid", *(name for name in named if name == "eventType"))
                yield Query(table, b"nvtx", ("start", "end"), named, threads, of, place, kind)
            elif "globalTid" in columns and (named := tuple(n for n in ("nameId", "textId") if n in columns)[:1]):
                category = _CATEGORIES.get(table) or re.sub(r"_(API|EVENTS)$", "", table).lower().encode()
                yield Query(table, category, ("start", "end"), named, ("globalTid",), self._call, self._thread)

    # ---- names

    def _call(self, id: object) -> bytes:
        """Without the version of the interface: cudaLaunchKernel_v7000."""
        return re.sub(rb"_v\d+$", b"", self._string(id))

    def _copy(self, kind: object) -> bytes:
        return b"memcpy " + text(self._copies.get(kind, kind))

    def _memset(self) -> bytes:
        return b"memset"

    def _nvtx(self, columns: tuple[str, ...]) -> tuple[Any, Any, Any]:
        def field(values: tuple[Any, ...], name: str) -> Any:
            return values[columns.index(name)] if name in columns else None

        def of(*values: Any) -> bytes:
            name = text(field(values, "text")) or self._string(field(values, "textId"))
            domain = self._domains.get(field(values, "domainId"))
            return domain + b": " + name if domain else name

        def kind(*values: Any) -> int:
            type_ = field(values, "eventType")
            return CALL if type_ in (_PUSHED, _RANGE, None) else EVENT if type_ == _MARK else SKIPPED

        def place(thread: Any, type_: Any = None) -> Place:
            """Ranges with a begin and an end anywhere are on a thread of their own."""
            found = self._thread(thread)
            return found._replace(thread=(found.process, "ranges"), name=b"NVTX ranges") if type_ == _RANGE else found

        return of, kind, place

    # ---- threads

    def _thread(self, id: Any) -> Place:
        pid = id >> 24 & 0xFFFFFF
        return Place(pid, self._processes.get(pid, b""), id & 0xFFFFFF, self._threads.get(id, b""))

    def _stream(self, columns: tuple[str, ...]) -> Any:
        def place(*values: Any) -> Place:
            found = dict(zip(columns, values, strict=True))
            gpu, stream = found.get("deviceId", 0), found["streamId"]
            name = text(self._gpus.get(gpu))
            shown = b"GPU %d" % gpu + (b" (" + name + b")" if name else b"")
            return Place(("gpu", gpu), shown, ("gpu", *values), b"stream %d" % stream, b"%d" % stream)

        return place
