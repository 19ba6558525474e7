"""The text of `perf script`: a sample's process, time and event, then its frames.  See docs/formats/perf-script.md."""

from fastprof.core import lazy_re as re
from fastprof.core.branches import BRANCHES
from fastprof.core.engine import MAYBE, NO, SURE, Format
from fastprof.core.options import Option

COMM_FRAMES = Option.switch(
    "comm_frames",
    format="perf-script",
    flag="--comm-frames",
    help="add the process name as root frame",
    details="As stackcollapse-perf.pl does.  The name is also the label `comm`, with or without this option.",
)

# Without a time, but with frames: `java 19983 cycles:` and `<tab>    7f844bb8199a main (/srv/demo)`, or frames alone
_FRAME = rb"[ \t]*[0-9a-f]{1,16} \S[^\n]*"
_WITH_FRAMES = rb"(?:\S[^\n;]{0,200}\r?\n)?(?:" + _FRAME + rb"\r?\n){1,4}?" + _FRAME + rb"\([^\n]*\)[ \t]*\r?\n"
_TAB_FRAMES = rb"(?:[^\n;\t]{0,200}\r?\n)?\t[ ]*[0-9a-f]{1,16} \S"
# Without a time or a thread, but with a place: `demo 6646 cycles:           7f844bb8199a [unknown] (/usr/lib/ld.so)`
_WITH_PLACE = rb"[^\n]{1,120}?[ ]\S{1,120}:(?=[ 0-9a-f]{16})[ ]{2,}[0-9a-f]{1,16}(?: \S|\r?\n)"
# -F ip,brstack: nothing but an address before the branches
_ONLY_BRANCHES = (
    rb"(?:PERF_RECORD_MMAP2? -?\d+/\d+: \[.*\r?\n)*"
    rb"(?:[ \t]*[0-9a-f]{1,16}[ \t]+0x[0-9a-f]+(?:\([^\n]*?\))?/0x[0-9a-f]+|PERF_RECORD_MMAP2? -?\d+/\d+: \[)"
)


def _without_remarks(head: bytes) -> bytes:
    """The text from the first line of a sample on."""
    line, newline, rest = head.partition(b"\n")
    while newline and (line in (b"", b"\r", b"#") or line.startswith(_REMARKS)):
        head = rest
        line, newline, rest = head.partition(b"\n")
    return head


_REMARKS = (b"# ", b"#\t", b"[ perf ", b"Warning:", b"Processed ")


def _has_time(line: bytes) -> bool:
    """`demo  6598/6599 [001]  1593.383339: `: nothing else has a thread, seconds with six or nine decimals, and a
    colon."""
    words = line[:_LONGEST_BEGIN].split()
    return any(_is_time(words[i]) and _is_thread(words[:i]) for i in range(1, len(words)))


_LONGEST_BEGIN = 120  # bytes, most of them a name


def _is_time(word: bytes) -> bool:
    seconds, point, decimals = word.partition(b".")
    is_long = len(decimals) in (7, 10) and decimals.endswith(b":")
    return bool(point) and seconds.isdigit() and is_long and decimals[:-1].isdigit()


def _is_thread(words: list[bytes]) -> bool:
    """Whether they end with a thread, its CPU and flags."""
    if not words[-1].strip(b"KUHGgMESp"):
        words.pop()
    if words and words[-1].startswith(b"[") and words[-1].endswith(b"]") and words[-1][1:-1].isdigit():
        words.pop()
    return bool(words) and words[-1][-1:].isdigit()


def has_only_branches(head: bytes) -> bool:
    return bool(re.match(_ONLY_BRANCHES, _without_remarks(head)))


def may_have_branches(head: bytes) -> bool:
    """Mappings, which only branches need, may come first."""
    return bool(re.search(rb"PERF_RECORD_MMAP| 0x[0-9a-f]+(?:\([^\n]*?\))?/0x[0-9a-f]+", head))


def _begins_with_address(line: bytes) -> bool:
    address, _, rest = line.lstrip(b" \t").partition(b" ")
    return 0 < len(address) <= 16 and not address.strip(b"0123456789abcdef") and bool(rest[:1].strip())


def sniff(head: bytes) -> int:
    """A sample with a time or a place, or a line and frames below it."""
    if b"\0" in head or head.startswith(b"# To display the perf.data header"):
        return NO
    if head.lstrip(b"# \t\r\n").startswith(b"Overhead "):  # perf report
        return NO
    text = _without_remarks(head)
    first = text.partition(b"\n")[0]
    if _has_time(first):
        return SURE
    if (b"/0x" in text or b"PERF_RECORD_MMAP" in text) and has_only_branches(head):
        return SURE
    if b":  " in first and re.match(_WITH_PLACE, text):
        return MAYBE
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
