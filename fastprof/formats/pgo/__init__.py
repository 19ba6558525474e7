"""Profiles that compilers read: LLVM's and AutoFDO's.  See docs/pgo.md."""

from fastprof.core import lazy_re as re
from fastprof.core.branches import NAMES
from fastprof.core.engine import NO, SURE, Capabilities, Format
from fastprof.core.model import ValueType
from fastprof.core.options import Option, Whole, Words
from fastprof.symbols import FINDING

ENCODING = Option(
    "format",
    Words("text", "binary", "extbinary"),
    "text",
    format="llvm-profile",
    help="text (default), binary or extbinary, the encodings of llvm-profdata",
)
GCOV_LAYOUT = Option(
    "format",
    Words("gcc12", "padded", "version1"),
    "gcc12",
    format="gcov-profile",
    help="the layout: gcc12 (default), padded or version1",
    details="The first is for gcc 12 and later.  The second has padded names and working sets, as of create_gcov, "
    "the third version 1, too, which earlier gcc reads.",
)
NEST: Option[int | None] = Option(
    "nest",
    Whole(0, 1 << 20),
    None,
    format="llvm-profile",
    help="nest callees of up to N bytes of code; 0: none",
    details="Nests callees whose code has up to N bytes in the profiles of their callers, by the number of calls from "
    "each site, so that the compiler inlines them first.  The default is 120 for programs without inlined functions "
    "(built without optimization), 0 for others.",
)
BOLT_ENCODING: Option[str | None] = Option(
    "format",
    Words("preaggregated", "fdata"),
    None,
    format="bolt",
    help="preaggregated (default, of branches) or fdata",
    details="The text that `perf2bolt -pa` reads, or what it writes.  Counts without branches are fdata.",
)


# A function, and its first line or that of the next one
_TEXT = re.compile(rb"[^\s:!][^\n]{0,4000}:\d+:\d+\n(?: (?:\d+(?:\.\d+)?: |!)|[^\s:!][^\n]*:\d+:\d+\n|\Z)")


# "SPROF42" and the encoding, as ULEB128
BINARY_MAGIC, EXTBINARY_MAGIC = b"\xff\xe5\xd0\xb1\xf4\xc9\x94\xa8\x53", b"\x84\xe4\xd0\xb1\xf4\xc9\x94\xa8\x53"


def sniff(head: bytes) -> int:
    """Of the first 4 KiB, decompressed: NO, MAYBE or SURE.  Never raises."""
    if head.startswith((BINARY_MAGIC, EXTBINARY_MAGIC)):
        return SURE
    first = head.partition(b"\n")[0]
    return SURE if first[-1:].isdigit() and first.count(b":") > 1 and _TEXT.match(head) else NO


_PLACE = rb"(?:\\.|[^\n \\]){1,4000} [0-9a-f]{1,16}"
_FDATA = re.compile(
    rb"(?:boltedcollection\n)?(?:no_lbr(?: [^\n]{0,4000})?\n|[012] %b [012] %b \d+ \d+\n|[345] %b [345] %b \d+\n)"
    % ((_PLACE,) * 4)
)


def sniff_fdata(head: bytes) -> int:
    """Of the first 4 KiB, decompressed: NO, MAYBE or SURE.  Never raises."""
    first = (b"boltedcollection\n", b"no_lbr", *(b"%d " % kind for kind in range(6)))
    return SURE if head.startswith(first) and _FDATA.match(head) else NO


def rank(value_type: ValueType) -> int:
    """Numbers of instructions or samples first."""
    return 0 if value_type.unit in ("", "count") else 1


_HOLDS = Capabilities(
    values=False,
    rank=rank,
    together=NAMES,
    branches=True,
    labels=False,
    times=False,
    keeps_stacks=False,
    verbatim=True,
    lacks=frozenset(
        {
            "addresses",
            "build-ids",
            "columns",
            "default-type",
            "first-lines",
            "function-places",
            "idle-threads",
            "inherited-events",
            "mappings",
            "objects",
            "parts",
            "thread-names",
            "thread-numbers",
            "units",
            "value-names",
        }
    ),
    header=frozenset(),
)
FORMATS = (
    Format(
        name="llvm-profile",
        view="graph",
        second_view="stacks",
        title="LLVM sample profile, from which clang and rustc optimize",
        suffixes=(".llvmprof",),
        sniff=sniff,
        reader="read:LlvmReader",
        writer="write:LlvmWriter",
        writes=(ENCODING, NEST, *FINDING),
        holds=_HOLDS,
    ),
    Format(
        name="gcov-profile",
        view="graph",
        second_view="stacks",
        title="AutoFDO profile, from which gcc optimizes",
        suffixes=(".afdo",),
        writer="write:GcovWriter",
        writes=(GCOV_LAYOUT, *FINDING),
        holds=_HOLDS,
    ),
    Format(
        name="bolt",
        view="graph",
        second_view="stacks",
        title="profile from which BOLT arranges a program anew",
        suffixes=(".preagg", ".fdata"),
        sniff=sniff_fdata,
        reader="read_fdata:FdataReader",
        writer="bolt:BoltWriter",
        writes=(BOLT_ENCODING, *FINDING),
        holds=_HOLDS,
    ),
)
