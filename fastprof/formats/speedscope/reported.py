"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("call-arguments", "events", "replaced-bytes", "rounded-weights", "start-time", "unreadable-rest"),
    repairs={
        "nested-frames": (
            "frame of a sample wrapped in an array",
            "frames of samples wrapped in arrays",
        ),
    },
    losses={
        "unreadable-events": (
            "unreadable event, sample or weight",
            "unreadable events, samples or weights",
        ),
    },
    not_representable={
        "deep-calls": ("call nested deeper than {depth}, dropped", "calls nested deeper than {depth}, dropped"),
        "deep-frames": ("frame deeper than {depth}, dropped", "frames deeper than {depth}, dropped"),
        "negative-values": ("negative value, dropped", "negative values, dropped"),
        "other-profiles": ("profile of another kind than the first", "profiles of another kind than the first"),
        "zero-values": ("sample with value 0, dropped", "samples with value 0, dropped"),
    },
)
