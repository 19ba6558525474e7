"""Convert many files, each to its own output."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from fastprof import plan
from fastprof.core._typing import TYPE_CHECKING, Any, Unpack
from fastprof.core.engine import Format
from fastprof.core.errors import FastprofError, UsageError, usage_error
from fastprof.core.log import Log
from fastprof.core.messages import spelled
from fastprof.core.options import (
    CORES,
    LENIENT,
    FilePath,
    Option,
    Options,
    Text,
    Whole,
    available,
    checked,
)
from fastprof.core.urls import is_url, shown
from fastprof.inputs import refuse_uncallable
from fastprof.inputs.made import MadeBytes
from fastprof.inputs.stored import Given
from fastprof.verbs.batch.engines import ENGINE, begun
from fastprof.verbs.batch.files import (
    File,
    Found,
    Jobs,
    by_size,
    refreshed,
    with_good_names,
    without_collisions,
)
from fastprof.verbs.batch.hashes import Hashes
from fastprof.verbs.batch.jobs import (
    CRASHED,
    ERROR,
    LOSSY,
    OK,
    Job,
    Record,
    error_fields,
    is_of_the_file,
    keys_by_input,
    message_of,
    options_key,
    outputs_of,
)
from fastprof.verbs.batch.kinds import BatchOption, Seconds, Shard
from fastprof.verbs.batch.manifest import (
    Manifest,
    manifests,
    manifests_for,
    records_by_output,
    refuse_other_shards,
)
from fastprof.verbs.batch.remote_folder import FOLDER, folder_of, readable, sizes
from fastprof.verbs.batch.shards import FileList, of_shard, write_plan
from fastprof.verbs.convert import target_of
from fastprof.verbs.reads import Reads
from fastprof.verbs.run import listed

if TYPE_CHECKING:
    from fastprof.verbs.batch.partition import Partition
    from fastprof.verbs.keywords import BatchConvertOptions, BatchPlanOptions

INCLUDE: Option[tuple[str, ...]] = Option(
    "include",
    Text("GLOB"),
    (),
    several=True,
    group="input",
    help="read only files whose name matches; repeatable",
    details="A GLOB that contains a / is matched against the path.",
)
EXCLUDE: Option[tuple[str, ...]] = Option(
    "exclude",
    Text("GLOB"),
    (),
    several=True,
    group="input",
    help="skip files whose name matches; repeatable",
    details="A GLOB that contains a / is matched against the path.",
)
PLAN: Option[str | None] = Option(
    "plan",
    FilePath("PLAN"),
    None,
    group="input",
    help="read the list of files from PLAN instead of INPUT",
    details="PLAN is written by `fastprof batch plan`.",
)
SHARD: Option[tuple[int, int] | None] = BatchOption(
    "shard",
    Shard(),
    None,
    help="process shard I of N",
    details="Divides a batch among N processes or machines.",
)
JOBS: Option[int | None] = BatchOption(
    "jobs", Whole(1, 4096), None, short="-j", help="use N worker processes (default: one per core)"
)
RETRIES = BatchOption("retries", Whole(0, 1000), 1, help="retry a file N times after a crash (default: 1)")
TIMEOUT: Option[float] = BatchOption(
    "timeout", Seconds(), 3600.0, help="give up on a file after S seconds (default: 3600)"
)
RETRY_ERRORS = BatchOption.switch(
    "retry_errors",
    help="retry files that failed in the last run",
)
DRY_RUN = BatchOption.switch("dry_run", help="print what would be converted, and stop")
PARTITION: Option[str | None] = BatchOption(
    "partition",
    Text("KEY,..."),
    None,
    help="parquet: one folder for each value of these labels",
    details="OUTDIR becomes a dataset in Hive's layout, KEY=VALUE/NAME.parquet.  The labels are those of inputs: "
    "--label-path and others.",
)
APPEND = BatchOption.switch(
    "append",
    help="add to a dataset that has files of other inputs",
    details="Without it --partition refuses such a folder.",
    rare=True,
)
FINDING = (INCLUDE, EXCLUDE)
_SERVED = 16  # requests at a time
RUNNING = (PLAN, SHARD, ENGINE, JOBS, RETRIES, TIMEOUT, RETRY_ERRORS, DRY_RUN)


def options() -> list[Option[Any]]:
    """The options of `fastprof batch convert`."""
    return [*FINDING, *RUNNING, PARTITION, APPEND, *plan.known_options()]


class BatchLog:
    """The result of a batch.

    `statuses` counts all files by status, `earlier` how many of them were done before; `failed` has the records of
    those without an output, `idle` the options without an effect on any file.  The figures in bytes and
    seconds are those of this run.
    """

    def __init__(self) -> None:
        self.files = 0
        self.earlier = 0
        self.statuses: Counter[str] = Counter()
        self.failed: list[Record] = []
        self._warned = Log()
        self.warn = self._warned.warn
        self.n_warnings = 0  # of files; the manifest has them
        self.idle_flags: list[str] = []
        self.todo = Jobs((), File._asdict)
        self.bytes_read = 0
        self.bytes_written = 0
        self.cpu_seconds = 0.0

    def __repr__(self) -> str:
        counts = "".join(f", {status}={n}" for status, n in self.statuses.items())
        return f"BatchLog(files={self.files}, earlier={self.earlier}{counts})"

    @property
    def errors(self) -> int:
        """The number of files without an output."""
        return self.statuses[ERROR] + self.statuses[CRASHED]

    @property
    def idle(self) -> list[str]:
        return [spelled(flag).text() for flag in self.idle_flags]

    @property
    def warnings(self) -> list[str]:
        return self._warned.warnings

    def warned(self, *, flags: bool = False) -> list[dict[str, str]]:
        """For JSON: code and text of each warning."""
        return self._warned.warned(flags=flags)

    def as_dict(self, *, flags: bool = False) -> dict[str, Any]:
        """For JSON."""
        failed = [
            {**record, "error": {**record["error"], "message": message_of(record["error"]).text(flags=flags)}}
            for record in self.failed
        ]
        return {
            "files": self.files,
            "earlier": self.earlier,
            **{name: self.statuses[name] for name in (OK, LOSSY, ERROR, CRASHED)},
            "failed": failed,
            "warnings": self.warned(flags=flags),
            "warnings_of_files": self.n_warnings,
            "idle": [spelled(flag).text(flags=flags) for flag in self.idle_flags],
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "cpu_seconds": round(self.cpu_seconds, 3),
        }

    def take(self, record: Record) -> None:
        """Count a file."""
        self.statuses[record["status"]] += 1
        self.n_warnings += len(record.get("warnings", ()))
        if record["status"] in (ERROR, CRASHED):
            self.failed.append(record)

    def add(self, record: Record) -> None:
        """Count a file done in this run."""
        self.take(record)
        self.bytes_read += record["size"]
        self.bytes_written += record.get("bytes", 0)
        self.cpu_seconds += record.get("cpu_seconds", 0)


Progress = Callable[[BatchLog, Record | None], None]


def batch_convert(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    outdir: str | os.PathLike[str],
    *,
    to: str,
    from_: str | None = None,
    progress: Progress | None = None,
    **given: Unpack[BatchConvertOptions],
) -> BatchLog:
    """Convert each file of `inputs`, files and folders, to its own output in `outdir`, several at a time.

    A file that cannot be converted does not stop the others: it is in the log's `failed`.  Files done by
    an earlier call are skipped, unless the file, its output or the options have changed.  `jobs`, `include`, `exclude`,
    `plan`, `shard`, `retries`, `timeout`, `retry_errors` and `dry_run` are explained in docs/batch.md; the other
    options are those of docs/options.md.  `progress` is called before the first file, with None, and after each.
    Errors: FastprofError and its kinds, if the batch as a whole cannot be done.

    >>> import fastprof
    >>> fastprof.batch_convert("tests/corpus/gperftools/good", "out", to="folded", include=["s*.prof"], jobs=1)
    BatchLog(files=4, earlier=0, ok=4)
    """
    chosen = checked(given, options())
    refuse_uncallable(progress)
    outdir = folder_of(os.fspath(outdir))
    target = target_of("", to)
    suffix = target.suffixes[0]
    shard, log = chosen[SHARD] or (1, 1), BatchLog()
    paths = paths_of(inputs)
    partition = _partition(chosen, target)
    _refuse_within(paths, outdir)
    with readable(outdir) as there:
        refuse_other_shards(outdir, manifests(there), shard)
        files, plan_digest, known = _files_of(shard, paths, outdir, target, chosen, log)
        files = partition.placed(files, log.warn) if partition else files
        written = manifests_for(there, shard, plan_digest)
        outputs = {file.name + suffix for file in files} if written else set[str]()
        before = records_by_output(written, None if target.holds.table else outputs)
    workers = chosen[JOBS] or workers_for(files, outdir)
    common = _common(to, from_, reading_options(chosen), workers, partition.keys if partition else [])
    size_of, key_of = _size_in(outdir, before), keys_by_input(common["key"], chosen)
    if target.holds.table and before:
        from fastprof.verbs.batch.dataset import Dataset  # loaded for tables only

        dataset = Dataset(outdir, partition.keys if partition else None, before, size_of, suffix)
        dataset.refuse_moved(outputs, files)
        dataset.refuse_others(known.missing, paths, append=chosen[APPEND])

    def job_of(file: File) -> Job:
        return _job(file, os.path.join(outdir, file.name + suffix), common, key_of(file.path))

    files = refreshed(files) if chosen[PLAN] else files
    earlier = ((file, before.get(file.name + suffix)) for file in files)
    log.todo = _left(earlier, job_of, partial(_is_done, size_of=size_of, retry_errors=chosen[RETRY_ERRORS]), log)
    log.files += len(files)
    if not chosen[DRY_RUN]:
        run = run_of(log) | ({"plan": plan_digest} if plan_digest else {})
        _run(log, chosen, outdir, (f"{shard[0]}-of-{shard[1]}", run), workers, progress)
        if partition:
            log.idle_flags = [flag for flag in log.idle_flags if flag not in partition.flags]
    return log


def _left(
    earlier: Iterable[tuple[File, Record | None]],
    job_of: Callable[[File], Job],
    is_done: Callable[[Job, Record], bool],
    log: BatchLog,
) -> Jobs:
    """The jobs that are left, of files and their records; the log counts the others."""
    todo = []
    for file, record in earlier:
        if record and is_done(job_of(file), record):
            log.earlier += 1
            log.take(record)
        else:
            todo.append(file)
    return Jobs(todo, job_of)


def _common(to: str, from_: str | None, reading: dict[str, Any], workers: int, columns: list[str]) -> dict[str, Any]:
    """What all jobs have in common.  `columns`: those that the paths of the outputs give."""
    for_key = {name: value for name, value in reading.items() if name != CORES.name}
    key = options_key(to, from_, for_key | ({PARTITION.name: columns} if columns else {}))
    options = {CORES.name: cores_of_each(workers), **reading}
    found = {"to": to, "from": from_, "options": options, "key": key, "durable": False}
    return found | ({"columns": columns} if columns else {})


def _job(file: File, output: str, common: Mapping[str, Any], key: str) -> Job:
    return {"input": file.path, "size": file.size, "mtime_ns": file.mtime_ns, "output": output, **common, "key": key}


def _partition(chosen: Options, target: Format) -> Partition | None:
    keys = chosen[PARTITION]
    if keys is None:
        if chosen[APPEND]:
            raise usage_error("{--append} adds to a dataset: it needs {--partition}")
        return None
    from fastprof.verbs.batch.partition import Partition  # loaded for datasets only

    return Partition(keys, target, chosen)


def _files_of(
    shard: tuple[int, int], paths: list[str], outdir: str, target: Format, chosen: Options, log: BatchLog
) -> tuple[list[File], str, Hashes]:
    """The files of a shard, the digest of the plan, and, for a table, hashes of the paths of all shards."""
    found, known = chosen_files(paths, chosen, log), Hashes()
    every = without_collisions(found, outdir, target.suffixes[0])
    if target.holds.table:
        every = _remembered(every, known)
    if isinstance(found, FileList):
        return of_shard(every, shard, frozen=True), found.digest, known
    return by_size(of_shard(with_good_names(every), shard, frozen=False)), "", known


def _remembered(files: Iterable[File], paths: Hashes) -> Iterator[File]:
    for file in files:
        paths.add(hash(file.path))
        yield file


def paths_of(inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The paths as text; of a Profile that was opened, without steps, its own.  Errors: UsageError for others."""
    paths = listed(inputs)
    for path in paths:
        if not isinstance(path, str):
            what = "a profile in memory, or with steps" if isinstance(path, (Given, MadeBytes)) else f"{path!r:.80}"
            raise UsageError(
                f"a batch takes paths, which other processes read, and this is {what}; `fastprof.convert`, "
                "`fastprof.merge` and `fastprof.archive_add` take it"
            )
    return paths


