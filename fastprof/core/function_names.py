"""Distinguishes functions that have the same name; what makes them the same is fp_same_function in csrc/core/model.h.

run (two.py:3), run (two.py:7)     the file and the first line
main (make), main (cc1)            otherwise the object
"""

from __future__ import annotations

from collections.abc import Iterable

from fastprof.core._typing import TYPE_CHECKING, NamedTuple
from fastprof.core.unknown_names import known

if TYPE_CHECKING:
    from fastprof.core.model import Function, Model


class Place(NamedTuple):
    """The identity of a function."""

    name: str
    file: str = ""
    line: int = 0  # its first one; 0: unknown
    object: str = ""


def same(model: Model, function: int) -> tuple[int, ...]:
    """What is equal for functions that are the same (fp_same_function), although their ids may differ."""
    object_, file, name, _, line = model.row("functions", function)
    return object_, file, name, line


def place_of(function: Function) -> Place:
    name = function.name.decode("utf-8", "surrogateescape")
    return Place(name, known(function.file), function.line, known(function.object))


def marks(places: Iterable[Place]) -> dict[Place, str]:
    """By place: the text in parentheses after its name, for those whose name another place has, too."""
    by_name: dict[str, list[Place]] = {}
    for place in dict.fromkeys(places):
        by_name.setdefault(place.name, []).append(place)
    found: dict[Place, str] = {}
    for alike in by_name.values():
        if len(alike) > 1:
            found.update(_marks(alike))
    return found


def _marks(alike: list[Place]) -> dict[Place, str]:
    texts: list[str] = []
    for file, object_ in ((_base, _nothing), (str, _nothing), (_nothing, _base), (_base, _base), (str, str)):
        texts = [", ".join(filter(None, (_at(file(p.file), p.line), object_(p.object)))) for p in alike]
        if len({*texts}) == len(texts):
            break
    else:
        texts = [f"{text} [{i}]".lstrip() for i, text in enumerate(texts, 1)]
    return {place: text for place, text in zip(alike, texts, strict=True) if text}


def _at(file: str, line: int) -> str:
    return f"{file}:{line}" if file and line else file


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _nothing(path: str) -> str:
    return ""
