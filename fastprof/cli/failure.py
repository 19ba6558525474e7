"""Errors as JSON: with --json, a command that fails prints one line on standard error.

{"schema": "fastprof/error/1", "code": "damaged", "message": "a.pb: pprof: at byte 7: ...", "file": "a.pb",
 "format": "pprof", "offset": 7, "line": null, "advice": "--lenient reads what can be understood, and counts losses"}
"""

from collections.abc import Sequence

from fastprof.cli.as_json import document, json_text
from fastprof.core import errors
from fastprof.core.errors import FastprofError, FormatError, printable
from fastprof.core.urls import shown

# By class, the most special first.  Scripts rely on them: docs/json.md lists what they mean.
CODES: tuple[tuple[type[Exception], str], ...] = (
    (FormatError, "damaged"),
    (errors.UnrecognizedError, "unrecognized"),
    (errors.NothingLeft, "nothing-left"),
    (errors.UsageError, "usage"),
    (errors.FileError, "file"),
    (errors.SymbolError, "symbols"),
    (errors.NotBuiltError, "not-built"),
    (FastprofError, "failed"),
    (MemoryError, "memory"),
    (RecursionError, "memory"),
    (OSError, "system"),
)
_LENIENT = "--lenient reads what can be understood, and counts losses"


def error_text(error: Exception, words: Sequence[str]) -> str:
    """The document of an error; `words` are those of the command line, which may name its file."""
    code = next((code for kind, code in CODES if isinstance(error, kind)), "internal")
    message = (error.text(flags=True) if isinstance(error, FastprofError) else str(error)) or "out of memory"
    file, rest = _file_of(error, message, words)
    advice = rest.rpartition("; ")[2] if "; " in rest and isinstance(error, FastprofError) else None
    if isinstance(error, FormatError) and advice is None and "--lenient" not in words:
        advice = _LENIENT
    if code == "internal":
        message, advice = f"{type(error).__name__}: {error}", "FASTPROF_DEBUG=1 shows where"
    elif code == "system" and isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    place = (error.format_name, error.offset, error.line) if isinstance(error, FormatError) else (None, None, None)
    return _text(code, message, file, *place, advice=advice)


def usage_text(message: str, advice: str) -> str:
    """The document of a wrong command line."""
    return _text("usage", message, None, None, None, None, advice=advice)


def _text(
    code: str,
    message: str,
    file: str | None,
    format: str | None,
    offset: int | None,
    line: int | None,
    *,
    advice: str | None,
) -> str:
    content = {"code": code, "message": printable(message), "file": file, "format": format, "offset": offset}
    return json_text(document("error", content | {"line": line or None, "advice": advice}))


def _file_of(error: Exception, message: str, words: Sequence[str]) -> tuple[str | None, str]:
    """The file of an error, and the rest of its message."""
    named = error.file if isinstance(error, FormatError) else getattr(error, "filename", None)
    for file in filter(None, (named, *map(shown, words))):
        if message.startswith(f"{file}: "):
            return str(file), message[len(str(file)) + 2 :]
    return (str(named) if named else None), message
