"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("skipped-bytes", "value-types"),
    repairs={
        "attributes-as-text": (
            "attribute that is neither text nor a whole number, kept as text",
            "attributes that are neither text nor whole numbers, kept as text",
        ),
        "tables-without-zero-entry": (
            "table whose first entry is not empty",
            "tables whose first entries are not empty",
        ),
        "samples-without-observation": (
            "sample with neither values nor timestamps",
            "samples with neither values nor timestamps",
        ),
    },
    losses={
        "damaged-entries": ("damaged table entry", "damaged table entries"),
        "damaged-fields": ("damaged or incomplete field", "damaged or incomplete fields"),
        "damaged-samples": ("damaged sample", "damaged samples"),
        "dangling-references": ("dangling reference", "dangling references"),
    },
    not_representable={
        "frame-attributes": ("attribute of a location (frame type ...)", "attributes of locations (frame types ...)"),
        "invalid-utf8": ("non-UTF-8 string, repaired", "non-UTF-8 strings, repaired"),
        "mapping-attributes": (
            "attribute of a mapping other than its build id",
            "attributes of mappings other than build ids",
        ),
        "negative-line-numbers": ("negative line number", "negative line numbers"),
        "original-payloads": ("original payload", "original payloads"),
        "other-periods": ("period that differs from the first", "periods that differ from the first"),
        "profile-ids": ("profile id", "profile ids"),
        "schema-urls": ("schema URL", "schema URLs"),
        "unknown-fields": ("unknown field", "unknown fields"),
        "wide-line-numbers": ("line number beyond 32 bits", "line numbers beyond 32 bits"),
    },
    warnings={
        "dropped-attributes": "{file}: attributes dropped by the profiler: {n:,}",
        "guessed-layout": "{file}: samples fit releases before and since 1.10; read as 1.10",
    },
)
