"""Perfetto traces: a protocol buffer of packets.  See docs/formats/perfetto.md."""

from collections.abc import Iterator

from fastprof.core.engine import MAYBE, NO, Budget, Capabilities, Format
from fastprof.core.options import BUDGET, MAX_MEMORY, SPLIT, Option, Words
from fastprof.core.varint import varint_at

DATA: Option[str | None] = Option(
    "data",
    Words("calls", "samples", "v8", "allocations", "objects", "states", "off-cpu"),
    None,
    format="perfetto",
    help="read calls, samples, samples of V8, heap allocations, Java objects, states of threads or off-CPU time"
    " (default: the first in the trace)",
)

_VARINT, _BYTES = 0, 2
# Fields of a packet by number: their wire type, and whether such a field occurs in no other format.
_FIELDS = {
    1: (_BYTES, False),  # events of the kernel
    2: (_BYTES, False),  # process tree
    3: (_VARINT, False),  # user
    6: (_BYTES, False),  # clocks
    8: (_VARINT, True),  # time
    10: (_VARINT, True),  # sequence
    11: (_BYTES, True),  # event
    12: (_BYTES, True),  # interned data
    13: (_VARINT, True),  # flags of the sequence
    33: (_BYTES, True),  # configuration
    36: (_BYTES, True),  # synchronization marker
    50: (_BYTES, True),  # compressed packets
    60: (_BYTES, True),  # track
}
# How the content begins of fields that other formats have, too: a CPU or the time of an event, the pid of a process.
_SIZE = rb"(?:[\x80-\xff]{0,4}[\x01-\x7f])"
_BEGINNINGS = {1: rb"\x08|\x12" + _SIZE + rb"\x08", 2: rb"[\x0a\x12]" + _SIZE + rb"\x08"}


def _begins(data: bytes, at: int, pattern: bytes) -> bool:
    from re import DOTALL, compile

    _, start = varint_at(data, at)
    return compile(pattern, DOTALL).match(data, start) is not None


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Fields of a message: number, wire type, offset of its content.  Errors: as varint_at."""
    while at < end:
        tag, at = varint_at(data, at)
        wire = tag & 7
        yield tag >> 3, wire, at
        if wire == _VARINT:
            _, at = varint_at(data, at)
        elif wire == _BYTES:
            n, at = varint_at(data, at)
            at += n
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise ValueError("an unknown wire type")


def sniff(head: bytes) -> int:
    """Recognize a list of packets by a field that only packets have."""
    if head[:1] != b"\n":
        return NO
    known, at = False, 0
    try:
        while at < len(head):
            tag, start = varint_at(head, at)
            n, start = varint_at(head, start)
            if tag != 1 << 3 | _BYTES:
                break
            at = start + n
            for number, wire, content in _fields(head, start, at):
                expected, sure = _FIELDS.get(number, (wire, False))
                if wire != expected or number > 2000:
                    return NO
                known |= sure or (number in _BEGINNINGS and _begins(head, content, _BEGINNINGS[number]))
    except ValueError:
        return NO
    except IndexError:  # the head ends here
        pass
    return MAYBE if known else NO


def could_be(head: bytes) -> bool:
    """Whether a file with Perfetto's suffix begins with a packet."""
    return head[:1] == b"\n"


FORMATS = (
    Format(
        name="perfetto",
        view="timeline",
        reads_also="stacks",
        title="Perfetto trace",
        suffixes=(".pftrace", ".perfetto-trace"),
        sniff=sniff,
        could_be=could_be,
        reader="read:reader",
        writer="write:PerfettoWriter",
        holds=Capabilities(
            nested=True,
            short_names=True,
            alternative="write pprof or folded, which ui.perfetto.dev also opens",
            lacks=frozenset({"call-places", "system-names", "build-ids", "mappings", "cpus", "idle-threads"}),
            header=frozenset(),
        ),
        budget=Budget(64 << 20, call=26, event=30),
        reads=(DATA, MAX_MEMORY),
        writes=(BUDGET, SPLIT),
    ),
)
