"""Steps of the page's transforms, as of transforms.json, as options."""

from __future__ import annotations

from typing import Any

NAMES = {"focus": "root_at"}


def options_of(steps: list[list[str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, what in steps:
        name = NAMES.get(kind, kind.replace("-", "_"))
        if name == "subtree":
            found[name] = what
        else:
            found[name] = [*found.get(name, []), what] if what else True
    return found
