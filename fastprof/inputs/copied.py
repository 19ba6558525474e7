"""Copies an input that can be read only once, for verbs that read it several times."""

import sys

from fastprof.core._typing import Any
from fastprof.core.errors import errors_of, raise_as
from fastprof.core.streams import name_of, standard_stream, temporary_failed, temporary_file


def copy_of_input() -> Any:
    """Standard input as a temporary file."""
    with standard_stream(sys.stdin, "<stdin>", "rb") as source:
        return copy_of(source, "<stdin>")


def copy_of(source: Any, name: str = "") -> Any:
    """What a binary file object has left, as a temporary file."""
    copy = temporary_file()
    copy.name = name = name or name_of(source)  # for messages
    while part := _read(source, name):
        try:
            while part := part[copy.write(part) :]:  # a full disk accepts a part first
                pass
        except OSError as error:
            raise_as(name, error, str(temporary_failed(error)))
    return copy


def _read(source: Any, name: str) -> bytes:
    with errors_of(name):
        part: bytes = source.read(1 << 18)
    return part
