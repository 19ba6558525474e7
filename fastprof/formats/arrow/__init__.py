"""Tables for data frames and databases: Parquet, and Arrow's IPC streams.  See docs/tables.md."""

from __future__ import annotations

from fastprof.core.engine import Format, Holds

_TABLE = Holds(
    repeats_frames=True,
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
FORMATS = (
    Format(
        name="parquet",
        docs="docs/tables.md",
        view="any",
        title="Apache Parquet: a table, for data frames and databases",
        suffixes=(".parquet",),
        writer="parquet:ParquetWriter",
        holds=_TABLE,
    ),
    Format(
        name="arrow",
        docs="docs/tables.md",
        view="any",
        title="Apache Arrow IPC stream: a table, for data frames",
        suffixes=(".arrows",),
        writer="ipc:ArrowWriter",
        holds=_TABLE,
    ),
)
