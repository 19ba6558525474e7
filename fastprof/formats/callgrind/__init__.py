"""Callgrind and Cachegrind, which share the syntax of their lines.  See docs/formats/callgrind.md and cachegrind.md."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import MAYBE, NO, SURE, Capabilities, Format
from fastprof.core.options import Option

COMPRESS_NAMES = Option.switch(
    "compress_names", default=True, format="callgrind", flag="--no-compress-names", help="write every name in full"
)
COMPRESS_POSITIONS = Option.switch(
    "compress_positions",
    default=True,
    format="callgrind",
    flag="--no-compress-positions",
    help="write every position in full",
)


_CALLGRIND_HEAD = b"# callgrind format"


def is_cachegrind(head: bytes) -> bool:
    """Only `desc:` and `cmd:` before `events:`, and no line in the body that Cachegrind does not write."""
    if head[:1] not in b"\n#dc" or b"cmd: " not in head or head.startswith(_CALLGRIND_HEAD):
        return False
    lines = head.split(b"\n")
    cmd, end = 0, len(lines) - 1  # `end`: the line that the head cuts
    while cmd < end and (not lines[cmd] or lines[cmd].startswith((b"desc: ", b"#"))):
        cmd += 1
    if not lines[cmd].startswith(b"cmd: "):
        return False
    if cmd == end:  # a command so long that the rest of the header is beyond the head
        return len(lines[cmd]) >= _LONG
    events = cmd + 1
    while events < end and not lines[events].startswith(b"events: "):
        events += 1
    if events == end and not (lines[end].startswith(b"events: ") and len(lines[end]) >= _LONG):
        return False
    header, body = lines[cmd:events], lines[events + 1 :]
    return not any(line.startswith(_NOT_CACHEGRIND_HEADER) for line in header) and not any(map(_is_callgrind, body))


def _is_callgrind(line: bytes) -> bool:
    """A line of the body that Cachegrind does not write."""
    number, is_numbered, _ = line[4:].partition(b")")
    return line.startswith(_NOT_CACHEGRIND_BODY) or (
        line.startswith((b"fl=(", b"fn=(", b"fe=(")) and number.isdigit() and bool(is_numbered)
    )


_LONG = 2000
_NOT_CACHEGRIND_HEADER = (b"version: ", b"creator: ", b"positions: ", b"part: ", b"pid: ", b"thread: ", b"event: ")
_NOT_CACHEGRIND_BODY = (
    *(b"ob=", b"cob=", b"cfn=", b"cfi=", b"cfl=", b"calls=", b"jump=", b"jcnd="),
    *(b"+", b"*", b"0x", b"totals:", b"part:"),
)


def sniff(head: bytes) -> int:
    """SURE for Callgrind's first line, which many writers omit; MAYBE for one of its header lines together with another
    Callgrind line: other texts have a line `events: push`, too."""
    if head.startswith(_CALLGRIND_HEAD):
        return SURE
    first = head.partition(b"\n")[0]
    if b"\0" in first[:16]:  # a binary file: most are recognized here
        return NO
    if not any(word in head for word in (b"events:", b"creator:", b"positions:", b"version:")):
        return NO
    if any(byte < 9 for byte in first):
        return NO
    lines = head.split(b"\n")
    if not (any(line.startswith((b"events:", b"creator:")) for line in lines) or re.search(_HEADER, head)):
        return NO
    has_more = any(line.lstrip(b" \t").startswith(_NAMES) for line in lines) or re.search(_ALSO, head)
    return MAYBE if has_more and not is_cachegrind(head) else NO


# Few profiles need `re`: their lines begin with words.  The last alternative: a command that fills the head.
_HEADER = rb"(?m)^(?:positions: *(?:instr|line)|version: *[0-9.]+\s+(?:pid:.*\s+)?cmd:)"
# A line of the body (a name, or positions and counts), a further line of the header, or an events: line that fills the
# head.
_NAMES = (
    *(b"fn=", b"cfn=", b"ob=", b"cob=", b"fl=", b"fi=", b"fe=", b"cfi=", b"cfl=", b"calls=", b"jfi=", b"jfn="),
    *(b"jump=", b"jcnd=", b"rec=", b"frfn=", b"pid:", b"part:", b"thread:", b"cmd:", b"event:"),
)
_ALSO = (
    rb"(?m)^[ \t]*(?:(?:0x[0-9a-fA-F]+|[0-9+*][0-9]*)[ \t]+[-.\d*+]"
    rb"|(?:summary|totals):? *[0-9]|positions: *(?:instr|line)"
    rb"|creator: *(?:callgrind|xtree|fastprof)|events:[ \t]*(?:[A-Za-z_]\w*[ \t]+){100,}\w*\Z)"
)


_GRAPH_LACKS = frozenset({"first-lines", "system-names", "build-ids", "mappings", "columns", "thread-names"})
_SAMPLING = frozenset({"period", "period_type"})
_CALLGRIND = Format(
    name="callgrind",
    view="graph",
    title="Callgrind profile (Valgrind, KCachegrind, Xdebug, ...)",
    suffixes=(".callgrind",),
    prefixes=("callgrind.out",),
    sniff=sniff,
    reader="read:CallgrindReader",
    writer="write:CallgrindWriter",
    holds=Capabilities(
        lacks=_GRAPH_LACKS,
        header=frozenset({"pid", "thread", "number", "command", "trigger", "descriptions", "comments", "input_labels"})
        | _SAMPLING,
    ),
    writes=(COMPRESS_NAMES, COMPRESS_POSITIONS),
)

_CACHEGRIND = Format(
    name="cachegrind",
    view="graph",
    title="Cachegrind profile (Valgrind)",
    suffixes=(".cachegrind",),
    prefixes=("cachegrind.out",),
    sniff=lambda head: MAYBE if is_cachegrind(head) else NO,
    holds=Capabilities(
        calls=False,
        lacks=_GRAPH_LACKS | {"objects", "addresses", "long-names", "inherited-events"},
        header=frozenset({"command", "descriptions", "comments", "input_labels"}) | _SAMPLING,
    ),
    in_order=True,
    reader="cachegrind:CachegrindReader",
    writer="cachegrind:CachegrindWriter",
)

FORMATS = (_CALLGRIND, _CACHEGRIND)
