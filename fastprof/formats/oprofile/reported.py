"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_oprofile_reader",
    shared=("object-notes",),
    losses={
        "damaged-archives": "damaged archive(s), read up to the damage",
        "damaged-files": "damaged sample file(s)",
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
