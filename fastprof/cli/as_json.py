"""JSON that every reader accepts; Python's own may contain NaN, infinities and lone surrogates."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable

from fastprof.core._typing import Any


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON.  NaN and infinities become null, non-UTF-8 bytes U+FFFD, other types such as dates text."""
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
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else _text(str(value))


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
