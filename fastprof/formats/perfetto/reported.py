"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("thread-numbers",),
    not_representable={
        "deep-calls": (
            "call or event nested deeper than {depth}, dropped",
            "calls and events nested deeper than {depth}, dropped",
        ),
        "invalid-utf8": ("non-UTF-8 name, repaired", "non-UTF-8 names, repaired"),
    },
    warnings={
        "no-times": "no row has a time: the trace is valid but empty",
    },
)
