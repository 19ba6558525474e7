"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("skipped-inputs", "unread-inputs"),
    warnings={
        "store-itself": "{input}: skipped, it is the store itself",
    },
)
