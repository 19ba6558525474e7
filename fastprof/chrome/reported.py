"""Counts and warnings of this folder, which are also those of formats with such samples."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("rounded-weights", "unreadable-rest"),
    repairs={
        "backward-samples": (
            "out-of-order sample, moved to the time of the previous one",
            "out-of-order samples, moved to the time of the previous one",
        ),
        "bare-backslashes": (
            "text with unescaped backslashes",
            "texts with unescaped backslashes",
        ),
        "bare-words": ("bare word instead of a value, such as nan", "bare words instead of values, such as nan"),
        "nul-padding": ("NUL byte after the end", "NUL bytes after the end"),
        "open-end": ("unclosed array", "unclosed arrays"),
        "rest-after-end": ("text after the end, skipped", "texts after the end, skipped"),
        "times-since-year-1": ("time since the year 1, counted from 1970", "times since the year 1, counted from 1970"),
        "unequal-deltas": (
            "sample without a time delta, or the reverse",
            "samples without a time delta, or the reverse",
        ),
    },
    losses={
        "unreadable-samples": (
            "unreadable sample or frame",
            "unreadable samples and frames",
        ),
    },
    not_representable={
        "non-sample-events": ("call or other event next to samples", "calls and other events next to samples"),
    },
    warnings={
        "maybe-cut-off": "the trace is incomplete, as if its writer had been killed; the rest is missing",
        "no-sample-times": "{file}: a profile has hit counts but no samples: its rows have no times",
    },
)
