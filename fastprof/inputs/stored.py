"""Archives and their profiles as inputs: STORE:NAME."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.urls import is_url, shown
from fastprof.formats.archive import MAGIC

if TYPE_CHECKING:
    from fastprof.inputs.state import State


_SUFFIX = ".fpa"


class Stored(str):
    """An archive or STORE:NAME, pinned to the state at which it was opened."""

    state: State
    name: str | None = None  # the profile; None: chosen by options
    was_reported = False  # damage of the store was reported


def in_store(path: Any) -> tuple[str, str] | None:
    """STORE and NAME of an input STORE:NAME, a profile of an archive; None for other inputs.

    A file literally named STORE:NAME takes precedence.  The name of an archive behind a URL ends in `.fpa`.
    """
    if isinstance(path, Stored):
        return None if path.name is None else (path.state.path, path.name)
    if isinstance(path, str) and is_url(path):
        store, separator, name = path.partition(f"{_SUFFIX}:")
        return (store + _SUFFIX, name) if separator and "?" not in store else None
    if not isinstance(path, str) or ":" not in path or os.path.lexists(path):
        return None
    ends = [i for i, c in enumerate(path) if c == ":"]
    return next(((path[:i], path[i + 1 :]) for i in ends if is_archive(path[:i])), None)


def shown_input(path: str) -> str:
    """An input as shown in messages: URLs of archives without passwords and signatures, names of profiles whole."""
    at = in_store(path)
    return shown(path) if at is None else f"{shown(at[0])}:{at[1]}"


def may_be_store(path: str) -> bool:
    """Whether this is an archive, or a URL of something named like one."""
    return shown(path).endswith(_SUFFIX) if is_url(path) else is_archive(path)


def is_archive(path: str) -> bool:
    """Whether a regular file begins like an archive."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):  # ValueError: a NUL byte
        return False


class Given:
    """A profile as an input: `path` is what it was opened from, which may be another Given.

    `steps`: the options that its steps gave, `where` and others, not `open`."""

    def __init__(
        self, path: Any, from_: str | None, options: Mapping[str, Any], name: str, steps: Collection[str] = ()
    ) -> None:
        self.path, self.from_, self.options, self.name, self.steps = path, from_, options, name, steps

    @property
    def is_plain(self) -> bool:
        """Whether its path alone stands for it."""
        return self.from_ is None and not self.options


def distinct_names(inputs: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """The names of inputs, given with what they are read from.  Profiles that were opened or made may have one name:
    `<from_stacks>`, `<from_stacks> [2]`."""
    seen = Counter[str]()
    for name, path in inputs:
        seen[name] += 1
        yield f"{name} [{seen[name]}]" if seen[name] > 1 and not isinstance(path, str) else name


def file_of(path: Any) -> Any:
    """What an input is read from."""
    while isinstance(path, Given):
        path = path.path
    return path
