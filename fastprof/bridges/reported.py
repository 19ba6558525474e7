"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    warnings={
        "missing-labels": "{--labels:=}{name}: the input does not record the {name}, so no sample gets this label",
    },
)
