"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("call-arguments", "events", "replaced-bytes", "rounded-weights", "start-time", "unreadable-rest"),
    repairs={
        "nested-frames": (
            "frame of a sample that stands in an array of its own",
            "frames of samples that stand in an array of their own",
        ),
    },
    losses={
        "unreadable-events": (
            "event, sample or weight that could not be understood",
            "events, samples or weights that could not be understood",
        ),
    },
    not_representable={
        "deep-calls": ("call below {depth} others, left out", "calls below {depth} others, left out"),
        "deep-frames": ("frame of samples beyond {depth}, left out", "frames of samples beyond {depth}, left out"),
        "negative-values": ("value below 0, left out", "values below 0, left out"),
        "other-profiles": ("profile of another kind than the first one", "profiles of another kind than the first one"),
        "zero-values": ("sample of value 0, left out", "samples of value 0, left out"),
    },
)
