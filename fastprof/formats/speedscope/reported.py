"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_speedscope_read",
    "fp_speedscope",
    shared=("start-time", "unreadable-rest"),
    not_representable={
        "deep-calls": "call(s) nested deeper than {depth}, dropped",
        "deep-frames": "frame(s) deeper than {depth}, dropped",
        "other-profiles": "profile(s) of another kind than the first",
    },
)
