"""Opening inputs, for all verbs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from fastprof import formats
from fastprof.core._typing import Any
from fastprof.core.engine import Reader
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.model import Model
from fastprof.core.options import LENIENT, Options
from fastprof.core.report import Report
from fastprof.core.source import Source

Progress = Callable[[Source], None]


def open_reader(
    path: Any, from_: str | None, model: Model, options: Options, report: Report, progress: Progress | None = None
) -> Reader:
    """A reader of one input.  The format is recognized unless `from_` names it.  The caller closes `reader.source`.

    Errors: FastprofError and its subclasses.
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


def expand(paths: Iterable[str], warn: Callable[[str], None]) -> list[str]:
    """The input files, with each directory replaced by its files, sorted by name (numbers in names by value).

    Names in a directory that begin with a dot are ignored.  `warn` is told of what else in it is no file.
    An empty file NAME is left out if NAME-01 or NAME.1-01 is there: Callgrind leaves it with --separate-threads.
    """
    found: list[str] = []
    for path in paths:
        if path == "-" and "-" in found:
            raise UsageError("standard input (-) can be read only once")
        if path != "-" and os.path.isdir(path):
            names = sorted((name for name in os.listdir(path) if not name.startswith(".")), key=_natural)
            others = [name for name in names if not os.path.isfile(os.path.join(path, name))]
            if len(others) == len(names):
                raise FastprofError(f"{path}: a directory without files")
            if others:
                warn(f"{path}: not read, being no files: {', '.join(others)}")
            found += (os.path.join(path, name) for name in names if name not in others)
        else:
            found.append(path)
    if len(found) == 1:
        return found
    # in NAME.1-01 the 1 may be the number of a dump, or belong to the name
    apart = [re.fullmatch(r"(?s)((.*?)(?:\.[0-9]+)?)-[0-9]+", path) for path in found]
    of_threads = {name for match in apart if match for name in match.groups()}
    return [path for path in found if path not in of_threads or os.path.getsize(path)]


def _natural(name: str) -> list[tuple[str, int]]:
    """ "out.10-02" as [("out.", 10), ("-", 2)]."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name)]
