"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_simpleperf",
    warnings={"lost-samples": "{file}: simpleperf lost {lost}: stacks and counts are incomplete"},
)
