"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-rest",),
    losses={
        "broken-nodes": ("node whose size could not be read", "nodes whose sizes could not be read"),
    },
)