def _refuse_within(paths: list[str], outdir: str) -> None:
    inside = outdir if is_url(outdir) else os.path.join(os.path.realpath(outdir), "")
    for given in paths:
        if is_url(outdir):
            folder = given if given.endswith("/") else None
        else:
            folder = os.path.join(os.path.realpath(given), "") if os.path.isdir(given) else None
        if folder is not None and inside.startswith(folder):
            raise UsageError(
                f"{shown(outdir)}: is inside the input {shown(given)}: outputs would be inputs of the next run"
            )


def chosen_files(paths: list[str], chosen: Options, log: BatchLog) -> Found | FileList:
    """The files of inputs, or of a plan, which are found or read later.

    Errors: UsageError, later also if there are no files; unreadable inputs are reported.
    """
    path = chosen[PLAN]
    if path is None:
        return _found(paths, chosen, log)
    for option in FINDING:
        if option in chosen:
            raise usage_error(
                "{option} is for `fastprof batch plan`: {path} already lists the files",
                option=spelled(option.flag),
                path=shown(path),
            )
    if paths:
        raise usage_error(
            "{given}: not allowed, {--plan:=}{path} lists all inputs", given=shown(paths[0]), path=shown(path)
        )
    return FileList(path)


def _found(paths: list[str], chosen: Options, log: BatchLog) -> Found:
    def failed(error: FastprofError) -> None:
        log.files += 1
        log.take({"status": ERROR, "error": error_fields(error.message())})

    return Found(paths, chosen[INCLUDE], chosen[EXCLUDE], log.warn, failed, lenient=chosen[LENIENT])


