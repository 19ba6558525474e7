"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("counter-values", "damaged-records", "skipped-bytes", "thread-numbers"),
    repairs={
        "duplicate-buffers": ("duplicate buffer", "duplicate buffers"),
        "duplicate-records": ("duplicate record", "duplicate records"),
        "joined-logs": ("further log in the same file", "further logs in the same file"),
        "negative-times": ("negative time", "negative times"),
        "orphan-arguments": ("orphan argument", "orphan arguments"),
        "short-buffers": ("buffer cut short by typed events", "buffers cut short by typed events"),
    },
    losses={
        "damaged-buffers": ("damaged buffer", "damaged buffers"),
    },
    not_representable={
        "empty-events": ("empty event", "empty events"),
        "function-names": ("function name (XRay logs hold only ids)", "function names (XRay logs hold only ids)"),
        "large-events": ("event of 2 GiB or more", "events of 2 GiB or more"),
        "shared-function-ids": (
            "duplicate function id, replaced",
            "duplicate function ids, replaced",
        ),
        "wide-event-types": ("event type beyond 16 bits", "event types beyond 16 bits"),
        "wide-function-ids": (
            "function id beyond 28 bits, replaced",
            "function ids beyond 28 bits, replaced",
        ),
    },
    warnings={
        "unnamed-functions": (
            "{file}: functions are shown by number: XRay logs hold no names; name the program that wrote "
            "the log with {--symbols}"
        ),
        "map-notes": "{note}",
        "other-build": "{path}: seems to be another build or object: {doubts}",
    },
)
