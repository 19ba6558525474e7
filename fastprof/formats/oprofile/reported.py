"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("object-notes",),
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
    warnings={
        "changed-image": "{path}: was changed since the profile was made: symbols may be wrong",
        "changed-while-sampled": "{path}: was changed while it was sampled: its samples are of several files",
        "image-without-symbols": "{image}: no symbols: {reason}",
        "lost-samples": "{file}: {samples}, {total:,} were taken",
        "mangled-names": "{names}",
        "throttled-events": "{file}: the kernel has throttled {event}: it was sampled less often than asked for",
        "unused-image": "{path}: has the name of no image in the profile",
    },
)
