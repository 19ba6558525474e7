"""A slow reader of V8's heap profiles."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

Place = tuple[str, str, int, int]  # function, script, line and column from 1 on; 0: unknown


def _place(node: Any) -> Place:
    frame = node.get("callFrame")
    if frame is None:  # an older profile, whose lines count from 1
        return (
            node["functionName"] or "(anonymous)",
            node["url"],
            max(0, node["lineNumber"]),
            max(0, node["columnNumber"]),
        )
    line, column = (frame.get(key, -1) + 1 for key in ("lineNumber", "columnNumber"))
    return frame["functionName"] or "(anonymous)", frame["url"], max(0, line), max(0, column)


def _walk(node: Any, stack: tuple[Place, ...], sums: Counter[tuple[Place, ...]]) -> None:
    sums[stack] += node["selfSize"]
    for child in node.get("children", ()):
        _walk(child, (_place(child), *stack), sums)


def read(text: str) -> Counter[tuple[Place, ...]]:
    """Bytes by stack, leaf first."""
    sums: Counter[tuple[Place, ...]] = Counter()
    _walk(json.loads(text)["head"], (), sums)
    return sums
