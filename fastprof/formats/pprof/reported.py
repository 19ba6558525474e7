"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("sample-times", "samples-without-stack", "skipped-bytes", "value-types"),
    repairs={
        "functions-without-id": ("function without an id", "functions without an id"),
        "unknown-mappings": ("location with an unknown mapping", "locations with unknown mappings"),
    },
    losses={
        "damaged-entries": ("damaged table entry", "damaged table entries"),
        "damaged-samples": ("damaged sample", "damaged samples"),
        "dangling-references": ("dangling reference", "dangling references"),
    },
    not_representable={
        "duration": ("duration of more than 64 bits", "durations of more than 64 bits"),
        "invalid-utf8": ("non-UTF-8 string, repaired", "non-UTF-8 strings, repaired"),
        "label-sets": ("label set of events", "label sets of events"),
        "negative-line-numbers": ("negative line number", "negative line numbers"),
        "sample-breakdowns": ("breakdown of a sample into events", "breakdowns of samples into events"),
        "unknown-fields": ("unknown field", "unknown fields"),
        "unknown-sample-fields": ("unknown field of a sample", "unknown fields of samples"),
        "wide-line-numbers": ("line number beyond 32 bits", "line numbers beyond 32 bits"),
    },
)
