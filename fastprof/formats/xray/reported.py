"""Counts and warnings of this folder."""

from fastprof.core.reported import reported

REPORTED = reported(
    "fp_xray_stats",
    "fp_xray_write",
    shared=("thread-numbers",),
    not_representable={
        "function-names": "function name(s) (XRay logs hold only ids)",
        "shared-function-ids": "duplicate function id(s), replaced",
        "wide-function-ids": "function id(s) beyond 28 bits, replaced",
    },
    warnings={
        "unnamed-functions": (
            "{file}: functions are shown by number: XRay logs hold no names; name the program that wrote "
            "the log with {--symbols}"
        ),
        "map-notes": "{note}",
        "other-build": "{path}: seems to be another build or object: {doubts}",
    },
)
