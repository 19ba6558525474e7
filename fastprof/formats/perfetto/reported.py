"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("thread-numbers",),
    not_representable={
        "deep-calls": (
            "call or event below {depth} others, left out",
            "calls and events below {depth} others, left out",
        ),
        "invalid-utf8": ("name that is not UTF-8, mended", "names that are not UTF-8, mended"),
    },
    warnings={
        "no-times": "nothing has a time: the trace is valid and empty",
    },
)
