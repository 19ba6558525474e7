"""Counts and warnings of this folder, which are also those of formats with such samples."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_chrome_samples_read",
    repairs={
        "bare-backslashes": (
            "text with unescaped backslashes",
            "texts with unescaped backslashes",
        ),
        "bare-words": ("bare word instead of a value, such as nan", "bare words instead of values, such as nan"),
        "nul-padding": ("NUL byte after the end", "NUL bytes after the end"),
        "rest-after-end": ("text after the end, skipped", "texts after the end, skipped"),
    },
    warnings={
        "maybe-cut-off": "the trace is incomplete, as if its writer had been killed; the rest is missing",
        "no-sample-times": "{file}: a profile has hit counts but no samples: its rows have no times",
    },
)
