"""Counts and warnings of this folder, which are also those of formats with such samples."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_chrome_samples_read",
    repairs={
        "bare-backslashes": "text(s) with unescaped backslashes",
        "bare-words": "bare word(s) instead of (a value,|values,) such as nan",
        "nul-padding": "NUL byte(s) after the end",
        "rest-after-end": "text(s) after the end, skipped",
    },
    warnings={
        "maybe-cut-off": "the trace is incomplete, as if its writer had been killed; the rest is missing",
        "no-sample-times": "{file}: a profile has hit counts but no samples: its rows have no times",
    },
)
