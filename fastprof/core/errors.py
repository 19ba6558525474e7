"""Exceptions, and the only place that turns a C status into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fastprof.core._typing import FFI, TYPE_CHECKING, Any, NoReturn, fp_err
from fastprof.core.messages import Message

if TYPE_CHECKING:
    from fastprof.core.model import Model


class FastprofError(Exception):
    """An error that the user sees as one line, without a traceback.

    It has a text, or a Message if the text names options: str() spells them as Python keywords,
    `text(flags=True)` as flags.
    """

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def text(self, *, flags: bool = False) -> str:
        return self.message().text(flags=flags)

    def message(self) -> Message:
        """Its text, as a part of another message."""
        what = self.args[0] if self.args else ""
        return what if isinstance(what, Message) else Message("{what}", what=str(what))


class UsageError(FastprofError, ValueError):
    """The request is invalid: unknown format, impossible conversion, bad argument.  Also a ValueError."""


def usage_error(text: str, /, **values: Any) -> UsageError:
    """A UsageError whose text has fields for options or values (Message)."""
    return UsageError(Message(text, **values))


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Within it the errors of the operating system become FileErrors of `name`."""
    try:
        yield
    except OSError as error:
        raise_as(name, error)


class NothingLeft(UsageError):
    """Filters leave no row of any input."""


class UnknownId(UsageError, IndexError):
    """An id of which no row has been read yet.  Also an IndexError."""


class UnrecognizedError(FastprofError):
    """No format claims the input."""


class SymbolError(FastprofError):
    """A binary, debug file or map given for symbols that cannot be used."""


class NotBuiltError(FastprofError, ImportError):
    """The source folder was imported, and its compiled modules are missing."""


class FileError(FastprofError, OSError):
    """A file or URL that cannot be opened, read or written: an OSError with errno, strerror and filename.

    `status`: the status that a server answered with, such as 503.  `__cause__` is the error of the system or library.
    """

    status: int | None = None

    def message(self) -> Message:
        return Message("{what}", what=f"{self.filename}: {self.strerror}")


def file_error(name: str, error: Exception, why: str = "", status: int | None = None) -> FileError:
    """The error of the file or URL `name`, to be raised from `error`."""
    made = FileError(getattr(error, "errno", None), why or getattr(error, "strerror", None) or str(error), name)
    made.status = status
    return made


def faulty(name: str, why: str) -> FileError:
    """The error of a file, folder or URL that is not as it has to be."""
    return FileError(None, why, name)


def raise_as(name: str, error: Exception, why: str = "", status: int | None = None) -> NoReturn:
    """Raise `error` as one of the file or URL `name`, unless it is one already."""
    if isinstance(error, FastprofError):
        raise error
    raise file_error(name, error, why, status) from error


class OutOfOrder(Exception):
    """A row was out of order in input expected to be sorted: the work starts over and sorts (plan.make)."""


class Outgrown(Exception):
    """The output unexpectedly exceeds the budget: the work starts over and buffers rows (verbs/outputs.py)."""


