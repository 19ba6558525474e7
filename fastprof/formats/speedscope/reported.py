"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_speedscope_read",
    "fp_speedscope",
    shared=("start-time", "unreadable-rest"),
    not_representable={
        "deep-calls": ("call nested deeper than {depth}, dropped", "calls nested deeper than {depth}, dropped"),
        "deep-frames": ("frame deeper than {depth}, dropped", "frames deeper than {depth}, dropped"),
        "other-profiles": ("profile of another kind than the first", "profiles of another kind than the first"),
    },
)
