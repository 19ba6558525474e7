"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_pstats_reader",
    "fp_pstats_writer",
    shared=("units", "value-names"),
    warnings={
        "estimated-times": "own times of functions by caller are estimates: the input has only their cumulative costs",
    },
)
