"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_project",
    not_representable={
        "inlined": "inlined function(s), merged into (its|their) caller(s)",
        "inlined-calls": "inlined function(s), written as (a call|calls)",
    },
)
