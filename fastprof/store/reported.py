"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    warnings={
        "store-itself": "{input}: skipped, it is the store itself",
    },
)
