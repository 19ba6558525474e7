"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("replaced-bytes", "units", "unreadable-rest", "value-names"),
    repairs={
        "callers-without-times": (
            "caller without times, given a part of the function's",
            "callers without times, given parts of the function's",
        ),
        "trailing-bytes": ("byte after the profile", "bytes after the profile"),
    },
    losses={
        "broken-functions": (
            "function or caller that could not be read",
            "functions or callers that could not be read",
        ),
    },
    not_representable={
        "cost-lines": (
            "cost or call on a line other than its function's, added to it",
            "costs and calls on lines other than their functions', added to them",
        ),
        "jumps": ("jump", "jumps"),
        "merged-functions": (
            "function with the file, line and name of another, merged",
            "functions with the file, line and name of others, merged",
        ),
    },
    warnings={
        "estimated-times": "own times of functions by caller are estimates: the input has only their cumulative costs",
    },
)
