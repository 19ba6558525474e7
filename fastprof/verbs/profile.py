"""One input as a Python object: its batches, its model, Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType

from fastprof.core._typing import IO, Any
from fastprof.core.errors import UsageError
from fastprof.core.model import Batch, Model
from fastprof.core.options import checked
from fastprof.core.report import Report
from fastprof.plan import Left, known_options, refuse_idle, selected
from fastprof.verbs.inputs import open_reader


class Profile:
    """An input that is read once, from beginning to end.

    `view` is "timeline", "stacks" or "graph".  `model` says what the ids in the
    batches mean.  `report` is complete when all batches were read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | bytes | IO[bytes],
        *,
        from_: str | None = None,
        **options: Any,
    ) -> None:
        self.model = Model()
        self.report = Report()
        self._options = asked = checked(options, known_options())
        self._reader = open_reader(path, from_, self.model, asked, self.report)
        try:
            refuse_idle(asked, [self._reader])
        except UsageError:
            self.close()
            raise
        self.format = self._reader.format
        self.view = self._reader.view

    def __iter__(self) -> Iterator[Batch]:
        """The batches; each is valid until the next one is asked for."""
        return self._rows()

    def _rows(self, *, keep: bool = False) -> Iterator[Batch]:
        left = Left()
        yield from left.seen(selected(self._reader, self.model, self._options, self.report, keep=keep))
        left.check(self.model, self._options, self.report)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The batches as an Arrow stream.  Each has memory of its own, which the decoder fills; nothing is copied."""
        from fastprof.core import _arrow

        batches = self._rows(keep=True)
        items = ((batch, len(batch), batch.arrow_columns()) for batch in batches)
        return _arrow.stream(items, Batch(self.view, 1).arrow_columns())

    def function_name(self, function_id: int) -> str:
        """The name of a function id (columns "function", "callee"); bytes that are not UTF-8 become surrogates."""
        return self.model.get_function(function_id).name.decode("utf-8", "surrogateescape")

    def close(self) -> None:
        self._reader.source.close()

    def __enter__(self) -> Profile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(
    path: str | os.PathLike[str] | bytes | IO[bytes],
    *,
    from_: str | None = None,
    **options: Any,
) -> Profile:
    """Open a profile: a path, "-", the bytes themselves, or a binary file.

    `options` are those of docs/options.md that reading looks at.
    Errors: UsageError for a wrong option, UnrecognizedError when the input is of no known format, FormatError when it
    is damaged.
    """
    return Profile(path, from_=from_, **options)
