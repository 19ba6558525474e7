"""Converts, merges, diffs and shows profiles: any profile format into any other, streaming.

log = fastprof.convert("trace.xray", "out.callgrind", symbols=["./program"])
log = fastprof.merge(["day1.prof", "day2.prof"], "both.pb.gz")
changed = fastprof.diff("old.prof", "new.prof", n=10).rows
fastprof.report("cpu.pb.gz", "report.html")
fastprof.batch_convert("dumps", "out", to="callgrind", symbols=["./program"])
facts = fastprof.info("trace.xray").facts
with fastprof.open("trace.xray") as profile:
    for batch in profile: ...
"""

from __future__ import annotations

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.loaded import loaded
from fastprof.core.version import __version__ as __version__

if TYPE_CHECKING:
    from fastprof.core.errors import FastprofError as FastprofError
    from fastprof.core.errors import FileError as FileError
    from fastprof.core.errors import FormatError as FormatError
    from fastprof.core.errors import NothingLeft as NothingLeft
    from fastprof.core.errors import SymbolError as SymbolError
    from fastprof.core.errors import UnrecognizedError as UnrecognizedError
    from fastprof.core.errors import UsageError as UsageError
    from fastprof.core.log import Log as Log
    from fastprof.core.model import Batch as Batch
    from fastprof.core.options import Option
    from fastprof.verbs.annotate import annotate as annotate
    from fastprof.verbs.annotation import Annotation as Annotation
    from fastprof.verbs.archive import archive_add as archive_add
    from fastprof.verbs.archive import archive_compact as archive_compact
    from fastprof.verbs.archive import archive_extract as archive_extract
    from fastprof.verbs.archive import archive_list as archive_list
    from fastprof.verbs.archive import archive_rm as archive_rm
    from fastprof.verbs.archive import archive_verify as archive_verify
    from fastprof.verbs.batch.archive import batch_archive as batch_archive
    from fastprof.verbs.batch.convert import BatchLog as BatchLog
    from fastprof.verbs.batch.convert import batch_convert as batch_convert
    from fastprof.verbs.batch.convert import batch_plan as batch_plan
    from fastprof.verbs.batch.merge import batch_merge as batch_merge
    from fastprof.verbs.batch.status import BatchStatus as BatchStatus
    from fastprof.verbs.batch.status import batch_status as batch_status
    from fastprof.verbs.convert import convert as convert
    from fastprof.verbs.diff import Difference as Difference
    from fastprof.verbs.diff import diff as diff
    from fastprof.verbs.explain import Comparison as Comparison
    from fastprof.verbs.explain import Explanation as Explanation
    from fastprof.verbs.explain import explain as explain
    from fastprof.verbs.info import info as info
    from fastprof.verbs.makers import Plugin as Plugin
    from fastprof.verbs.makers import Recorder as Recorder
    from fastprof.verbs.makers import from_calls as from_calls
    from fastprof.verbs.makers import from_spans as from_spans
    from fastprof.verbs.makers import from_stacks as from_stacks
    from fastprof.verbs.makers import from_tables as from_tables
    from fastprof.verbs.merge import merge as merge
    from fastprof.verbs.profile import Frame as Frame
    from fastprof.verbs.profile import Profile as Profile
    from fastprof.verbs.profile import Table as Table
    from fastprof.verbs.profile import open as open
    from fastprof.verbs.report import Page as Page
    from fastprof.verbs.report import report as report
    from fastprof.verbs.sql import Answer as Answer
    from fastprof.verbs.sql import sql as sql
    from fastprof.verbs.top import Top as Top
    from fastprof.verbs.top import top as top
    from fastprof.verbs.trend import trend as trend
    from fastprof.verbs.trend.result import Trend as Trend

