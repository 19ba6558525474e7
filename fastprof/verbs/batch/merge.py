"""Merge many files into one.

A single process reads all files in sequence, like `merge`.  Several processes, or an engine, merge a tree: files,
sorted by name, are merged 32 at a time into archives ("partials"), these are merged again, and so on.  The last merge
writes the output:

    10,000 files  ->  313 partials  ->  10 partials  ->  output

Any tree gives the same bytes.  Bridges for single inputs (a timeline's calls, an estimate of stacks) run before the
first merge.  Stacks that become a graph stay stacks until the last, because each arc of a graph of samples has 1 call,
which would be added up.  A partial is named after a hash of its inputs, so complete partials are reused after an
interruption.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import blake2b

from fastprof import formats, plan
from fastprof.bridges import (
    COMPUTE,
    INPUT_LABELS,
    LABEL,
    LABELS,
    PER_THREAD,
    RENAME,
    RENAME_VALUE,
    SELECT,
    TAG,
    keeps_input_labels,
)
from fastprof.bridges import FUNCTION as NAMED
from fastprof.bridges import OBJECT as OF_OBJECT
from fastprof.core._typing import TYPE_CHECKING, Any, Unpack
from fastprof.core.engine import Capabilities, Format
from fastprof.core.errors import FastprofError, UsageError, usage_error
from fastprof.core.log import Log
from fastprof.core.made_folders import WorkFolder
from fastprof.core.messages import spelled
from fastprof.core.model import Model
from fastprof.core.options import CORES, LENIENT, Option, Options, Whole, checked
from fastprof.core.prefetch import Prefetch
from fastprof.core.sink import Sink
from fastprof.core.urls import has_listings, is_taken_anew, is_url, shown
from fastprof.core.version import __version__
from fastprof.inputs import is_object, open_reader, refuse_uncallable
from fastprof.store.compact import verify
from fastprof.verbs.batch.convert import (
    EXCLUDE,
    FINDING,
    INCLUDE,
    JOBS,
    RETRIES,
    TIMEOUT,
    cores_of_each,
    paths_of,
    workers_for,
)
from fastprof.verbs.batch.engines import ENGINE, LOCAL, begun
from fastprof.verbs.batch.files import File, Found, by_size
from fastprof.verbs.batch.jobs import CRASHED, ERROR, OK, Job, Record, identity, keys_by_input, message_of, of_error
from fastprof.verbs.batch.kinds import BatchOption
from fastprof.verbs.batch.partial_key import absolute
from fastprof.verbs.batch.remote_folder import contents, remove_below
from fastprof.verbs.convert import converted, target_of
from fastprof.verbs.reads import Reads
from fastprof.verbs.reported import REPORTED

if TYPE_CHECKING:
    from fastprof.verbs.keywords import BatchMergeOptions

_PARTIAL = r"[0-9a-f]{32}(\.fpa|\.fpa\.json|\.token)"
_LOOKS = 64  # files whose views one job finds

FAN_IN = BatchOption(
    "fan_in",
    Whole(2, 4096),
    32,
    help="merge N files at a time (default: 32)",
    details="Merged results are merged again in groups of N.",
)
RUNNING = (ENGINE, JOBS, FAN_IN, RETRIES, TIMEOUT)
# Options applied when rows are read; they must not be applied to partials again.
_ONCE = {
    *(option for operator in SELECT.values() for option in operator.options),
    *RENAME.options,
    LABEL,
    *INPUT_LABELS,
    RENAME_VALUE,
    *TAG.options,
    *COMPUTE.options,
    NAMED,
    OF_OBJECT,
}

Progress = Callable[[int, int], None]  # partials done, total


def options() -> list[Option[Any]]:
    """The options of `fastprof batch merge`."""
    return [*FINDING, *RUNNING, *plan.known_options()]


def batch_merge(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    to: str | None = None,
    from_: str | None = None,
    progress: Progress | None = None,
    **given: Unpack[BatchMergeOptions],
) -> Log:
    """Write the sums of `inputs`, files and folders, to `output`, as `merge` does; by many workers with `jobs` or
    `engine`.

    `include`, `exclude`, `jobs`, `engine`, `fan_in`, `retries` and `timeout` are explained in docs/batch.md; the other
    options are those of docs/options.md.  `progress` is called with the number of partial sums that are done and that
    of all; by one process, of the only one.
    Errors: FastprofError and its kinds; then nothing is left at `output`.

    >>> import fastprof
    >>> fastprof.batch_merge("tests/corpus/gperftools/good", "all.folded", include=["s*.prof"]).rows
    Counter({'stacks_written': 30})
    """
    chosen = checked(given, options())
    refuse_uncallable(progress)
    log = Log()

    def failed(error: FastprofError) -> None:
        raise error

    paths = paths_of(inputs)
    found = Found(paths, chosen[INCLUDE], chosen[EXCLUDE], log.warn, failed, lenient=chosen[LENIENT])
    files = sorted(by_size(found), key=lambda file: file.path)
    Reads([file.path for file in files], chosen).refuse(os.fspath(output))
    own = {option.name for option in (*FINDING, *RUNNING)}
    reading = {name: value for name, value in chosen.given.items() if name not in own}
    output = os.fspath(output)
    if chosen[ENGINE] == LOCAL and (chosen[JOBS] or 1) == 1:
        for option in (FAN_IN, RETRIES, TIMEOUT):
            if option in chosen:
                raise usage_error(
                    "{option} has no effect without {--jobs} or {--engine:name}: one process reads everything",
                    option=spelled(option.flag),
                )
        report = progress or (lambda n_done, n: None)
        report(0, 1)
        log.take_all(converted([file.path for file in files], output, from_, to, None, reading, merge=True))
        report(1, 1)
        return log
    return _Tree(files, output, target_of(output, to), from_, reading, chosen, log, progress).merged()


class _Tree:
    def __init__(
        self,
        files: list[File],
        output: str,
        target: Format,
        from_: str | None,
        reading: dict[str, Any],
        chosen: Options,
        log: Log,
        progress: Progress | None,
    ) -> None:
        for option in (PER_THREAD, LABELS):
            if option in chosen:
                raise usage_error(
                    "{option} keeps separate what a merge tree adds up: use `fastprof merge`",
                    option=spelled(option.flag),
                )
        if live := next((file.path for file in files if is_taken_anew(file.path)), None):
            raise UsageError(
                f"{shown(live)}: each request takes another profile, and a merge tree reads its inputs twice: use "
                "`fastprof merge`"
            )
        if output == "-":
            raise UsageError("a merge tree needs a file as output: its partial merges are kept next to it")
        if is_url(output) and not has_listings(output + "/"):
            raise UsageError(
                f"{shown(output)}: a merge tree keeps its partial merges next to the output, and this server has no "
                "listings; use s3, gs or az"
            )
        self._output, self._target, self._from, self._log = output, target, from_, log
        self._chosen, self._progress = chosen, progress
        self._workers = chosen[JOBS] or workers_for(files, output)
        self._options = reading
        if target.holds.short_names:
            self._options = {"demangle": "short", **reading}  # for names made when a file is read
        self._folder = absolute(output) + ".partials"
        self._files = files
        self._idle: list[set[str]] = []
        self._of_files = set[str]()  # partials of the first level
        text = json.dumps([__version__, target.name, from_, self._options], sort_keys=True)
        self._key = blake2b(text.encode(), digest_size=8).hexdigest()

    def merged(self) -> Log:
        n = self._workers
        how: dict[str, Any] = {
            "retries": self._chosen[RETRIES],
            "timeout": self._chosen[TIMEOUT],
            "folder": self._folder,
            "warn": self._log.warn,
        }
        function = f"{merge_one.__module__}:{merge_one.__name__}"
        folder = None if is_url(self._folder) else WorkFolder(self._folder, _PARTIAL)
        is_done = False
        try:
            with begun(self._chosen[ENGINE], n, **how, function=function) as engine:
                level, jobs = self._jobs(self._views(engine, [file.path for file in self._files]))
                self._run(engine, jobs)
            log = self._last(level)
            is_done = True
        finally:
            if folder is not None:
                folder.close(keep=not is_done)
            elif is_done:
                with suppress(FastprofError):  # the output is complete
                    remove_below(self._folder + "/", _PARTIAL)
        return log

    def _jobs(self, views: list[str]) -> tuple[dict[str, list[tuple[str, str]]], list[Job]]:
        """The inputs of the last merge by kind, each with its proof, and the jobs that make them, inputs first."""
        view = self._target.view_for(views)
        if view == "timeline":
            raise UsageError("a merge tree does not merge timelines: use `fastprof merge`")
        level, labels_of = {}, keys_by_input("", self._chosen)
        for kind in (view, "stacks"):
            mine = [file for file, one in zip(self._files, views, strict=True) if _kind(one, view) == kind]
            # without a time, a partial may be of other contents of the same size
            times = [file.mtime_ns or os.urandom(8).hex() for file in mine]
            level[kind] = [
                (file.path, f"{file.path} {file.size} {t}{labels_of(file.path)}")
                for file, t in zip(mine, times, strict=True)
            ]
        if view == "graph" and level["stacks"]:
            self._refuse_parts_of_stacks()
        fan_in, jobs = self._chosen[FAN_IN], list[Job]()
        while not jobs or max(map(len, level.values())) > fan_in:
            first = not jobs
            for kind, members in level.items():
                groups = [members[i : i + fan_in] for i in range(0, len(members), fan_in)]
                made = [self._job(group, kind, kind == view, first) for group in groups]
                level[kind] = [(job["output"], job["key"]) for job in made]
                jobs += made
                if first:
                    self._of_files.update(job["output"] for job in made)
        return level, jobs

    def _last(self, level: dict[str, list[tuple[str, str]]]) -> Log:
        idle = self._not_given(first=False)
        log = converted(
            [path for members in level.values() for path, _ in members],
            self._output,
            None,
            self._target.name,
            None,
            self._once(first=False),
            merge=True,
            idle=lambda option: idle.add(option.flag),
        )
        for flag in sorted(idle.intersection(*self._idle)):
            log.warn(REPORTED["idle-options"], option=spelled(flag))
        self._log.take_all(log)
        return self._log

    def _refuse_parts_of_stacks(self) -> None:
        """Stacks become a graph in the last merge, which has samples with labels instead of the inputs."""
        for option in INPUT_LABELS if keeps_input_labels("graph", self._target.holds) else ():
            if option in self._chosen:
                raise usage_error(
                    "{option} makes parts of a graph, which a merge tree adds up for stacks: use `fastprof merge`",
                    option=spelled(option.flag),
                )

    def _views(self, engine: Any, paths: list[str], at_once: int = _LOOKS) -> list[str]:
        """The view of each file, found by workers.  Errors: FastprofError for the first file that cannot be read."""
        common = {"size": 0, "mtime_ns": 0, "key": "", "from": self._from, "options": self._options, "durable": False}
        groups = [paths[i : i + at_once] for i in range(0, len(paths), at_once)]
        jobs = [
            {"input": group[0], "inputs": group, "output": f"{self._folder}/{i}", "look": True, **common}
            for i, group in enumerate(groups)
        ]
        found = {record["input"]: record for record in engine.run(jobs)}
        views: list[str] = []
        for group, record in ((group, found[group[0]]) for group in groups):
            if record["status"] == CRASHED and len(group) > 1:
                views += self._views(engine, group, 1)  # to name the file that crashes the worker
                continue
            if "error" in record:
                raise FastprofError(message_of(record["error"]))
            views += record["views"]
        return views

    def _once(self, first: bool) -> dict[str, Any]:
        once = {option.name for option in _ONCE}
        return self._options if first else {k: v for k, v in self._options.items() if k not in once}

    def _not_given(self, first: bool) -> set[str]:
        """Flags of options of the first level only; merges of partials do not report them as unused."""
        return set() if first else {option.flag for option in _ONCE}

    def _job(self, group: list[tuple[str, str]], kind: str, last: bool, first: bool) -> Job:
        """The job for a group of files.  `last`: partials of this kind have the view of the target."""
        text = json.dumps([self._key, kind, [proof for _, proof in group]])
        key = blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return {
            "input": group[0][0],
            "inputs": [path for path, _ in group],
            "size": 0,
            "mtime_ns": 0,
            "output": os.path.join(self._folder, f"{key}.fpa"),
            "key": key,
            "from": self._from if first else None,
            "options": {CORES.name: cores_of_each(self._workers), **self._once(first)},
            "for": self._target.name if last else _any_view(),
            "view": kind,
            "durable": False,
        }

    def _run(self, engine: Any, jobs: list[Job]) -> None:
        """Run the jobs whose partials are missing, each once its inputs are there.  Errors: FastprofError for the
        first that fails."""
        todo = []
        n_done = 0
        for job in jobs:
            record = _earlier(job)
            if record and _is_whole(job["output"]):
                self._take(record)
                n_done += 1
            else:
                todo.append(job)
        if self._progress is not None:
            self._progress(n_done, len(jobs))
        ready = _Ready(todo)
        for record in engine.run(ready):
            self._take(record)
            ready.done(record["output"])
            n_done += 1
            if self._progress is not None:
                self._progress(n_done, len(jobs))

    def _take(self, record: Record) -> None:
        if "error" in record:
            raise FastprofError(message_of(record["error"]))
        self._idle.append({*record["idle"]} | self._not_given(record["output"] in self._of_files))
        self._log.take_data(record["log"])


class _Ready:
    """The jobs whose inputs are there, as an iterator that goes on when `done` has added some."""

    def __init__(self, jobs: list[Job]) -> None:
        made = {job["output"] for job in jobs}
        self._users: dict[str, Job] = {}  # by partial: the job that reads it
        self._n_missing: dict[str, int] = {}  # by output of a job: its inputs that are not there
        self._ready = deque[Job]()
        for job in jobs:
            missing = [path for path in job["inputs"] if path in made]
            self._users.update(dict.fromkeys(missing, job))
            self._n_missing[job["output"]] = len(missing)
            if not missing:
                self._ready.append(job)

    def done(self, output: str) -> None:
        user = self._users.get(output)
        if user is not None:
            self._n_missing[user["output"]] -= 1
            if not self._n_missing[user["output"]]:
                self._ready.append(user)

    def __iter__(self) -> _Ready:
        return self

    def __next__(self) -> Job:
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()


def _earlier(job: Job) -> Record | None:
    """The record of a partial that an earlier run has left."""
    try:
        found: Record = json.loads(contents(_record_of(job)))
    except (OSError, ValueError, RecursionError, FastprofError):
        return None
    return found


def _any_view() -> str:
    """The format that keeps rows of any view unchanged."""
    return next(f.name for f in formats.formats() if f.view == "any")


def _kind(view: str, target: str) -> str:
    return "stacks" if view == "stacks" else target


def _is_whole(partial: str) -> bool:
    """Whether a partial is complete: partials are not synchronized to disk, so after a power failure one may lack bytes
    despite its record."""
    try:
        return not verify(partial)
    except FastprofError:
        return False


def _record_of(job: Job) -> str:
    return str(job["output"]) + ".json"


def merge_one(job: Job) -> Record:
    """Merge some files into a partial, or find their views; returns the record.  Never raises an Exception."""
    began = time.process_time()
    try:
        if job.get("look"):
            return _record(job, {"status": OK, "views": _views_of(job), "files": []}, began)
        idle: list[str] = []
        log = converted(
            job["inputs"],
            job["output"],
            job["from"],
            _any_view(),
            None,
            job["options"],
            merge=True,
            durable=job["durable"],
            idle=lambda option: idle.append(option.flag),
            of=(job["view"], _holds(formats.get(job["for"]))),
        )
        record = _record(job, {"status": OK, "idle": idle, "log": log.data()}, began)
        with Sink(_record_of(job), durable=False) as sink:
            sink.write(json.dumps(record).encode())
            sink.commit()
        return record
    except Exception as error:
        return _record(job, {"status": ERROR, "error": of_error(job["input"], error)}, began)


def _views_of(job: Job) -> list[str]:
    options, views = checked(job["options"], plan.known_options()), []
    ahead = Prefetch([path for path in job["inputs"] if is_object(path)])
    try:
        for path in job["inputs"]:
            reader = open_reader(path, job["from"], Model(), options, Log(), ahead=ahead)
            with reader.source:
                views.append(reader.view)
    finally:
        ahead.close()
    return views


def _record(job: Job, found: dict[str, Any], began: float) -> Record:
    return {**identity(job), **found, "cpu_seconds": round(time.process_time() - began, 6), "try": 1}


def _holds(target: Format) -> Capabilities:
    """What a partial holds: everything that the target needs, and all value types, because the one to keep is known
    only at the end."""
    return target.holds._replace(values=True, keeps_stacks=True, model_order=True)
