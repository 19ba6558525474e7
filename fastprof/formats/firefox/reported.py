"""Counts and warnings of this folder."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=(
        "addresses",
        "call-arguments",
        "samples-without-stack",
        "start-time",
        "thread-numbers",
        "units",
        "value-names",
        "value-types",
    ),
    not_representable={
        "empty-calls": (
            "call that took no time, which samples cannot show",
            "calls that took no time, which samples cannot show",
        ),
        "invalid-utf8": ("byte of a name that is not UTF-8, mended", "bytes of names that are not UTF-8, mended"),
    },
)
