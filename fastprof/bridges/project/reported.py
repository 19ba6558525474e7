"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("sample-labels", "sample-times"),
    not_representable={
        "inlined": (
            "inlined function, now costs of its callers ({--inline-calls} keeps it)",
            "inlined functions, now costs of their callers ({--inline-calls} keeps them)",
        ),
        "inlined-calls": ("inlined function, now called like others", "inlined functions, now called like others"),
        "joined-stacks": ("call stack, kept as single calls", "call stacks, kept as single calls"),
    },
)
