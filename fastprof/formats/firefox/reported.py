"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=(
        "addresses",
        "call-arguments",
        "counter-values",
        "rounded-weights",
        "samples-without-stack",
        "start-time",
        "thread-numbers",
        "units",
        "unreadable-rest",
        "value-names",
        "value-types",
    ),
    repairs={
        "values-without-time": (
            "value of a sample without a time, drawn at the time of another of its thread",
            "values of samples without a time, drawn at the times of others of their threads",
        ),
        "overlapping-markers": (
            "thread added for overlapping markers",
            "threads added for overlapping markers",
        ),
        "shortened-markers": (
            "marker cut because it overlaps too many others",
            "markers cut because they overlap too many others",
        ),
    },
    losses={
        "circular-stacks": (
            "stack whose prefix does not come before it, read as a root",
            "stacks whose prefixes do not come before them, read as roots",
        ),
        "short-columns": ("table with a column that is too short", "tables with columns that are too short"),
        "unreadable-values": ("unreadable value of a table", "unreadable values of tables"),
    },
    not_representable={
        "idle-samples": (
            "sample without a stack, whose time is idle",
            "samples without a stack, whose time is idle",
        ),
        "counters": (
            "counter ({-O firefox.markers} reads these, too)",
            "counters ({-O firefox.markers} reads these, too)",
        ),
        "cpu-units": (
            "thread with CPU times of an unknown unit",
            "threads with CPU times of an unknown unit",
        ),
        "empty-calls": (
            "zero-length call, which samples cannot show",
            "zero-length calls, which samples cannot show",
        ),
        "invalid-utf8": ("non-UTF-8 byte of a name, replaced", "non-UTF-8 bytes of names, replaced"),
        "markers": (
            "marker ({-O firefox.markers} reads these)",
            "markers ({-O firefox.markers} reads these)",
        ),
        "rounded-counters": (
            "value of a counter, rounded by a billionth or more because the value before is much larger",
            "values of counters, rounded by a billionth or more because the values before are much larger",
        ),
        "samples": ("sample, left out of a timeline of markers", "samples, left out of a timeline of markers"),
        "unpaired-markers": (
            "begin marker without an end, or the reverse",
            "begin markers without an end, or the reverse",
        ),
    },
    warnings={
        "newer-version": "{file}: the profile has version {version}, later than {newest}; fields may "
        "have changed their meaning",
    },
)
