"""samtools for profiles: any profile format into any other, streaming.

    report = fastprof.convert(["trace.xray"], "out.callgrind")
    facts = fastprof.info("trace.xray").facts
    with fastprof.open("trace.xray") as profile:
        for batch in profile: ...
"""

from __future__ import annotations

from importlib import import_module

from fastprof._typing import TYPE_CHECKING, Any
from fastprof._version import __version__

if TYPE_CHECKING:
    from fastprof.engine import Options, Report
    from fastprof.errors import FastprofError, FormatError, UnrecognizedError, UsageError
    from fastprof.model import Batch
    from fastprof.pipeline import convert, info
    from fastprof.profile import Profile, open

# Imported when first used, so that `fastprof --version` costs nothing.
_HOMES = {
    "Batch": "model",
    "FastprofError": "errors",
    "FormatError": "errors",
    "Options": "engine",
    "Profile": "profile",
    "Report": "engine",
    "UnrecognizedError": "errors",
    "UsageError": "errors",
    "convert": "pipeline",
    "info": "pipeline",
    "open": "profile",
}

__all__ = [
    "Batch",
    "FastprofError",
    "FormatError",
    "Options",
    "Profile",
    "Report",
    "UnrecognizedError",
    "UsageError",
    "__version__",
    "convert",
    "info",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fastprof' has no attribute {name!r}")
    return getattr(import_module(f"fastprof.{_HOMES[name]}"), name)
