"""Results as text: the table that the command of a verb prints."""

from __future__ import annotations

from importlib import import_module

from fastprof.core._typing import Any


def printed(code: str, result: Any) -> str:
    """What `code`, "module:function" of fastprof, makes of a result; imported when one is printed, because the command
    line is above its verbs."""
    module, _, name = code.partition(":")
    text: str = getattr(import_module(f"fastprof.{module}"), name)(result)
    return text
