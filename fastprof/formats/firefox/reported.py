"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=(
        "addresses",
        "call-arguments",
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
        "overlapping-markers": (
            "thread added for markers that overlap others of theirs",
            "threads added for markers that overlap others of theirs",
        ),
        "shortened-markers": (
            "marker that overlaps too many others, ended with another",
            "markers that overlap too many others, ended with another",
        ),
    },
    losses={
        "circular-stacks": (
            "stack whose prefix is not before it, taken as a root",
            "stacks whose prefixes are not before them, taken as roots",
        ),
        "short-columns": ("table with a column that is too short", "tables with columns that are too short"),
        "unreadable-values": ("unreadable value of a table", "unreadable values of tables"),
    },
    not_representable={
        "counters": ("counter of memory, power and the like", "counters of memory, power and the like"),
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
        "samples": ("sample, left out of a timeline of markers", "samples, left out of a timeline of markers"),
        "unpaired-markers": (
            "marker that begins or ends without the other",
            "markers that begin or end without the other",
        ),
    },
    warnings={
        "newer-version": "{file}: the profile has version {version}, later than {newest}; what is read as before may "
        "have changed",
    },
)
