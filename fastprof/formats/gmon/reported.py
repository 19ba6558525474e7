"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("unreadable-rest",),
    not_representable={"basic-blocks": ("count of a basic block", "counts of basic blocks")},
    warnings={"no-program": "{file}: functions are addresses without the program: pass it with {--symbols}"},
)
