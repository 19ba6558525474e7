"""The identity of rows across profiles, and what is kept of a profile."""

from __future__ import annotations

from array import array

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.labels import GROUP_END
from fastprof.core.unknown import known, text_of

Key = tuple[bytes, bytes, bytes, int, str]  # name, file, object, line, labels


def names_of(key: Key) -> tuple[str, str, int, str, str]:
    """Name, file, line, object and labels, as text."""
    name, file, object_, line, label = key
    text = text_of(name).replace(GROUP_END.decode(), " ") if name else ""
    return text, known(file), line, known(object_), label


class Entry(NamedTuple):
    """What is kept of a profile: facts as JSON, the names of its rows, and their costs."""

    facts: dict[str, Any]
    names: array[int]
    own: array[int]
    inclusive: array[int]
    calls: array[int]
