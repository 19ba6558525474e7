"""Results as text: the table that the command of a verb prints."""

from fastprof.core._typing import Any
from fastprof.core.loaded import loaded


def printed(code: str, result: Any) -> str:
    """What `code`, "module:function" of fastprof, makes of a result; imported when one is printed, because the command
    line is above its verbs."""
    text: str = loaded(f"fastprof.{code}")(result)
    return text
