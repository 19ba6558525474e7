"""Folded (collapsed) stacks: a line of text for each stack.  See docs/formats/folded.md."""

from __future__ import annotations

from fastprof.core.engine import MAYBE, NO, Format, Holds
from fastprof.core.options import Option, Switch, Text, Whole

COUNTS: Option[int | None] = Option(
    "counts",
    Whole(1, 2),
    None,
    group="folded",
    help="numbers at the end of each line (default: 2, as in a comparison, if all of the first lines have two; else 1)",
)
DECIMALS = Option(
    "decimals",
    Whole(0, 9),
    0,
    group="folded",
    help="keep this many digits behind the point of counts, which become 10^N times as large (default: 0, rounded)",
)
ROOT: Option[str | None] = Option(
    "root", Text("NAME"), None, group="folded", help="begin every stack with a frame of this name"
)
NANOSECONDS = Option(
    "nanoseconds",
    Switch(),
    False,
    group="folded",
    help="write times in nanoseconds (default: in microseconds; some viewers make an object of each count)",
)

BOM = b"\xef\xbb\xbf"


def first_stacks(head: bytes) -> list[bytes]:
    """The lines of the first bytes that are no comments, without blanks at their end.  A line that the bytes cut is
    taken only if there is no other."""
    *whole, last = head.removeprefix(BOM).split(b"\n")
    lines = (line.rstrip(b" \t\r") for line in whole or [last])
    return [line for line in lines if line and not _is_comment(line)]


def _is_comment(line: bytes) -> bool:
    return line.startswith(b"#") and (line[1:2] in (b"", b" ", b"\t") or b";" not in line)


def sniff(head: bytes) -> int:
    from re import fullmatch

    if bytes(4) in head:  # a name may hold a NUL byte, but a run of them is padding: text in a binary file
        return NO
    lines = first_stacks(head)
    # frames without control characters (NUL and tab are met in names), a count; not JSON
    stacks = [line for line in lines if fullmatch(rb"(?!\{|\[[\[{\"])[^\x01-\x08\x0a-\x1f]+[ \t]\d+(\.\d*)?", line)]
    several = [line for line in stacks if b";" in line]
    if several and (lines[0] == several[0] or 2 * len(several) >= len(lines)):
        return MAYBE
    # Lines of one frame each look like those of many other texts: all must be so, and none like "key: 1" or "+3 1".
    alone = [line for line in stacks if fullmatch(rb"[^-+*\d\s{\[][^=]*(?<!:)[ \t][\d.]+", line)]
    return MAYBE if lines and len(alone) == len(lines) else NO


FORMATS = (
    Format(
        name="folded",
        view="stacks",
        title="folded (collapsed) stacks: frame;frame;frame count",
        suffixes=(".folded", ".collapsed"),
        sniff=sniff,
        reader="read:FoldedReader",
        writer="write:FoldedWriter",
        holds=Holds(values=False, labels=False, times=False, places=False, keeps_stacks=False, short_names=True),
        reads=(COUNTS, DECIMALS),
        writes=(ROOT, NANOSECONDS),
    ),
)
