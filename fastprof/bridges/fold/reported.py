"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=(
        "call-arguments",
        "clamped-times",
        "events",
        "orphan-exits",
        "places",
        "unfinished-calls",
        "unwound-frames",
    ),
    not_representable={
        "call-times": ("call, kept as a sum without its time", "calls, kept as sums without their times"),
        "cpus": (
            "call whose CPU is left out ({--labels:=}cpu keeps it in stacks)",
            "calls whose CPU is left out ({--labels:=}cpu keeps it in stacks)",
        ),
    },
    warnings={
        "different-clocks": "the inputs' clocks differ: times of the later ones are rounded to ticks of the first",
        "no-records": "the input has no records: the profile is valid and empty",
    },
)
