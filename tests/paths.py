"""Where the shared test data lies."""

from __future__ import annotations

import os
from pathlib import Path


def shared(*parts: str) -> Path | None:
    """A path below the shared data folder, or None when there is none on this machine.

    FASTPROF_SHARED names the folder that holds `data`; otherwise the first parent of the repository with a
    `shared/data` beside it.
    """
    named = os.environ.get("FASTPROF_SHARED")
    roots = [Path(named)] if named else [parent / "shared" for parent in Path(__file__).resolve().parents]
    for root in roots:
        if (root / "data").is_dir():
            path = root.joinpath("data", *parts)
            return path if path.exists() else None
    return None
