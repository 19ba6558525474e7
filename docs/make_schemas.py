"""Writes docs/schemas from the types of documents (fastprof/cli/documents.py): `make docs`."""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
import typing
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastprof.cli.as_json import SCHEMAS, schema_of
from fastprof.cli.documents import DOCUMENTS, OPEN, OPTIONAL, LogDocument
from fastprof.core.log import Log
from fastprof.verbs.top.matrix import Matrix

FOLDER = Path(__file__).parent / "schemas"
PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


class Schema:
    """The JSON Schema of a document; what its types refer to is in $defs, by the name of the type."""

    def __init__(self, name: str) -> None:
        self._found: dict[str, Any] = {}
        self._kinds: dict[str, type] = {}
        first, *more = DOCUMENTS[name]
        self.whole: dict[str, Any] = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"{schema_of(name)}",
            "title": schema_of(name),
        } | self._object(first, {key for one in more for key in typing.get_type_hints(one)})
        for one in more:
            added = self._object(one)
            self.whole["properties"] |= added["properties"]
            self.whole["required"] = [*self.whole["required"], *added["required"]]
        self.whole["properties"] = {"schema": {"const": schema_of(name)}} | self.whole["properties"]
        self.whole["required"] = ["schema", *dict.fromkeys(self.whole["required"])]
        if self._found:
            self.whole["$defs"] = dict(sorted(self._found.items()))

    def _of(self, kind: Any) -> dict[str, Any]:
        """The schema of values of a type."""
        if kind in PLAIN:
            return {"type": PLAIN[kind]}
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (types.UnionType, typing.Union):
            return self._union([self._of(one) for one in inner])
        if origin in (list, Sequence) or (origin is tuple and inner[1:] == (...,)):
            return {"type": "array", "items": self._of(inner[0])}
        if origin is tuple:
            n = len(inner)
            return {"type": "array", "prefixItems": [self._of(one) for one in inner], "minItems": n, "maxItems": n}
        if origin in (dict, Mapping, Counter):
            return {"type": "object", "additionalProperties": self._of(inner[-1] if inner[1:] else int)}
        if kind in (Any, object):
            return {}
        if kind is Log:
            return self._of(LogDocument)
        name = kind.__name__.removesuffix("Document")
        if self._kinds.setdefault(name, kind) is not kind:
            raise TypeError(f"{kind} and {self._kinds[name]} would have one name")
        if name not in self._found:
            self._found[name] = {}  # it may refer to itself
            self._found[name] = self._object(kind)
        return {"$ref": f"#/$defs/{name}"}

    @staticmethod
    def _union(schemas: list[dict[str, Any]]) -> dict[str, Any]:
        if all([*one] == ["type"] for one in schemas):
            return {"type": [one["type"] for one in schemas]}
        return {"anyOf": schemas}

    def _object(self, kind: Any, skipped: Collection[str] = ()) -> dict[str, Any]:
        """The schema of a TypedDict or NamedTuple without `skipped`: all keys but the optional ones are required."""
        described = comments(kind)
        known = vars(sys.modules[kind.__module__]) | {"Any": Any, "Sequence": Sequence, "Matrix": Matrix}
        hints = typing.get_type_hints(kind, known)
        optional = {*OPTIONAL.get(kind, ()), *getattr(kind, "__optional_keys__", ())}
        properties = {
            key: self._of(hint) | ({"description": described[key]} if key in described else {})
            for key, hint in hints.items()
            if key not in skipped
        }
        return {
            "description": " ".join((kind.__doc__ or "").split()),
            "type": "object",
            "properties": properties,
            "required": [key for key in properties if key not in optional],
            "additionalProperties": kind in OPEN,
        }


def comments(kind: type) -> dict[str, str]:
    """The comments of fields, also of those that a class inherits."""
    found: dict[str, str] = {}
    for one in reversed([*getattr(kind, "__orig_bases__", ()), kind]):
        if isinstance(one, type) and one.__module__.startswith("fastprof"):
            source = inspect.getsource(one)
            found |= dict(re.findall(r"^    (\w+): [^#\n]*  # (?:type: \S+  # )?(.+)$", source, re.MULTILINE))
    return {key: text for key, text in found.items() if not text.startswith("type: ")}


def file_of(name: str) -> Path:
    return FOLDER / f"{name}-{SCHEMAS[name]}.json"


def text_of(name: str) -> str:
    return json.dumps(Schema(name).whole, indent=1) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in SCHEMAS:
        file_of(name).write_text(text_of(name))


if __name__ == "__main__":
    main()
