"""What this room counts and warns of."""

from __future__ import annotations

from fastprof.core.reported import reported

REPORTED = reported(
    shared=("part-addresses",),
    not_representable={
        "call-counts": ("call count", "call counts"),
        "jumps": ("jump", "jumps"),
    },
)
