"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    warnings={
        "narrow-terminal": "the text is too narrow for {names}: {--value:=}NAME shows one of them",
    },
)
