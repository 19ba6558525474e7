"""Perfetto traces: a protocol buffer of packets.  See docs/formats/perfetto.md."""

from __future__ import annotations

from fastprof.core.engine import Budget, Format, Holds
from fastprof.core.options import BUDGET, SPLIT

FORMATS = (
    Format(
        name="perfetto",
        view="timeline",
        title="Perfetto trace, for ui.perfetto.dev",
        suffixes=(".pftrace", ".perfetto-trace"),
        writer="write:PerfettoWriter",
        holds=Holds(
            nested=True,
            short_names=True,
            alternative="write pprof or folded, which ui.perfetto.dev also opens",
            lacks=frozenset({"function-places", "system-names", "build-ids", "mappings", "cpus", "idle-threads"}),
            header=frozenset(),
        ),
        budget=Budget(64 << 20, call=26, event=30),
        writes=(BUDGET, SPLIT),
    ),
)
