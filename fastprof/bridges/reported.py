"""What this room counts and warns of."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    warnings={
        "missing-labels": "{--labels:=}{name}: the input names no {name}, so no sample is labelled with one",
    },
)
