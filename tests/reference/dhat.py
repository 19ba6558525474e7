"""A slow, obvious reader of DHAT: docs/formats/dhat.md."""

from __future__ import annotations

import json
from collections import Counter

KEYS = {"total_bytes": "tb", "total_blocks": "tbk", "at_end_bytes": "eb", "at_end_blocks": "ebk"}
KEYS |= {"at_gmax_bytes": "gb", "at_gmax_blocks": "gbk", "max_bytes": "mb", "max_blocks": "mbk"}
KEYS |= {"read_bytes": "rb", "written_bytes": "wb", "lifetimes": "tl"}


def read(text: str) -> Counter[tuple[tuple[str, ...], str]]:
    """Values by stack, the texts of frames from the leaf on, and value type."""
    file = json.loads(text)
    found: Counter[tuple[tuple[str, ...], str]] = Counter()
    for point in file["pps"]:
        stack = tuple(file["ftbl"][i] for i in point["fs"])
        for name, key in KEYS.items():
            if key in point:
                found[stack, name] += point[key]
    return found
