"""The text of `perf script`: a sample's process, time and event, then its frames.  See docs/formats/perf-script.md."""

from __future__ import annotations

from fastprof.core import lazy_re as re
from fastprof.core.branches import BRANCHES
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

# Patterns are compiled when an input comes to them, and most never come to the costly ones.
_BEFORE = rb"\A(?:#[ \t].*\n|#\n|\r?\n|\[ perf .*\n|Warning:.*\n|Processed .*\n)*"
# `demo  6598/6599 [001]  1593.383339: `: nothing else has a thread, seconds with six or nine decimals, and a colon
_TIME = rb"\d\.(?:\d{6}|\d{9}):[ \t\r\n]"
_THREAD = rb"-?\d+(?:/-?\d+)?[ \t]+(?:\[\d+\][ \t]+)?(?:[KUHGgMESp]+ +)?"
_WITH_TIME = rb"[ \t]*\S?.{0,80}?[ \t]*" + _THREAD + rb"\d*" + _TIME
# Without a time, but with frames: `java 19983 cycles:` and `<tab>    7f844bb8199a main (/srv/demo)`, or frames alone
_FRAME = rb"[ \t]*[0-9a-f]{1,16} \S[^\n]*"
_WITH_FRAMES = rb"(?:\S[^\n;]{0,200}\r?\n)?(?:" + _FRAME + rb"\r?\n){1,4}?" + _FRAME + rb"\([^\n]*\)[ \t]*\r?\n"
_TAB_FRAMES = rb"(?:[^\n;\t]{0,200}\r?\n)?\t[ ]*[0-9a-f]{1,16} \S"
# -F ip,brstack: nothing but an address before the branches
_ONLY_BRANCHES = (
    rb"(?:PERF_RECORD_MMAP2? -?\d+/\d+: \[.*\r?\n)*"
    rb"(?:[ \t]*[0-9a-f]{1,16}[ \t]+0x[0-9a-f]+(?:\([^\n]*?\))?/0x[0-9a-f]+|PERF_RECORD_MMAP2? -?\d+/\d+: \[)"
)


def has_only_branches(head: bytes) -> bool:
    text = re.sub(_BEFORE, b"", head, count=1) if head[:1] in b"#\r\n[WP" else head
    return bool(re.match(_ONLY_BRANCHES, text))


def may_have_branches(head: bytes) -> bool:
    """Mappings, which only branches need, may come first."""
    return bool(re.search(rb"PERF_RECORD_MMAP| 0x[0-9a-f]+(?:\([^\n]*?\))?/0x[0-9a-f]+", head))


def _begins_with_address(line: bytes) -> bool:
    address, _, rest = line.lstrip(b" \t").partition(b" ")
    return 0 < len(address) <= 16 and not address.strip(b"0123456789abcdef") and bool(rest[:1].strip())


def sniff(head: bytes) -> int:
    """A sample with a time, or a line and frames below it."""
    if b"\0" in head or head.startswith(b"# To display the perf.data header"):
        return NO
    if head.lstrip(b"# \t\r\n").startswith(b"Overhead "):  # perf report
        return NO
    text = re.sub(_BEFORE, b"", head, count=1) if head[:1] in b"#\r\n[WP" else head
    # `re` is not imported for texts that lack what it needs at least
    has_digits = any(piece[-6:].isdigit() for piece in text.split(b":")[:-1])
    if has_digits and re.search(_TIME, text) and re.match(_WITH_TIME, text):
        return SURE
    if (b"/0x" in text or b"PERF_RECORD_MMAP" in text) and has_only_branches(head):
        return SURE
    if not any(map(_begins_with_address, text.split(b"\n", 2)[:2])):
        return NO
    return MAYBE if re.match(_TAB_FRAMES, text) or re.match(_WITH_FRAMES, text) else NO


FORMATS = (
    Format(
        name="perf-script",
        view="stacks",
        title="text of Linux's perf script, with or without call chains",
        suffixes=(".perf",),
        sniff=sniff,
        reader="read:PerfScriptReader",
        reads=(COMM_FRAMES, BRANCHES),
    ),
)
