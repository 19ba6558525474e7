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
            "zero-length call, which samples cannot show",
            "zero-length calls, which samples cannot show",
        ),
        "invalid-utf8": ("non-UTF-8 byte of a name, replaced", "non-UTF-8 bytes of names, replaced"),
    },
)
