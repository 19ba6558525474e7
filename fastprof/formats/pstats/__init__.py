"""Profiles of Python's cProfile and profile modules, which pstats reads.  See docs/formats/pstats.md."""

from fastprof.core import lazy_re as re
from fastprof.core.engine import MAYBE, NO, SURE, Capabilities, Format
from fastprof.core.model import ValueType

# A marshal dict whose first key is a tuple of three items, or an empty dict.
_DICT = rb"[{\xfb](?:[\xa9)]\x03|[\xa8(]\x03\0\0\0)[\x61\x41\x7a\x5a\x75\x74\x73\xe1\xc1\xfa\xda\xf5\xf4\xf3]"

VALUE_TYPES = ("time", "ncalls", "primitive_calls", "cumulative_time", "own_time")


def sniff(head: bytes) -> int:
    return SURE if head[:1] in (b"{", b"\xfb") and re.match(_DICT, head) else MAYBE if head in (b"{0", b"\xfb0") else NO


def rank(value_type: ValueType) -> int | None:
    """Times first; other values are written as seconds."""
    return 0 if value_type.unit in SECONDS else 1


SECONDS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}

FORMATS = (
    Format(
        name="pstats",
        view="graph",
        title="profile of Python's cProfile (pstats)",
        suffixes=(".pstats", ".cprof"),
        sniff=sniff,
        reader="read:PstatsReader",
        writer="write:PstatsWriter",
        holds=Capabilities(
            values=False,
            together=VALUE_TYPES,
            rank=rank,
            same=("time", "calls"),  # of timelines: call rows have the numbers of calls
            lacks=frozenset(
                {
                    "addresses",
                    "build-ids",
                    "columns",
                    "inherited-events",
                    "long-names",
                    "mappings",
                    "objects",
                    "parts",
                    "system-names",
                    "thread-names",
                }
            ),
            header=frozenset(),
        ),
    ),
)
