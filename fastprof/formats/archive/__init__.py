"""The fastprof archive: any profile, small, intact and quick to reach.  See docs/formats/archive.md."""

from __future__ import annotations

from fastprof.core.engine import NO, SURE, Format, Holds
from fastprof.core.options import UINT64, Option, Range, Text, Whole

MAGIC = b"\x89FPA\r\n\x1a\n"

MEMBER: Option[str | None] = Option(
    "member", Text("NAME"), None, group="archive", help="read this profile of the archive"
)
TIME_RANGE: Option[tuple[int, int] | None] = Option(
    "time_range",
    Range(),
    None,
    group="archive",
    help="read only what happened from A to B, in ticks of a timeline or nanoseconds of stacks; either may be left out",
)
THREADS: Option[tuple[int, ...]] = Option(
    "threads",
    Whole(0, UINT64, "TID"),
    (),
    several=True,
    flag="--thread",
    group="archive",
    help="read only this thread; may be repeated",
)
PART: Option[int | None] = Option(
    "part", Whole(1, UINT64), None, group="archive", help="read only this part; the first one is 1"
)
LEVEL: Option[int | None] = Option(
    "level", Whole(1, 22), None, group="archive", help="compression level, from 1 to 22 (smallest); default: 3"
)


FORMATS = (
    Format(
        name="archive",
        view="any",
        title="fastprof archive: any profile, compressed, with an index",
        suffixes=(".fpa",),
        sniff=lambda head: SURE if head.startswith(MAGIC) else NO,
        reader="read:ArchiveReader",
        writer="write:ArchiveWriter",
        holds=Holds(verbatim=True),
        selects=(MEMBER, TIME_RANGE, THREADS, PART),
        writes=(LEVEL,),
    ),
)
