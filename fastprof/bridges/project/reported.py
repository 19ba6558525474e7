"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_project",
    not_representable={
        "inlined": (
            "inlined function, merged into its caller",
            "inlined functions, merged into their callers",
        ),
        "inlined-calls": ("inlined function, written as a call", "inlined functions, written as calls"),
    },
)
