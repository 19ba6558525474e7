"""The fastprof archive: profiles compressed, checksummed and indexed.  See docs/formats/archive.md."""

from fastprof.core.engine import NO, STACKS_AT_A_TIME, SURE, Capabilities, Format
from fastprof.core.options import Option, Text, Whole

MAGIC = b"\x89FPA\r\n\x1a\n"

MEMBER: Option[str | None] = Option(
    "member", Text("NAME"), None, format="archive", flag="--member", help="read this profile of an archive"
)
LEVEL: Option[int | None] = Option(
    "level",
    Whole(1, 22),
    None,
    format="archive",
    flag="--level",
    help="compression level, 1 to 22 (default: 3)",
    details="22 gives the smallest output and is slowest.",
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
        holds=Capabilities(verbatim=True, model_order=True, keeps_stacks=False, stacks_at_a_time=STACKS_AT_A_TIME),
        selects=(MEMBER,),
        writes=(LEVEL,),
    ),
)
