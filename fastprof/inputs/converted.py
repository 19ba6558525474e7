"""Inputs that become an archive before they are read: tables of rows, and files of plug-ins."""

import io
from typing import cast

from fastprof import formats
from fastprof.core._typing import IO, Any
from fastprof.core.engine import Format, Input
from fastprof.core.errors import FastprofError, FormatError, UsageError
from fastprof.core.model import Model
from fastprof.core.source import WINDOW, Source
from fastprof.formats.arrow import tables
from fastprof.inputs.made import ARCHIVE, Made, MadeBytes
from fastprof.inputs.stored import Given


def converted(format_: Format, source: Source) -> tuple[Source, Format]:
    """The archive that an input becomes, and its format.  Closes the source.

    Errors: FormatError, also for exceptions of plug-ins, which are its cause."""
    with source:
        content = _of_plugin(format_, source) if format_.plugin else _of_table(format_, source)
    inner = Source(content, source.name)
    inner.identity, inner.again, inner.pinned = source.identity, source.again, True
    return inner, formats.get(ARCHIVE)


def rename(reader: Input, model: Model, format_: Format) -> None:
    """Let the reader of the archive be one of the input's format."""
    reader.format = format_.name
    model.formats[-1] = format_.name


def _of_table(format_: Format, source: Source) -> Any:
    def fail(text: str, offset: int | None = None) -> FormatError:
        return FormatError(source.name, format_.name, text, offset=offset)

    names, chunks, units, clock = format_.load_converter()(source, fail)
    table = tables.guessed(names)
    if table is None:
        raise fail(f"is no table of a profile (docs/tables.md): its columns are {', '.join(names):.200}")
    if table == "frames":
        raise fail("has the frames of stacks without their samples: `fastprof.from_tables` reads both")
    made = Made(source.name, source.name, format_.name)
    made.fail = fail  # type: ignore[method-assign]
    made.put_columns(tables.layout(table, names, fail, units), chunks, clock=0 if clock == "ticks" else 10**9)
    return made.content()


class _File(io.RawIOBase):
    """The decompressed bytes of a source."""

    def __init__(self, source: Source) -> None:
        self._source, self.name = source, source.name
        source.select(0)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        in_ = self._source.in_
        if in_.pos == in_.n and not in_.eof:
            self._source.refill()
        view = memoryview(into).cast("B")
        n = min(len(view), in_.n - in_.pos)
        view[:n] = self._source._view[in_.pos : in_.pos + n]
        in_.pos += n
        return n


def _of_plugin(format_: Format, source: Source) -> Any:
    try:
        made = format_.load_converter()(cast("IO[bytes]", io.BufferedReader(_File(source), WINDOW)))
    except (FastprofError, MemoryError):
        raise
    except Exception as error:
        detail = f"{format_.plugin}: {type(error).__name__}: {error}"
        raise FormatError(source.name, format_.name, detail) from error
    content = given = made.as_input() if hasattr(made, "as_input") else None
    if isinstance(given, Given) and not given.options:
        content = given.path
    if not isinstance(content, MadeBytes) and not hasattr(content, "read"):
        what = f"{source.name}: {format_.plugin}: read returned {made!r:.80}"
        raise UsageError(f"{what}, expected a profile that was made, without further steps")
    return content
