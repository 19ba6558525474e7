"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("sample-times", "samples-without-stack", "skipped-bytes", "value-types"),
    repairs={
        "functions-without-id": ("function without an id", "functions without an id"),
        "unknown-mappings": ("location of an unknown mapping", "locations of unknown mappings"),
    },
    losses={
        "damaged-entries": ("damaged table entry", "damaged table entries"),
        "damaged-samples": ("damaged sample", "damaged samples"),
        "dangling-references": ("reference to nothing", "references to nothing"),
    },
    not_representable={
        "duration": ("duration of more than 64 bits", "durations of more than 64 bits"),
        "invalid-utf8": ("string that is not UTF-8, mended", "strings that are not UTF-8, mended"),
        "label-sets": ("label set of events", "label sets of events"),
        "negative-line-numbers": ("line number below 0", "line numbers below 0"),
        "sample-breakdowns": ("breakdown of a sample into events", "breakdowns of samples into events"),
        "unknown-fields": ("unknown field", "unknown fields"),
        "unknown-sample-fields": ("unknown field of a sample", "unknown fields of samples"),
        "wide-line-numbers": ("line number beyond 32 bits", "line numbers beyond 32 bits"),
    },
)
