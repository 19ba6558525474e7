"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_dhat",
    shared=("unreadable-lines",),
    repairs={
        "carriage-returns": "line(s) that (ends|end) in a carriage return",
    },
    losses={
        "cut-trees": "snapshot(s) whose tree(s) (is|are) incomplete",
    },
    warnings={
        "larger-than-peak": "{file}: snapshot {largest:,} is read, which is larger than Massif's peak {peak:,}; "
        "{-O massif.snapshot:=}{peak} reads that",
        "no-tree": "{file}: no snapshot has a tree, so there are no stacks; `fastprof info` shows the series",
    },
)
