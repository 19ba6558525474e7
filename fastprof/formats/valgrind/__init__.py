"""Valgrind's heap profilers: Massif (text) and DHAT (JSON).  See docs/formats/massif.md and docs/formats/dhat.md."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import NO, SURE, Format
from fastprof.core.options import MAX_MEMORY, Kind, Option

_MASSIF = rb"desc: .*\r?\n(?:desc: .*\r?\n)*cmd: .*\r?\ntime_unit: "
_HEAPTRACK = rb"#-+\r?\nsnapshot=\d+\r?\n#-+\r?\ntime="  # heaptrack_print writes the header last
_DHAT = rb'\s*\{\s*"dhatFileVersion"\s*:'


class Snapshot(Kind):
    """A snapshot: `peak`, `last`, `all` or a number."""

    metavar, values, typed = "N|peak|last|all", "N|peak|last|all", "int | str"
    completes, words = "word", ("peak", "last", "all")

    def check(self, value: object) -> str:
        text = str(value) if not isinstance(value, bool) else ""
        if text in self.words or (text.isascii() and text.isdigit() and len(text) < 19):
            return text
        raise ValueError(f"{value!r:.80} is neither a snapshot's number nor peak, last or all")


SNAPSHOT = Option(
    "snapshot",
    Snapshot(),
    "peak",
    format="massif",
    help="snapshot to read (default: peak)",
    details="Only snapshots with a tree have stacks; `fastprof info` lists them.  With all, each row has the label "
    "snapshot.",
)


def sniff_massif(head: bytes) -> int:
    return SURE if re.match(_MASSIF if head.startswith(b"desc: ") else _HEAPTRACK, head) else NO


def sniff_dhat(head: bytes) -> int:
    return SURE if b'"dhatFileVersion"' in head and re.match(_DHAT, head) else NO


FORMATS = (
    Format(
        name="massif",
        view="stacks",
        title="heap snapshots of Valgrind's Massif",
        suffixes=(".massif",),
        prefixes=("massif.out.",),
        sniff=sniff_massif,
        reader="massif:MassifReader",
        selects=(),
        reads=(SNAPSHOT,),
    ),
    Format(
        name="dhat",
        view="stacks",
        title="heap profile of Valgrind's DHAT and Rust's dhat",
        suffixes=(".dhat.json",),
        prefixes=("dhat.out.",),
        sniff=sniff_dhat,
        reader="dhat:DhatReader",
        reads=(MAX_MEMORY,),
    ),
)