def batch_plan(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    **given: Unpack[BatchPlanOptions],
) -> BatchLog:
    """Write a plan for `plan` and `shard` of `batch_convert`: the files of `inputs`, the largest first.

    `include` and `exclude` are those of `batch_convert`.  `progress` is accepted, but never called: no file is opened.
    Errors: FastprofError and its kinds.

    >>> import fastprof
    >>> fastprof.batch_plan("tests/corpus/gperftools/good", "dumps.plan", include=["s*.prof"]).files
    4
    >>> [fastprof.batch_convert([], "out", to="pprof", plan="dumps.plan", shard=(i, 2)).files for i in (1, 2)]
    [2, 2]
    """
    chosen = checked(given, FINDING)
    refuse_uncallable(progress)
    log = BatchLog()
    output, found = os.fspath(output), _found(paths_of(inputs), chosen, log)
    Reads(file.path for file in found).refuse(output)
    n, log.bytes_read = write_plan(output, found)
    log.files += n
    return log


def reading_options(chosen: Options) -> dict[str, Any]:
    """The options for reading and writing each file."""
    own = {option.name for option in (*FINDING, *RUNNING, PARTITION, APPEND)}
    return {name: value for name, value in chosen.given.items() if name not in own}


def is_same(job: Job, record: Record) -> bool:
    """Whether a record matches the current file and the same request.  Not if the time of the file is unknown: then
    other contents may have the same size."""
    return job["mtime_ns"] != 0 and all(job[name] == record.get(name) for name in ("input", "size", "mtime_ns", "key"))


