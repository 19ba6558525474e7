"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    losses={
        "skipped-inputs": "input(s) that could not be read",
    },
    warnings={
        "empty-files": "{path}: skipped {n}",
        "other-files": "{path}: skipped, not regular files: {names}",
        "store-notes": "{path}: {note}",
        "unread-inputs": "{error}",
    },
)
