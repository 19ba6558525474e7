"""samtools for profiles: any profile format into any other, streaming.

report = fastprof.convert("trace.xray", "out.callgrind", symbols=["./program"])
report = fastprof.merge(["day1.prof", "day2.prof"], "both.pb.gz")
changed = fastprof.diff("old.prof", "new.prof", n=10).rows
fastprof.report("cpu.pb.gz", "report.html")
fastprof.batch_convert("dumps", "out", to="callgrind", symbols=["./program"])
facts = fastprof.info("trace.xray").facts
with fastprof.open("trace.xray") as profile:
    for batch in profile: ...
"""

from __future__ import annotations

from importlib import import_module

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.version import __version__

if TYPE_CHECKING:
    from fastprof.core.errors import FastprofError, FileError, FormatError, UnrecognizedError, UsageError
    from fastprof.core.model import Batch
    from fastprof.core.report import Report
    from fastprof.verbs.annotate import annotate
    from fastprof.verbs.annotation import Annotation
    from fastprof.verbs.batch.archive import batch_archive
    from fastprof.verbs.batch.convert import BatchReport, batch_convert, batch_plan
    from fastprof.verbs.batch.merge import batch_merge
    from fastprof.verbs.batch.status import BatchStatus, batch_status
    from fastprof.verbs.convert import convert
    from fastprof.verbs.diff import Difference, diff
    from fastprof.verbs.info import info
    from fastprof.verbs.merge import merge
    from fastprof.verbs.profile import Profile, Table, open
    from fastprof.verbs.report import report
    from fastprof.verbs.sql import Answer, sql
    from fastprof.verbs.top import Top, top

# Imported when first used, so that `fastprof --version` costs nothing.
_HOMES = {
    "Annotation": "verbs.annotation",
    "Answer": "verbs.sql",
    "Batch": "core.model",
    "BatchReport": "verbs.batch.convert",
    "BatchStatus": "verbs.batch.status",
    "FastprofError": "core.errors",
    "FileError": "core.errors",
    "FormatError": "core.errors",
    "Profile": "verbs.profile",
    "Table": "verbs.profile",
    "Report": "core.report",
    "Top": "verbs.top",
    "UnrecognizedError": "core.errors",
    "UsageError": "core.errors",
    "annotate": "verbs.annotate",
    "batch_archive": "verbs.batch.archive",
    "batch_convert": "verbs.batch.convert",
    "batch_merge": "verbs.batch.merge",
    "batch_plan": "verbs.batch.convert",
    "batch_status": "verbs.batch.status",
    "convert": "verbs.convert",
    "Difference": "verbs.diff",
    "diff": "verbs.diff",
    "info": "verbs.info",
    "merge": "verbs.merge",
    "open": "verbs.profile",
    "report": "verbs.report",
    "sql": "verbs.sql",
    "top": "verbs.top",
}

__all__ = [
    "Annotation",
    "Answer",
    "Batch",
    "BatchReport",
    "BatchStatus",
    "Difference",
    "FastprofError",
    "FileError",
    "FormatError",
    "Profile",
    "Report",
    "Table",
    "Top",
    "UnrecognizedError",
    "UsageError",
    "__version__",
    "annotate",
    "batch_archive",
    "batch_convert",
    "batch_merge",
    "batch_plan",
    "batch_status",
    "convert",
    "diff",
    "info",
    "merge",
    "open",
    "report",
    "sql",
    "top",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fastprof' has no attribute {name!r}")
    try:
        return getattr(import_module(f"fastprof.{_HOMES[name]}"), name)
    except ImportError as error:
        from fastprof.core.errors import NotBuiltError

        if isinstance(error, NotBuiltError):  # the message says it all: no trace through our imports
            raise error.with_traceback(None) from None
        raise


def __dir__() -> list[str]:
    return __all__