# The public names and their modules, which are imported when first used: `fastprof --version` costs nothing.  The
# imports above are made from it by `make docs`.
_HOMES = {
    "Annotation": "verbs.annotation",
    "Answer": "verbs.sql",
    "Batch": "core.model",
    "BatchLog": "verbs.batch.convert",
    "BatchStatus": "verbs.batch.status",
    "FastprofError": "core.errors",
    "FileError": "core.errors",
    "Frame": "verbs.profile",
    "Recorder": "verbs.makers",
    "Plugin": "verbs.makers",
    "from_calls": "verbs.makers",
    "from_spans": "verbs.makers",
    "from_stacks": "verbs.makers",
    "from_tables": "verbs.makers",
    "FormatError": "core.errors",
    "NothingLeft": "core.errors",
    "SymbolError": "core.errors",
    "Page": "verbs.report",
    "Profile": "verbs.profile",
    "Table": "verbs.profile",
    "Log": "core.log",
    "Top": "verbs.top",
    "UnrecognizedError": "core.errors",
    "UsageError": "core.errors",
    "annotate": "verbs.annotate",
    "archive_add": "verbs.archive",
    "archive_compact": "verbs.archive",
    "archive_extract": "verbs.archive",
    "archive_list": "verbs.archive",
    "archive_rm": "verbs.archive",
    "archive_verify": "verbs.archive",
    "batch_archive": "verbs.batch.archive",
    "batch_convert": "verbs.batch.convert",
    "batch_merge": "verbs.batch.merge",
    "batch_plan": "verbs.batch.convert",
    "batch_status": "verbs.batch.status",
    "convert": "verbs.convert",
    "Difference": "verbs.diff",
    "diff": "verbs.diff",
    "explain": "verbs.explain",
    "Comparison": "verbs.explain",
    "Explanation": "verbs.explain",
    "info": "verbs.info",
    "merge": "verbs.merge",
    "open": "verbs.profile",
    "report": "verbs.report",
    "sql": "verbs.sql",
    "top": "verbs.top",
    "Trend": "verbs.trend.result",
    "trend": "verbs.trend",
}

# What lists the keyword options of a function.
_OPTIONS = {
    "info": "plan:reading_options",
    "open": "verbs.sql:table_options",
    "sql": "verbs.sql:options",
    "convert": "plan:known_options",
    "merge": "verbs.weight_options:options",
    "top": "verbs.top:options",
    "trend": "verbs.trend:options",
    "annotate": "verbs.annotate:options",
    "diff": "verbs.diff:options",
    "report": "verbs.report:options",
    "explain": "verbs.explain:options",
    "batch_plan": "verbs.batch.convert:FINDING",
    "batch_convert": "verbs.batch.convert:options",
    "batch_merge": "verbs.batch.merge:options",
    "batch_archive": "verbs.batch.archive:options",
    "archive_add": "store.pieces:adding_options",
    "archive_extract": "verbs.archive:extracting_options",
}

__all__ = sorted(["__version__", *_HOMES])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fastprof' has no attribute {name!r}")
    try:
        found = loaded(f"fastprof.{_HOMES[name]}:{name}")
    except ImportError as error:
        from fastprof.core.errors import NotBuiltError

        if isinstance(error, NotBuiltError):  # the message is complete: no trace through our imports
            raise error.with_traceback(None) from None
        raise
    if name in _OPTIONS and _HEADING not in found.__doc__:
        found.__doc__ += _HEADING + _listed(name)
    return found


def __dir__() -> list[str]:
    return __all__


_HEADING = "\n    Arguments by name (docs/options.md has their details):\n\n"


def _listed(name: str) -> str:
    """The keyword options of a function, for `help`."""
    lines = []
    for option in _options(name):
        default = "" if option.default is None else f" = {option.default!r}"
        within = f"  ({option.format})" if option.format else ""
        help = f"False: {option.help}" if option.default is True else option.help
        lines.append(f"    {option.name}: {option.annotation}{default}{within}\n        {help}\n")
    return "".join(lines)


def _options(name: str) -> list[Option[Any]]:
    found = loaded(f"fastprof.{_OPTIONS[name]}")
    return [*(found() if callable(found) else found)]
