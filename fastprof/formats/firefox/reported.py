"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_firefox_counts",
    "fp_firefox",
    shared=("start-time", "thread-numbers", "units", "value-names", "value-types"),
    not_representable={
        "cpu-units": "thread(s) with CPU times of an unknown unit",
        "samples": "sample(s), left out of a timeline of markers",
    },
    warnings={
        "newer-version": "{file}: the profile has version {version}, later than {newest}; fields may "
        "have changed their meaning",
    },
)
