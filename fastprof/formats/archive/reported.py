"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    losses={
        "archive-tables": "table(s)",
        "archive-numbers": "number(s)",
        "archive-parts": "part(s)",
        "archive-summaries": "(summary|summaries)",
        "archive-sections": "section(s)",
        "archive-chunks": "chunk(s)",
        "archive-damaged-places": "damaged place(s)",
        "archive-indexes": "(index|indexes)",
        "archive-rows": "row(s)",
        "archive-unfinished-profiles": "unfinished profile(s)",
    },
    warnings={
        "archive-notes": "{file}: {note}",
        "lost-sections": "{lost}",
        "missing-rows": "{file}: {what}",
        "no-end": "{file}: the end of the profile is missing: {rows} left{last}",
    },
)
