"""JSON that every reader accepts; Python's own may contain NaN, infinities and lone surrogates."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

from fastprof.core._typing import Any
from fastprof.core.log import Log


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON.  Named tuples become objects, NaN and infinities null, non-UTF-8 bytes U+FFFD, a log what it
    states, with flags, and other types such as dates text."""
    import json

    return json.dumps(_plain(value), indent=indent).replace("\x7f", "\\u007f")  # the only control character left


def print_json_list(values: Iterable[Any]) -> None:
    """Print a list as JSON, each value when it is known."""
    before = "["
    for value in values:
        text = json_text(value, indent=2).replace("\n", "\n  ")
        sys.stdout.write(f"{before}\n  {text}")
        before = ","
    print("[]" if before == "[" else "\n]")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return _plain(value._asdict()) if hasattr(value, "_asdict") else [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Log):
        return _plain(value.as_dict(flags=True))
    return value if value is None or isinstance(value, int) else _text(str(value))


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
