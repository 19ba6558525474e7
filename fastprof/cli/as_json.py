"""JSON that every reader accepts; Python's own may contain NaN, infinities and lone surrogates.

Each document states its schema first: {"schema": "fastprof/top/1", ...}.
"""

import math
import sys
from collections.abc import Iterable, Mapping

from fastprof.core._typing import Any
from fastprof.core.log import Log

# The documents and their numbers; documents.py has their types, docs/schemas the schemas made from these.
SCHEMAS = {
    "annotate": 1,
    "archive-add": 1,
    "archive-compact": 1,
    "archive-extract": 1,
    "archive-list": 1,
    "archive-rm": 1,
    "archive-verify": 1,
    "batch": 1,
    "batch-merge": 1,
    "batch-status": 1,
    "convert": 1,
    "diff": 1,
    "diff-output": 1,
    "error": 1,
    "explain": 1,
    "explain-changes": 1,
    "format": 1,
    "formats": 1,
    "info": 1,
    "info-list": 1,
    "mcp-list": 1,
    "merge": 1,
    "report": 1,
    "sql": 1,
    "top": 1,
    "trend": 1,
}


def schema_of(name: str) -> str:
    return f"fastprof/{name}/{SCHEMAS[name]}"


def document(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """What is printed as JSON, with the name of its schema first."""
    return {"schema": schema_of(name), **content}


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON.  Named tuples become objects, NaN and infinities null, non-UTF-8 bytes U+FFFD, a log what it
    states, with flags, and other types such as dates text."""
    import json

    return json.dumps(plain(value), indent=indent).replace("\x7f", "\\u007f")  # the only control character left


def print_json_list(name: str, key: str, values: Iterable[Any]) -> None:
    """Print the document `name`, whose only key is a list, writing each value as soon as it is known."""
    sys.stdout.write(f'{{\n "schema": "{schema_of(name)}",\n "{key}": ')
    before = "["
    for value in values:
        text = json_text(value, indent=1).replace("\n", "\n  ")
        sys.stdout.write(f"{before}\n  {text}")
        before = ","
    print("[]" if before == "[" else "\n ]", end="\n}\n")


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return plain(value._asdict()) if hasattr(value, "_asdict") else [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Log):
        return plain(value.as_dict(flags=True))
    return value if value is None or isinstance(value, int) else _text(str(value))


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