def _size_in(outdir: str, before: Mapping[str, Record]) -> Callable[[str], int]:
    """A function for the sizes of outputs by name.  It raises LookupError or OSError for one that is missing."""
    if is_url(outdir):
        wanted = set[str]()
        for record in before.values():
            with suppress(LookupError, TypeError):  # of another program: `_is_done` has it made again
                wanted.update(outputs_of(record))
        return (sizes(outdir, wanted) if wanted else {}).__getitem__
    return lambda output: os.path.getsize(os.path.join(outdir, output))


def _is_done(job: Job, record: Record, size_of: Callable[[str], int], retry_errors: bool) -> bool:
    """Whether this file is done."""
    if not is_same(job, record):
        return False
    if record["status"] not in (OK, LOSSY):
        return is_of_the_file(record) and not retry_errors
    try:
        outputs = record.get("files") or [record]
        return all(size_of(one["output"]) == one["bytes"] for one in outputs)
    except (OSError, LookupError, TypeError, ValueError):  # the file is gone, or the record is of another program
        return False


def workers_for(files: Iterable[File], output: str = "") -> int:
    """The default number of worker processes.  More than cores wait for servers side by side."""
    waits = is_url(output) or any(is_url(file.path) for file in files)
    return min(4 * available(), _SERVED) if waits else available()


