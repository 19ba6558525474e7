"""Callgrind and Cachegrind, which share the syntax of their lines.  See docs/formats/callgrind.md and cachegrind.md."""

from __future__ import annotations

from fastprof.core import lazy_re as re
from fastprof.core.engine import MAYBE, NO, SURE, Capabilities, Format
from fastprof.core.options import Option, Switch

COMPRESS_NAMES = Option(
    "compress_names", Switch(), True, format="callgrind", flag="--no-compress-names", help="write every name in full"
)
COMPRESS_POSITIONS = Option(
    "compress_positions",
    Switch(),
    True,
    format="callgrind",
    flag="--no-compress-positions",
    help="write every position in full",
)


_CALLGRIND_HEAD = b"# callgrind format"


def is_cachegrind(head: bytes) -> bool:
    """Only `desc:` and `cmd:` before `events:`, and no line in the body that Cachegrind does not write."""
    if head[:1] not in b"\n#dc" or b"cmd: " not in head or head.startswith(_CALLGRIND_HEAD):
        return False
    header = re.match(rb"(?:(?:desc: .*|#.*)?\n)*cmd: .*\n(?:.*\n)*?events: (?:.*\n|.{2000,}\Z)", head)
    if not header:
        # a command so long that the rest of the header is beyond the head
        return bool(re.fullmatch(rb"(?:(?:desc: .*|#.*)?\n)*cmd: [^\n]{2000,}", head))
    if re.search(_NOT_CACHEGRIND_HEADER, header[0]):
        return False
    return not re.search(_NOT_CACHEGRIND_BODY, head[header.end() :])


_NOT_CACHEGRIND_HEADER = rb"(?m)^(?:version|creator|positions|part|pid|thread|event): "
_NOT_CACHEGRIND_BODY = rb"(?m)^(?:(?:ob|cob|cfn|cfi|cfl|calls|jump|jcnd)=|f[lne]=\(\d+\)|[+*]|0x|totals:|part:)"


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
    text = not any(byte < 9 for byte in first)
    return MAYBE if text and re.search(_HEADER, head) and re.search(_ALSO, head) and not is_cachegrind(head) else NO


# The last alternative: a command that fills the head.
_HEADER = (
    rb"(?m)^(?:\xef\xbb\xbf)?(?:events:|creator:|positions: *(?:instr|line)|version: *[0-9.]+\s+(?:pid:.*\s+)?cmd:)"
)
# A line of the body (a name, or positions and counts), a further line of the header, or an events: line that fills the
# head.
_ALSO = (
    rb"(?m)^[ \t]*(?:(?:c?fn|c?ob|fl|fi|fe|cfi|cfl|calls|jfi|jfn|jump|jcnd|rec|frfn)="
    rb"|(?:0x[0-9a-fA-F]+|[0-9+*][0-9]*)[ \t]+[-.\d*+]"
    rb"|(?:summary|totals):? *[0-9]|positions: *(?:instr|line)|(?:pid|part|thread|cmd|event):"
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
