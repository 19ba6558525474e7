"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    warnings={
        "other-files": "{path}: skipped, not regular files: {names}",
        "store-notes": "{path}: {note}",
    },
)
