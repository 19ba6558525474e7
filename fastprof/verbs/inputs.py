"""Opening inputs: what every verb begins with."""

from __future__ import annotations

from collections.abc import Callable

from fastprof import formats
from fastprof.core._typing import Any
from fastprof.core.engine import Reader
from fastprof.core.errors import UsageError
from fastprof.core.io import Source
from fastprof.core.model import Model
from fastprof.core.options import LENIENT, Options
from fastprof.core.report import Report

Progress = Callable[[Source], None]


def open_reader(
    path: Any, from_: str | None, model: Model, options: Options, report: Report, progress: Progress | None = None
) -> Reader:
    """A reader of one input, its format recognized unless `from_` says it.  Its `source` is to be closed.

    Errors: FastprofError and its kinds.
    """

    def lost(what: str) -> None:
        report.losses.add("input-damage", what)

    source = Source(path, lost=lost if options[LENIENT] else None)
    try:
        if progress is not None:
            progress(source)
        format_ = formats.get(from_) if from_ else formats.detect(source)
        if not format_.reader:
            raise UsageError(f"{source.name}: fastprof writes {format_.name} but does not read it")
        return format_.reader_class()(source, model, options, report)
    except BaseException:
        source.close()
        raise
