"""Add many files to a store, several at a time.

Workers compress profiles as pieces (store/pieces.py); this process locks the store and appends them.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from fastprof.core._typing import TYPE_CHECKING, Any, Unpack
from fastprof.core.errors import FastprofError, raise_as
from fastprof.core.log import Log
from fastprof.core.made_folders import WorkFolder
from fastprof.core.options import CORES, Option, Options, checked
from fastprof.core.urls import is_url
from fastprof.inputs import refuse_uncallable
from fastprof.store.adding import Adding, adding
from fastprof.store.listing import names
from fastprof.store.pieces import adding_options, write_piece
from fastprof.verbs.batch.convert import (
    DRY_RUN,
    FINDING,
    JOBS,
    PLAN,
    RETRIES,
    RETRY_ERRORS,
    RUNNING,
    SHARD,
    TIMEOUT,
    BatchLog,
    Progress,
    chosen_files,
    cores_of_each,
    is_same,
    paths_of,
    reading_options,
    run_of,
    workers_for,
)
from fastprof.verbs.batch.engines import ENGINE
from fastprof.verbs.batch.files import File, Jobs, by_size, refreshed, refuse_same_names
from fastprof.verbs.batch.jobs import (
    LOSSY,
    OK,
    Idle,
    Job,
    Record,
    failed,
    is_of_the_file,
    keys_by_input,
    options_key,
    record_of,
)
from fastprof.verbs.batch.manifest import Manifest, manifest_of, records_by_output
from fastprof.verbs.batch.pool import Pool
from fastprof.verbs.batch.remote_store import local_copy
from fastprof.verbs.batch.shards import FileList
from fastprof.verbs.output_collisions import is_at

if TYPE_CHECKING:
    from fastprof.verbs.keywords import BatchArchiveOptions

_PIECE = r"[0-9]+\.fpa"
_SECONDS, _PROFILES = 1.0, 256  # limits after which appended profiles become part of the store


def options() -> list[Option[Any]]:
    """The options of `fastprof batch archive`.  A single process writes the store: no shards, no other engine."""
    return [*FINDING, *(option for option in RUNNING if option not in (ENGINE, SHARD)), *adding_options()]


def archive_one(job: Job) -> Record:
    """Make the piece of one file; returns its record.  Never raises an Exception, whatever the file is."""

    def write(idle: Idle) -> Log:
        place = job["path"], job["base"], job["input"], job["name"]
        return write_piece(*place, from_=job["from"], idle=idle, **job["options"])

    return record_of(job, write)


def batch_archive(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    store: str | os.PathLike[str],
    *,
    from_: str | None = None,
    progress: Progress | None = None,
    **given: Unpack[BatchArchiveOptions],
) -> BatchLog:
    """Add each file of `inputs`, files and folders, to a store, several at a time.

    A file that cannot be added does not stop the others: it is in the log's `failed`.  Files added by
    an earlier call are skipped, unless the file or the options have changed; then they are replaced.
    A name taken in the store is an error of that file.  Options and `progress` as in `batch_convert`.
    Errors: FastprofError and its kinds, if the batch as a whole cannot be done.

    >>> import fastprof
    >>> fastprof.batch_archive("tests/corpus/gperftools/good", "night.fpa", include=["s*.prof"], jobs=1)
    BatchLog(files=4, earlier=0, ok=4)
    >>> fastprof.batch_archive("tests/corpus/gperftools/good", "night.fpa", include=["s*.prof"], jobs=1)
    BatchLog(files=4, earlier=4, ok=4)
    """
    chosen = checked(given, options())
    refuse_uncallable(progress)
    store = os.fspath(store)
    log = BatchLog()
    if not is_url(store):
        _add(log, inputs, (store, store), from_, progress, chosen)
        return log
    with local_copy(store, upload=not chosen[DRY_RUN]) as copy:
        _add(log, inputs, (copy, store), from_, progress, chosen)
    return log


def _add(
    log: BatchLog,
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    place: tuple[str, str],
    from_: str | None,
    progress: Progress | None,
    chosen: Options,
) -> None:
    """Add files to a store.  `place`: its path, and what it is a copy of, or the same."""
    store, of = place
    found = chosen_files(paths_of(inputs), chosen, log)
    files = [*found] if isinstance(found, FileList) else by_size(found)
    files = [
        file
        for file in (refreshed(files) if chosen[PLAN] else files)
        if file.path != of and not is_at(file.path, store)
    ]
    refuse_same_names(files)
    log.files += len(files)
    reading = reading_options(chosen)
    workers = chosen[JOBS] or workers_for(files)
    key = options_key("", from_, {name: value for name, value in reading.items() if name != CORES.name})
    common = {"from": from_, "options": {CORES.name: cores_of_each(workers), **reading}}
    key_of = keys_by_input(key, chosen)

    def job_of(file: File) -> Job:
        return _job(file, store, {**common, "key": key_of(file.path)})

    def left(there: Callable[[str], bool]) -> Jobs:
        return Jobs([file for file in files if not _is_done(job_of(file), before, there, chosen, log)], job_of)

    before = records_by_output(manifest_of(store))
    if chosen[DRY_RUN]:
        there = {*names(store)} if os.path.exists(store) else set()
        log.todo = left(there.__contains__)
        return
    with adding(store) as session:
        log.todo = todo = left(session.__contains__)
        with Manifest(*os.path.split(store), run_of(log)) as manifest, _Filling(session, manifest, place) as filling:
            if progress is not None:
                progress(log, None)
            for record in filling.run(todo, before, chosen, workers):
                log.add(record)
                if progress is not None:
                    progress(log, record)
    log.idle_flags = filling.idle()


class _Filling:
    """The store that pieces are appended to."""

    def __init__(self, session: Adding, manifest: Manifest, place: tuple[str, str]) -> None:
        self._session, self._manifest, self._store = session, manifest, place[1]
        folder, name = os.path.split(place[0])
        self._pieces = os.path.join(os.path.abspath(folder), f".{name}.pieces")
        self._folder: WorkFolder
        self._jobs: dict[str, Job] = {}  # unfinished, by output
        self._waiting: list[Record] = []  # of profiles appended but not part of the store yet
        self._committed = time.monotonic()
        self._idle: Counter[str] = Counter()
        self._n_done = 0

    def __enter__(self) -> _Filling:
        self._folder = WorkFolder(self._pieces, _PIECE)
        try:
            self._folder.empty()  # of pieces for a store as it was
        except BaseException as error:  # __exit__ is not called yet
            self._folder.close()
            if isinstance(error, OSError):
                raise_as(self._pieces, error)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._commit()
        finally:
            self._folder.close()

    def run(self, todo: Jobs, before: dict[str, Record], chosen: Options, workers: int) -> Iterator[Record]:
        """The record of each job as it is done."""
        free = []
        for file, job in zip(todo.files, todo, strict=True):
            if self._is_free(job, before):
                free.append(file)
            else:
                why = f"{job['input']}: {self._store} already has a profile {job['name']!r} from another file"
                yield self._noted(failed(job, why))
        with Pool(
            workers,
            retries=chosen[RETRIES],
            timeout=chosen[TIMEOUT],
            function=f"{archive_one.__module__}:{archive_one.__name__}",
        ) as pool:
            for record in pool.run(map(self._given, Jobs(free, todo.job_of), count())):
                yield self._noted(self._appended(record))

    def _is_free(self, job: Job, before: dict[str, Record]) -> bool:
        """Whether the name is free in the store, or a batch added it from this file."""
        name, record = job["name"], before.get(job["output"], {})
        if name not in self._session or record.get("status") in (OK, LOSSY) or record.get("kept"):
            return True
        # a batch may have been killed between adding and recording it
        return self._session.is_of(name, job["size"], job["mtime_ns"])

    def _given(self, job: Job, number: int) -> Job:
        """A job with everything that a worker needs, including the current bases."""
        given = {**job, "base": self._session.base(), "path": os.path.join(self._pieces, f"{number}.fpa")}
        self._jobs[job["output"]] = given
        return given

    def _appended(self, record: Record) -> Record:
        job = self._jobs.pop(record["output"])
        kept = {"kept": True} if job["name"] in self._session else {}
        if record["status"] not in (OK, LOSSY):
            return record | kept
        try:
            self._session.add_piece(job["path"], replace=True)
            self._folder.remove(os.path.basename(job["path"]))
        except (FastprofError, OSError) as error:
            return {**failed(job, f"{job['input']}: {error}"), "try": record["try"], **kept}
        self._n_done += 1
        self._idle.update(record.get("idle", ()))
        return record

    def _noted(self, record: Record) -> Record:
        self._waiting.append({**record, "time": round(time.time(), 3)})
        if len(self._waiting) >= _PROFILES or time.monotonic() >= self._committed + _SECONDS:
            self._commit()
        return record

    def _commit(self) -> None:
        waiting, self._waiting = self._waiting, []  # not recorded if the commit fails
        self._session.commit()
        for record in waiting:
            self._manifest.add(record)
        self._committed = time.monotonic()

    def idle(self) -> list[str]:
        """The flags of options without an effect on any file."""
        return [flag for flag, n in self._idle.items() if n == self._n_done]


def _job(file: File, store: str, common: dict[str, Any]) -> Job:
    return {
        "input": file.path,
        "size": file.size,
        "mtime_ns": file.mtime_ns,
        "output": f"{os.path.basename(store)}:{file.name}",
        "name": file.name,
        **common,
    }


def _is_done(job: Job, before: dict[str, Record], there: Callable[[str], bool], chosen: Options, log: BatchLog) -> bool:
    """Whether this file is done already; if so, the log counts it."""
    record = before.get(job["output"])
    if not record or not is_same(job, record):
        return False
    if record["status"] in (OK, LOSSY) and there(job["name"]):
        pass
    elif not is_of_the_file(record) or chosen[RETRY_ERRORS]:
        return False
    log.earlier += 1
    log.take(record)
    return True
