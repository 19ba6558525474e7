"""Tables for data frames and databases: Parquet, and Arrow's IPC streams.  See docs/tables.md."""

from fastprof.core.engine import MAYBE, NO, STACKS_AT_A_TIME, SURE, Capabilities, Format

_TABLE = Capabilities(
    repeats_frames=True,
    keeps_stacks=False,
    stacks_at_a_time=STACKS_AT_A_TIME,
    table=True,
    lacks=frozenset(
        {
            "first-lines",
            "function-places",
            "system-names",
            "columns",
            "build-ids",
            "mappings",
            "thread-names",
            "inherited-events",
            "default-type",
        }
    ),
    header=frozenset(),
)
_CONTINUES = b"\xff\xff\xff\xff"


def sniff(head: bytes) -> int:
    """Of the first 4 KiB, decompressed: NO, MAYBE or SURE.  Never raises."""
    n = int.from_bytes(head[4:8], "little")
    return MAYBE if head.startswith(_CONTINUES) and 16 <= n < 1 << 24 and not n % 8 else NO


FORMATS = (
    Format(
        name="parquet",
        docs="docs/tables.md",
        view="any",
        title="Apache Parquet: a table, for data frames and databases",
        suffixes=(".parquet",),
        sniff=lambda head: SURE if head.startswith(b"PAR1") else NO,
        converter="read:of_parquet",
        writer="parquet:ParquetWriter",
        holds=_TABLE,
    ),
    Format(
        name="arrow",
        docs="docs/tables.md",
        view="any",
        title="Apache Arrow IPC stream: a table, for data frames",
        suffixes=(".arrows",),
        sniff=sniff,
        converter="read:of_arrow",
        writer="ipc:ArrowWriter",
        holds=_TABLE,
    ),
)
