"""A job: one file to convert.  A job and its record are JSON objects, so that any engine can transport them.

    job     {"input": "/d/a.prof", "size": 1024, "mtime_ns": ..., "output": "/o/a.prof.callgrind", "to": "callgrind",
             "from": None, "options": {"lenient": True}, "key": "8f2c...", "durable": False}
    record  {"input": "/d/a.prof", "size": 1024, "mtime_ns": ..., "output": "/o/a.prof.callgrind", "key": "8f2c...",
             "status": "ok", "bytes": 2048, "rows": {"calls": 7}, "cpu_seconds": 0.0015, "try": 1}

`size` and `mtime_ns` are those of the input before it was read, `key` identifies the user's request: if one of them
differs, the output is out of date.  `durable` is false if the caller synchronizes the outputs of many jobs to disk
together (manifest.py).  `columns` of a job: those that its path gives (--partition).

`status` of a record is
    ok        the output exists
    lossy     the output exists, and `losses` counts what was skipped (--lenient)
    error     no output; `error` has the message and, for a damaged file, its format, offset and line; `retry` if the
              cause is the machine, not the file: another machine, or the next run, tries again
    crashed   no output: the process died at this file or exceeded --timeout; `error` states which

`files` lists the outputs if there are several (--split); `idle` the flags of options without an effect on this
file, which may affect others.  `kept` of a file that could not be added to a store: the store has its profile of an
earlier run, which the next one may replace.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from hashlib import blake2b

from fastprof.bridges import LABELS_FROM
from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, FormatError, UnrecognizedError, UsageError
from fastprof.core.log import Log
from fastprof.core.messages import Message, counted, packed, unpacked
from fastprof.core.options import Option, Options
from fastprof.core.urls import is_url, shown
from fastprof.verbs.convert import converted

Job = dict[str, Any]
Record = dict[str, Any]

OK, LOSSY, ERROR, CRASHED = "ok", "lossy", "error", "crashed"
_IDENTITY = ("input", "size", "mtime_ns", "output", "key")


def options_key(to: str, from_: str | None, options: dict[str, Any]) -> str:
    """A key that identifies the request, equal in all processes and on all machines."""
    import json

    # the table's rows count, not its path: keys_by_input
    others = {name: value for name, value in options.items() if name != LABELS_FROM.name}
    text = json.dumps([to, from_, others], sort_keys=True)
    return blake2b(text.encode(), digest_size=8).hexdigest()


def keys_by_input(key: str, options: Options) -> Callable[[str], str]:
    """The key of each input: with --labels-from it covers the input's labels, so outputs with other labels are renewed.

    Errors: FastprofError for a table that cannot be read."""
    if options[LABELS_FROM] is None:
        return lambda path: key
    from fastprof.bridges.rows.label import InputLabels

    labels = InputLabels(options)
    return lambda path: options_key(key, None, labels.of(shown(path), Log()))


def convert_one(job: Job) -> Record:
    """Convert one file; returns its record.  Never raises an Exception, whatever the file is.

    Creates the folder of the output.  Files of symbols are cached for the next job (symbols/file_cache.py).
    """

    def convert(idle: Idle) -> Log:
        if not is_url(job["output"]):
            folder = os.path.dirname(job["output"]) or "."
            if not os.path.isdir(folder):
                os.makedirs(folder, exist_ok=True)
        return converted(
            job["input"],
            job["output"],
            job["from"],
            job["to"],
            None,
            {"cores": 1, **job["options"]},  # the other cores run other jobs
            durable=job["durable"],
            idle=idle,
            columns=job.get("columns", ()),
        )

    return record_of(job, convert)


CONVERT = f"{__name__}:{convert_one.__name__}"  # for a pool or an engine
Idle = Callable[[Option[Any]], None]


def record_of(job: Job, work: Callable[[Idle], Log]) -> Record:
    """The record of a job done by `work`, which gets a callback for options without effect."""
    began = time.process_time()
    try:
        idle: set[str] = set()  # a set, because a conversion may start over and report options twice
        found = _of_log(work(lambda option: idle.add(option.flag)), idle)
    except Exception as error:
        found = {"status": ERROR, "error": of_error(job["input"], error)}
    return {**identity(job), **found, "cpu_seconds": round(time.process_time() - began, 6), "try": 1}


def failed(job: Job, message: str) -> Record:
    """The record of a job that was not tried."""
    return {**identity(job), "status": ERROR, "error": {"message": message}, "try": 0}


def crashed(job: Job, why: str, tries: int) -> Record:
    """The record of a job whose process died."""
    others = len(job.get("inputs", ())) - 1
    name = f"{job['input']} or one of {counted(others, 'other file')}" if others > 0 else job["input"]
    return {**identity(job), "status": CRASHED, "error": {"message": f"{name}: {why}"}, "try": tries}


def outputs_of(record: Record) -> list[str]:
    """The paths of the outputs."""
    return [str(one["output"]) for one in record.get("files", [record])]


def identity(job: Job) -> Record:
    return {name: job[name] for name in _IDENTITY}


def _of_log(log: Log, idle: set[str]) -> Record:
    fields = log.as_dict(flags=True)
    facts = fields.pop("facts")
    found = {"status": LOSSY if log.losses else OK, "bytes": facts["output_bytes"]}
    files = [{"output": file["path"], "bytes": file["bytes"]} for file in facts.get("files", [])]
    return found | {name: value for name, value in {**fields, "files": files, "idle": sorted(idle)}.items() if value}


def of_error(path: str, error: Exception) -> dict[str, Any]:
    if isinstance(error, FormatError):
        place = {"format": error.format_name, "offset": error.offset, "line": error.line}
        return error_fields(error.message()) | {name: value for name, value in place.items() if value is not None}
    if isinstance(error, (UsageError, UnrecognizedError)):
        return error_fields(error.message())
    if isinstance(error, FastprofError):
        return error_fields(error.message()) | {"retry": True}
    if isinstance(error, OSError):
        message = f"{error.filename or path}: {error.strerror or error}"
    elif isinstance(error, (MemoryError, RecursionError)):
        message = f"{path}: {str(error) or 'out of memory'}"
    else:
        message = f"{path}: internal error: {type(error).__name__}: {error}"
    return {"message": message, "retry": True}


def error_fields(message: Message) -> dict[str, Any]:
    """An error of a record: its text in Python, and, if that names options, its template and values."""
    text = message.text()
    names_options = message.text(flags=True) != text
    return {"message": text} | ({"words": packed([("", message)])} if names_options else {})


def message_of(error: Mapping[str, Any]) -> Message:
    """The text of a record's error."""
    (_, message), *_ = unpacked(error.get("words", [["", error["message"]]]))
    return message if isinstance(message, Message) else Message("{text}", text=message)


def is_of_the_file(record: Record) -> bool:
    """Whether an error would be the same on any machine at any time."""
    return record["status"] == ERROR and not record["error"].get("retry")
