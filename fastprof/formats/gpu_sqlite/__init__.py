"""SQLite databases of Nsight Systems (nsys export) and ROCm's profilers (rocpd).  See docs/formats/gpu-sqlite.md."""

from fastprof.core.engine import NO, SURE, Format
from fastprof.core.options import MAX_MEMORY


def sniff(head: bytes) -> int:
    """The names of tables may be beyond the head; other databases are an error of the reader.  Programs that have an
    application id of SQLite (at byte 68) are others."""
    is_database = head.startswith(b"SQLite format 3\0") and len(head) >= 100
    return SURE if is_database and head[68:72] == bytes(4) else NO


FORMATS = (
    Format(
        name="gpu-sqlite",
        view="timeline",
        title="SQLite export of Nsight Systems (nsys) or ROCm's profilers (rocpd)",
        suffixes=(".sqlite", ".rpd"),
        sniff=sniff,
        reader="read:GpuSqliteReader",
        reads=(MAX_MEMORY,),
    ),
)
