"""The location of the shared sample data: next to the repository, or in FASTPROF_SHARED (`none`: as without)."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
CORPUS = REPO / "tests" / "corpus"
PYTHON = shlex.quote(sys.executable)  # in a command of a shell


def find_shared() -> Path | None:
    """The folder that contains `data/`, or None if this checkout has no samples next to it."""
    named = os.environ.get("FASTPROF_SHARED")
    if named == "none":
        return None
    if named:
        # A wrong setting must not turn into silently skipped tests.
        if not (Path(named) / "data").is_dir():
            raise FileNotFoundError(f"FASTPROF_SHARED={named} has no data folder")
        return Path(named)
    for parent in REPO.parents:
        if (parent / "shared" / "data").is_dir():
            return parent / "shared"
    return None


SHARED = find_shared()
NO_SHARED = "no shared/data beside the repository"
needs_shared = pytest.mark.skipif(SHARED is None, reason=NO_SHARED)


def shared_data(*parts: str) -> Path:
    assert SHARED is not None, "mark the test with needs_shared"
    return SHARED.joinpath("data", *parts)


def shared_folder(*parts: str) -> Path:
    """A folder of the sample data, to collect its files; without samples, one that does not exist."""
    return (SHARED or REPO / "tests" / "no-shared").joinpath("data", *parts)


def shared(*parts: str) -> Path | None:
    """A path below the sample data, or None if it does not exist."""
    path = SHARED.joinpath("data", *parts) if SHARED else None
    return path if path is not None and path.exists() else None
