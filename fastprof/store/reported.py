"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    warnings={
        "store-itself": "{input}: skipped, it is the store itself",
    },
)
