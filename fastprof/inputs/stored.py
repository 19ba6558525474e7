"""Archives and their profiles as inputs: STORE:NAME."""

from __future__ import annotations

import os
import stat

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.remote import is_url
from fastprof.formats.archive import MAGIC

if TYPE_CHECKING:
    from fastprof.inputs.state import State


class Stored(str):
    """An archive or STORE:NAME, pinned to the state at which it was opened."""

    state: State
    name: str | None = None  # the profile; None: chosen by options
    was_reported = False  # damage of the store was reported


def in_store(path: Any) -> tuple[str, str] | None:
    """STORE and NAME of an input STORE:NAME, a profile of an archive; None for other inputs.

    A file literally named STORE:NAME takes precedence.
    """
    if isinstance(path, Stored):
        return None if path.name is None else (path.state.path, path.name)
    if not isinstance(path, str) or ":" not in path or is_url(path) or os.path.lexists(path):
        return None
    ends = [i for i, c in enumerate(path) if c == ":"]
    return next(((path[:i], path[i + 1 :]) for i in ends if is_archive(path[:i])), None)


def is_archive(path: str) -> bool:
    """Whether a regular file begins like an archive."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # ValueError: a NUL byte
        return False