def cores_of_each(workers: int) -> int:
    """The number of threads for each of several processes, for --cores."""
    return max(1, available() // workers)


def _run(
    log: BatchLog,
    chosen: Options,
    outdir: str,
    run: tuple[str, dict[str, Any]],
    workers: int,
    progress: Progress | None,
) -> None:
    idle: Counter[str] = Counter()
    n_done = 0
    with (
        # the engine first: if it fails, nothing was changed
        begun(
            chosen[ENGINE],
            workers,
            retries=chosen[RETRIES],
            timeout=chosen[TIMEOUT],
            folder=os.path.join(outdir, FOLDER),
            warn=log.warn,
        ) as engine,
        Manifest(outdir, *run) as manifest,
    ):
        if progress is not None:
            progress(log, None)
        for record in engine.run(log.todo):
            log.add(record)
            n_done += record["status"] in (OK, LOSSY)
            idle.update(record.get("idle", ()))
            manifest.add(_within(outdir, record))
            if progress is not None:
                progress(log, record)
    log.idle_flags = [flag for flag, n_idle in idle.items() if n_idle == n_done]


def run_of(log: BatchLog) -> dict[str, Any]:
    """The manifest's entry of a run, before the first file."""
    run = {"files": log.files, "earlier": log.earlier, "todo": len(log.todo), "began": round(time.time(), 3)}
    unread = [record["error"]["message"] for record in log.failed if "input" not in record]
    return {**run, "unread": unread} if unread else run


def _within(outdir: str, record: Record) -> Record:
    """A record for the manifest: outputs are relative to `outdir`, which may be moved."""
    within = os.path.join(outdir, "")

    def moved(one: dict[str, Any]) -> dict[str, Any]:
        return {**one, "output": one["output"].removeprefix(within)}

    record = {**moved(record), "time": round(time.time(), 3)}
    if "files" in record:
        record["files"] = [*map(moved, record["files"])]
    return record
