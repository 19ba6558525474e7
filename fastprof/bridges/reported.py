"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    warnings={
        "missing-labels": "{--labels:=}{name}: the input has no {name} names, so no sample gets this label",
    },
)
