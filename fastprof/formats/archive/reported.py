"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    losses={
        "archive-tables": ("table", "tables"),
        "archive-numbers": ("number", "numbers"),
        "archive-parts": ("part", "parts"),
        "archive-summaries": ("summary", "summaries"),
        "archive-sections": ("section", "sections"),
        "archive-chunks": ("chunk", "chunks"),
        "archive-damaged-places": ("damaged place", "damaged places"),
        "archive-indexes": ("index", "indexes"),
        "archive-rows": ("row", "rows"),
        "archive-unfinished-profiles": ("unfinished profile", "unfinished profiles"),
    },
    warnings={
        "archive-notes": "{file}: {note}",
        "lost-sections": "{lost}",
        "missing-rows": "{file}: {what}",
        "no-end": "{file}: the end of the profile is missing: {rows} left{last}",
    },
)
