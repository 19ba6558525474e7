"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("sample-labels", "sample-times"),
    not_representable={
        "inlined": (
            "inlined function, merged into its caller",
            "inlined functions, merged into their callers",
        ),
        "inlined-calls": ("inlined function, written as a call", "inlined functions, written as calls"),
        "joined-stacks": ("call stack, reduced to call arcs", "call stacks, reduced to call arcs"),
    },
)
