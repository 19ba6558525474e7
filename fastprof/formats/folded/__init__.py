"""Folded (collapsed) stacks: a line of text for each stack.  See docs/formats/folded.md."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import MAYBE, NO, Capabilities, Format
from fastprof.core.options import Option, Text, Whole
from fastprof.core.streams import PEEK

COUNTS: Option[int | None] = Option(
    "counts",
    Whole(1, 2),
    None,
    format="folded",
    flag="--counts",
    help="read N counts at the end of each line: 1 or 2",
    details="Default: 2 (before and after) if all of the first lines end in two numbers, else 1.",
)
DECIMALS = Option(
    "decimals",
    Whole(0, 9),
    0,
    format="folded",
    flag="--decimals",
    help="keep N decimal places of counts (default: 0, rounded)",
    details="Counts are multiplied by 10^N.",
)
SUFFIXES = Option.switch(
    "suffixes",
    format="folded",
    help="read suffixes of names as kinds of code: _[k] is the kernel's, _[i] inlined",
    details="f_[k] becomes f of [kernel.kallsyms], g_[i] is inlined into its caller.  _[j], _[1] and _[0], compiled or "
    "interpreted code, are removed.",
)
ROOT: Option[str | None] = Option(
    "root", Text("NAME"), None, format="folded", flag="--root", help="add a root frame of this name to every stack"
)
NANOSECONDS = Option.switch(
    "nanoseconds",
    format="folded",
    flag="--nanoseconds",
    help="write times in nanoseconds (default: microseconds)",
    details="Microseconds suit viewers that allocate an object per unit.",
)


def first_stacks(head: bytes) -> list[bytes]:
    """The first lines that are not comments, without trailing blanks.  A line that the bytes cut is used only if it is
    the only one."""
    *whole, last = head.split(b"\n")
    lines = (line.rstrip(b" \t\r") for line in whole or [last])
    return [line for line in lines if line and not _is_comment(line)]


def _is_comment(line: bytes) -> bool:
    return line.startswith(b"#") and (line[1:2] in (b"", b" ", b"\t") or b";" not in line)


def sniff(head: bytes) -> int:
    """Frames, `;` between them, and a count, in each line or at least in half of them."""
    if bytes(4) in head:  # a name may contain a NUL byte, but a run of them is the padding of a binary file
        return NO
    lines = first_stacks(head)
    if not lines or head.startswith((b"#!", b"<!", b"<?")):  # a script ("exit 1"), HTML, XML
        return NO
    if head.startswith(b"# austin:") and b"\n# mode: memory\n" in head:
        return NO  # changes, also negative ones
    if len(head) >= PEEK and b"\n" not in head and re.fullmatch(_CUT, head):
        return MAYBE
    if any(b";" in line for line in lines):
        stacks = [line for line in lines if _is_stack(line)]
        several = sum(b";" in line for line in stacks)
        few_others = b";" in lines[0] and 2 * several >= len(lines)
        return MAYBE if several and (few_others or len(stacks) == len(lines)) else NO
    # Lines with a single frame look like many other texts: tables, settings, notes.
    alone = []
    for line in lines:
        if line.rpartition(b" ")[0].endswith(b":") or not _is_stack(line):  # as in "events: 5"
            return NO
        match = re.fullmatch(_ALONE, line)
        if match is None:
            return NO
        alone.append(match[1])
    is_text = len(alone) == 1 and re.fullmatch(rb"[\w/]+(?: [\w/]+)+", alone[0])  # "Debian GNU/Linux 12"
    is_table = all(name.startswith(b"0x") for name in alone)  # of addresses
    return MAYBE if len(alone) == len({*alone}) and not is_text and not is_table else NO


def _is_line(line: bytes) -> bool:
    """Frames without control characters (NUL and tab occur in names), and a count that does not begin with 0.

    `re`, which most inputs do not need otherwise, takes a tenth of a start.
    """
    at = max(line.rfind(b" "), line.rfind(b"\t"))
    whole, _, decimals = line[at + 1 :].partition(b".")
    is_number = whole.isdigit() and (whole[:1] != b"0" or whole == b"0") and (not decimals or decimals.isdigit())
    return at > 0 and is_number and len(line[:at].translate(None, _CONTROL)) == at


def _is_stack(line: bytes) -> bool:
    """Such a line that is no JSON."""
    return _is_line(line) and (line[:1] not in (b"{", b"[") or not re.match(_JSON, line))


def could_be(head: bytes) -> bool:
    """A name and a count in each line: functions without names are numbers, as those of XRay logs.  Or nothing: a
    profile without samples."""
    lines = first_stacks(head)
    return not head or (bool(lines) and bytes(4) not in head and all(map(_is_line, lines)))


_CONTROL = bytes({*range(1, 32)} - {9})
# PHP's and Lua's names begin with `{main}` and `[C]`.
_JSON = rb"\{ *(?:\"|$)|\[ *(?:[\[{\"]|\d[^;]*$)"
# None of them is "key: 1", "+3 1" or "name = 1", in a column, 0, or there twice.  But "+[NSObject load] 1" is one, and
# "0x40519f 1" among others.
_ALONE = rb"((?:[^-+*\d\s]|[-+]\[[A-Za-z_]|0x[0-9a-fA-F]+(?=[ \t][\d.]+$))[^=]*(?<![:\s]))[ \t](?=[\d.]*[1-9])[\d.]+"
# A stack so deep that its count is beyond the head.  A page or program without line breaks has quotes, `=` and braces;
# a stack with them is known by its whole line.
_CUT = rb"(?:[^;\"={}\x00-\x1f]*;){16,}[^;\"={}\x00-\x1f]*"


FORMATS = (
    Format(
        name="folded",
        view="stacks",
        title="folded (collapsed) stacks: frame;frame;frame count",
        suffixes=(".folded", ".collapsed"),
        sniff=sniff,
        could_be=could_be,
        long_lines=True,
        reader="read:FoldedReader",
        writer="write:FoldedWriter",
        holds=Capabilities(
            values=False,
            labels=False,
            times=False,
            places=False,
            keeps_stacks=False,
            repeats_frames=True,
            short_names=True,
            lacks=frozenset(
                {"system-names", "build-ids", "thread-names", "value-names", "long-names", "inherited-events", "parts"}
            ),
            header=frozenset(),
        ),
        reads=(COUNTS, DECIMALS, SUFFIXES),
        writes=(ROOT, NANOSECONDS),
    ),
)
