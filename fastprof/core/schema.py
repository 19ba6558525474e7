"""Shapes of plain values (numbers, texts, lists, maps), declared as data.

int                  a value of this type; an int is not a bool and fits 64 bits
range(a, b)          a whole number in this range
[x]   (x, ...)       a list, a tuple whose items all have shape x
[x, y]   (x, y)      a list, a tuple of two items with these shapes
{"name": x, str: y}  a map with texts as keys: "name", if present, has shape x, other keys have shape y; without
                     `str` their values are not checked
"""

from fastprof.core._schema import fits as fits
from fastprof.core._typing import Any

_WORDS = {int: "a whole number of 64 bits", str: "a text", bytes: "a byte string", dict: "a map"}


def described(shape: Any) -> str:
    """A shape in words, for "expected ..."."""
    if isinstance(shape, range):
        return f"a whole number from {shape[0]} to {shape[-1]}"
    if isinstance(shape, (list, tuple)):
        kind = "list" if isinstance(shape, list) else "tuple"
        if len(shape) == 1 or shape[-1] is ...:
            return f"a {kind}, each item {described(shape[0])}"
        return f"a {kind} of {' and '.join(map(described, shape))}"
    return _WORDS.get(dict if isinstance(shape, dict) else shape) or f"a {shape.__name__}"


def mismatch(values: Any, shape: dict[str, Any], what: str) -> str:
    """The first error of a map that may have the keys of `shape` and no others; "" if it is valid.

    `what` names its keys: "field 'pid' is 1.5, expected a whole number of 64 bits".
    """
    for key, value in values.items():
        if key not in shape:
            return f"unknown {what} {key!r:.80}"
        if not fits(value, shape[key]):
            return f"{what} {key!r} is {value!r:.80}, expected {described(shape[key])}"
    return ""