class FormatError(FastprofError):
    """An input that was recognized, but is damaged.

    `offset` is absolute in the decompressed input, for damaged compression in the compressed one; `line` is 1-based
    and set for text formats only; `code` is the negative `fp_status`.
    """

    def __init__(
        self,
        file: str,
        format_name: str,
        detail: str | Message,
        *,
        offset: int | None = None,
        line: int | None = None,
        code: int = -1,
    ) -> None:
        where = ""
        if line:
            where = f"line {line}, byte {offset}: " if offset is not None else f"line {line}: "
        elif offset is not None:
            where = f"at byte {offset}: "
        super().__init__(Message("{place}{detail}", place=f"{file}: {format_name}: {where}", detail=detail))
        self.file = file
        self.format_name = format_name
        self.detail = detail
        self.offset = offset
        self.line = line
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle, which otherwise calls __init__ with the message alone."""
        return _restored, (type(self), self.args, vars(self))


class CanBeDamaged:
    """An input that is being read."""

    source: Any
    format: str

    def damaged(self, detail: str | Message, offset: int | None = None, code: int = -1, line: int = 0) -> FormatError:
        return FormatError(self.source.name, self.format, detail, offset=offset, line=line or None, code=code)


def _restored(kind: type[FormatError], args: tuple[Any, ...], state: dict[str, Any]) -> FormatError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


FP_E_NOMEM = -4

# enum fp_got and a status of core/fp.h, repeated here so that importing this file does not load the C module
_GOT_SIGNED, _GOT_UNSIGNED, _GOT_HEX, _GOT_TEXT, _GOT_COLUMN = 1, 2, 3, 4, 5
FP_E_OVERFLOW = -3


def _found(err: fp_err, ffi: FFI) -> str:
    value = int(err.got)
    if err.got_kind == _GOT_TEXT:
        return repr(bytes(ffi.buffer(err.text, err.text_n)).decode("utf-8", "backslashreplace"))
    if err.got_kind == _GOT_SIGNED:
        return str(value - (1 << 64) if value >> 63 else value)
    return str(value) if err.got_kind == _GOT_UNSIGNED else hex(value)


def check(status: int, err: fp_err, file: str, format_name: str) -> int:
    """Return a non-negative `status`; raise the error of a negative one.

    `err` is the `struct fp_err` that the failing call filled.  Raises
    FormatError, or MemoryError for FP_E_NOMEM.
    """
    if status >= 0:
        return status
    if status == FP_E_NOMEM:
        raise MemoryError(f"{file}: out of memory")
    raise FormatError(file, format_name, _detail(err), offset=err.offset, line=err.line or None, code=status)


def _detail(err: fp_err) -> str:
    from fastprof.core._c import ffi

    detail: str = ffi.string(err.what).decode()
    if err.got_kind:
        detail += f" is {_found(err, ffi)}"
    if err.want:
        detail += ", expected " + ffi.string(err.want).decode().replace("%", str(err.limit))
    return detail


def inputs_of(model: Model) -> str:
    """The beginning of a bridge's error: "FILE: " or "FILE and N more: "; "" when nothing was read."""
    first, *more = model.inputs or [""]
    return f"{first} and {len(more)} more: " if more else f"{first}: " if first else ""


def check_sums(status: int, err: fp_err, model: Model, bridge: str | Message, value_types: Iterable[Any] = ()) -> int:
    """`check` for bridges and writers, whose errors name the inputs of the rows.  They have no byte offset:
    they concern sums of many rows, or rows that a format cannot hold.

    `value_types` are those of the columns that the bridge adds up.  Raises MemoryError, or FastprofError such as
    "a.pb: stacks to graph: the sum of a stack's samples in value type cpu exceeds 2^63 - 1".
    """
    if status >= 0:
        return status
    if status == FP_E_NOMEM:
        model.check_memory()
        raise MemoryError(f"{inputs_of(model)}{bridge}: out of memory")
    if status != FP_E_OVERFLOW:
        raise FastprofError(
            Message("{inputs}{bridge}: {what}", inputs=inputs_of(model), bridge=bridge, what=_detail(err))
        )
    from fastprof.core._c import ffi

    what = ffi.string(err.what).decode()
    if err.line:
        what += f" at line {err.line}"
    if err.got_kind == _GOT_COLUMN:
        what += f" in value type {list(value_types)[err.got].name}"
    what += f" exceeds {ffi.string(err.want).decode()}"
    raise FastprofError(Message("{inputs}{bridge}: {what}", inputs=inputs_of(model), bridge=bridge, what=what))


def hexdump(data: bytes) -> str:
    """Bytes as `hexdump -C` shows them.

    >>> hexdump(b"\\x7fELF\\n")
    '7f 45 4c 46 0a |.ELF.|'
    """
    return f"{data.hex(' ')} |{''.join(chr(byte) if 32 <= byte < 127 else '.' for byte in data)}|"


def printable(text: str) -> str:
    """`text` with control characters escaped, so that a name from a file cannot control the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Like `printable`, but keeps line ends and tabs."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))
