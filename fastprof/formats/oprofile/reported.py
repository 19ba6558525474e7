"""What this room counts and warns of."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    repairs={
        "trailing-bytes": ("byte behind the end of a sample file", "bytes behind the ends of sample files"),
    },
    losses={
        "damaged-archives": ("archive that ends at damage", "archives that end at damage"),
        "cut-files": ("sample file that ends too early", "sample files that end too early"),
        "damaged-files": ("sample file that is damaged", "sample files that are damaged"),
        "lost-nodes": ("node missing at the end of a sample file", "nodes missing at the ends of sample files"),
        "unknown-files": ("sample file with a name that is none", "sample files with names that are none"),
    },
)
