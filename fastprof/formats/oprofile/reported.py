"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("object-notes",),
    repairs={
        "trailing-bytes": ("byte after the end of a sample file", "bytes after the ends of sample files"),
    },
    losses={
        "damaged-archives": ("damaged archive, read up to the damage", "damaged archives, read up to the damage"),
        "cut-files": ("truncated sample file", "truncated sample files"),
        "damaged-files": ("damaged sample file", "damaged sample files"),
        "lost-nodes": ("node missing at the end of a sample file", "nodes missing at the ends of sample files"),
        "unknown-files": ("sample file with an invalid name", "sample files with invalid names"),
    },
    warnings={
        "changed-image": "{path}: newer than the profile: symbols may be wrong",
        "changed-while-sampled": "{path}: changed while it was sampled: its samples belong to several files",
        "image-without-symbols": "{image}: no symbols: {reason}",
        "lost-samples": "{file}: {samples}, {total:,} were recorded",
        "mangled-names": "{names}",
        "throttled-events": "{file}: the kernel throttled {event}: it was sampled less often than requested",
        "unused-image": "{path}: matches no image in the profile",
    },
)
