"""The fastprof archive: any profile, small, intact and quick to reach.  See docs/formats/archive.md."""

from __future__ import annotations

from fastprof.core.engine import Format

MAGIC = b"\x89FPA\r\n\x1a\n"


FORMATS = (
    Format(
        name="archive",
        view="any",
        title="fastprof archive: any profile, compressed, with an index",
        suffixes=(".fpa",),
        sniff=lambda head: head.startswith(MAGIC),
        reader="read:ArchiveReader",
        writer="write:ArchiveWriter",
        selects=("member", "time_range", "threads", "part"),
        writes=("level",),
    ),
)
