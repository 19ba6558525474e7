"""The text of `perf script`: a sample's process, time and event, then its frames.  See docs/formats/perf-script.md."""

from __future__ import annotations

from re import compile as pattern

from fastprof.core.engine import MAYBE, NO, SURE, Format
from fastprof.core.options import Option, Switch

COMM_FRAMES = Option(
    "comm_frames",
    Switch(),
    False,
    format="perf-script",
    flag="--comm-frames",
    help="add the process name as root frame",
    details="As stackcollapse-perf.pl does.  The name is also the label `comm`, with or without this option.",
)

_BEFORE = rb"(?:#[ \t].*\n|#\n|\r?\n|\[ perf .*\n|Warning:.*\n|Processed .*\n)*"
# `demo  6598/6599 [001]  1593.383339: `: nothing else has a thread, seconds with six or nine decimals, and a colon
_THREAD = rb"-?\d+(?:/-?\d+)?[ \t]+(?:\[\d+\][ \t]+)?(?:[KUHGgMESp]+ +)?"
_WITH_TIME = pattern(_BEFORE + rb"[ \t]*\S?.{0,80}?[ \t]*" + _THREAD + rb"\d+\.(?:\d{6}|\d{9}):[ \t\r\n]")
# Without a time, but with frames: `java 19983 cycles:` and `<tab>    7f844bb8199a main (/srv/demo)`, or frames alone
_FRAME = rb"[ \t]*[0-9a-f]{1,16} \S[^\n]*"
_WITH_FRAMES = pattern(
    _BEFORE + rb"(?:\S[^\n;]{0,200}\r?\n)?(?:" + _FRAME + rb"\r?\n){1,4}?" + _FRAME + rb"\([^\n]*\)[ \t]*\r?\n"
)
_TAB_FRAMES = pattern(_BEFORE + rb"(?:[^\n;\t]{0,200}\r?\n)?\t[ ]*[0-9a-f]{1,16} \S")
_NOT = pattern(rb"# To display the perf\.data header|\s*#?\s*Overhead ")  # perf report


def sniff(head: bytes) -> int:
    """A sample with a time, or a line and frames below it."""
    if b"\0" in head or _NOT.match(head):
        return NO
    if _WITH_TIME.match(head):
        return SURE
    return MAYBE if _TAB_FRAMES.match(head) or _WITH_FRAMES.match(head) else NO


FORMATS = (
    Format(
        name="perf-script",
        view="stacks",
        title="text of Linux's perf script, with or without call chains",
        suffixes=(".perf",),
        sniff=sniff,
        reader="read:PerfScriptReader",
        reads=(COMM_FRAMES,),
    ),
)
