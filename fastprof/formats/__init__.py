"""The registry: the only place that knows which formats exist.

A format is a module of this package, named once in NAMES, with a constant
`FORMAT` (engine.Format).  Adding one: see CONTRIBUTING.md.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module

from fastprof.engine import Format
from fastprof.errors import UnrecognizedError, UsageError
from fastprof.io import Source
from fastprof.streams import compression_of_name

NAMES = ("xray", "gperftools", "callgrind", "cachegrind", "pprof", "archive")


@cache
def get(name: str) -> Format:
    """The format called `name`.  Errors: UsageError, with the names there are."""
    if name not in NAMES:
        raise UsageError(f"unknown format {name!r}; known are: {', '.join(NAMES)}")
    module = import_module(f"fastprof.formats.{name.replace('-', '_')}")
    found: Format = module.FORMAT
    return found


def formats() -> list[Format]:
    return [get(name) for name in NAMES]


def detect(source: Source) -> Format:
    """The one format that claims the first bytes.  Errors: UnrecognizedError."""
    claims = [f for f in formats() if f.sniff and f.sniff(source.head)]
    if len(claims) == 1:
        return claims[0]
    if claims:
        names = ", ".join(f.name for f in claims)
        raise UnrecognizedError(f"{source.name}: could be any of {names}; say which with --from")
    if not source.head:
        raise UnrecognizedError(f"{source.name}: the file is empty")
    raise UnrecognizedError(
        f"{source.name}: not a known profile format (it begins with {source.head[:16]!r}); "
        "say which it is with --from, see `fastprof formats`"
    )


def for_output(path: str) -> Format:
    """The format that an output's name asks for.  Errors: UsageError."""
    name = os.path.basename(path)
    plain = name.removesuffix(compression_of_name(name))
    for candidates in ([name], [plain]):
        for f in formats():
            if f.writer is None:
                continue
            for candidate in candidates:
                if any(candidate.endswith(s) for s in f.suffixes) or any(candidate.startswith(p) for p in f.prefixes):
                    return f
    raise UsageError(f"{path}: the suffix names no format to write; use --to, see `fastprof formats`")
