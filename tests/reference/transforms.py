"""--root-at, --subtree, --hide, --hide-object, --collapse-object and --collapse-recursion on stacks, as docs/filters.md
states them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

HIDDEN = "[hidden]"


class Frame(NamedTuple):
    name: str
    object: str = ""
    file: str = ""
    line: int = 0  # of the code, not of the function


def transformed(
    stack: Iterable[Frame],
    *,
    root_at: Sequence[str] = (),
    subtree: str = "",
    hide: Sequence[str] = (),
    hide_object: Sequence[str] = (),
    collapse_object: Sequence[str] = (),
    collapse_recursion: bool = False,
) -> list[Frame]:
    """A stack, outermost first; empty: it is left out."""

    def matches(patterns: Sequence[str], text: str) -> bool:
        return any(re.search(pattern, text) for pattern in patterns)

    given = [*stack]
    for pattern in root_at:
        given = given[next((k for k, frame in enumerate(given) if matches([pattern], frame.name)), len(given)) :]
    if subtree:
        path = [re.sub(r"\\(.)", r"\1", name) for name in re.findall(r"(?:[^\\;]|\\.)+", subtree)]
        given = given[len(path) - 1 :] if [frame.name for frame in given[: len(path)]] == path else []
    shown = [f for f in given if not matches(hide, f.name) and not (f.object and matches(hide_object, f.object))]
    found: list[Frame] = []
    for frame in shown:
        is_one = bool(frame.object) and matches(collapse_object, frame.object)
        one = Frame(re.split(r"[/\\]", frame.object)[-1], frame.object) if is_one else frame
        same = bool(found) and found[-1]._replace(line=0) == one._replace(line=0)
        if same and (is_one or collapse_recursion):
            found.pop()
        found.append(one)
    return found or [Frame(HIDDEN)] * bool(given)
