"""Runs the jobs of a batch: in processes of this machine, or by Dask on many.

An engine has `run(jobs)`, which yields the record of each job as it is done, and is a context manager.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from types import TracebackType

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.log import Warn
from fastprof.core.options import Option, Text
from fastprof.core.urls import is_url
from fastprof.core.words import Message, install
from fastprof.verbs.batch.files import state
from fastprof.verbs.batch.jobs import CONVERT, CRASHED, ERROR, Job, Record, crashed, failed, is_of_the_file, outputs_of
from fastprof.verbs.batch.pool import Pool
from fastprof.verbs.batch.proof import Proof, absolute, proof_of, seen, why_unproven
from fastprof.verbs.reported import REPORTED

LOCAL = "local"
_TOGETHER = 50  # minimum jobs per task: jobs of a task share cached symbols
_TRIES = 2  # number of workers that try a file before this machine does
_SECONDS_TO_CONNECT = 30
_SAME_TIME_NS = 10**9  # file systems round times
_SECONDS_TO_SEE = 10.0  # timeout for an output of a worker to become visible


class Engine(Text):
    """local, dask or dask://HOST:PORT."""

    def check(self, value: Any) -> Any:
        value = super().check(value)
        if value not in (LOCAL, "dask") and not re.fullmatch(r"dask://.+:[0-9]+", value):
            raise ValueError(f"{value!r:.80} is not an engine, expected local, dask or dask://HOST:PORT")
        return value


ENGINE = Option(
    "engine",
    Engine("ENGINE"),
    LOCAL,
    group="batch",
    help="run on local (default), dask or dask://HOST:PORT",
    details="`local`: worker processes on this machine.  `dask`: the scheduler that Dask is configured for, or a new "
    "local one.  dask://HOST:PORT: that scheduler.",
)


def begun(
    engine: str,
    n: int,
    *,
    retries: int,
    timeout: float,
    folder: str,
    warn: Warn,
    function: str = CONVERT,
) -> Pool | Dask:
    """The engine.  `n`: number of processes on this machine; see `Pool` and `Dask` for the other arguments."""
    how: dict[str, Any] = {"retries": retries, "timeout": timeout, "function": function}
    return Pool(n, **how) if engine == LOCAL else Dask(engine, n, folder, warn, **how)


class Dask:
    """Runs jobs as tasks of Dask.  Within a task, a pool worker runs them, because a file may crash its process, and
    Dask would give up the whole task.  A task whose Dask worker is lost goes to another one.

    A worker first proves that it sees the same files (proof.py), for which this process writes a token into `folder`;
    without proof it is not used, and its tasks go to others.  Each output is checked from here.  A job whose output is
    not visible here, or that failed for a reason other than the bytes of its file, goes to another worker, and finally
    to a process of this machine, whose result stands.  `warn` gets one message for each worker with such a fault.
    """

    def __init__(self, engine: str, n: int, folder: str, warn: Warn, **how: Any) -> None:
        try:
            distributed: Any = import_module("distributed")
        except ImportError:
            raise UsageError(
                Message("{--engine:=}{engine} needs Dask: {install}", engine=engine, install=install("dask"))
            ) from None
        self._folder, self._warn = folder, warn
        self._how = how  # the keywords of Pool
        self._together = _TOGETHER if how["function"] == CONVERT else 1
        self._left_out: dict[str, str] = {}  # workers, and why
        self._failing = set[str]()  # workers with a rejected output or error
        self._tried: dict[str, set[str]] = {}  # by output: the workers that tried it
        self._cluster: Any = None
        address = (
            engine.replace("dask://", "tcp://") if "://" in engine else distributed.config.get("scheduler-address")
        )
        if address is None:
            quiet = {"dashboard_address": None, "silence_logs": "CRITICAL"}
            self._cluster = distributed.LocalCluster(n_workers=n, host="127.0.0.1", threads_per_worker=1, **quiet)
        try:
            self._client = distributed.Client(
                address or self._cluster, timeout=_SECONDS_TO_CONNECT, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise FastprofError(
                Message("{--engine:=}{engine}: no Dask scheduler answers: {error}", engine=engine, error=str(error))
            ) from None

    def run(self, jobs: Iterable[Job]) -> Iterator[Record]:
        """Like `Pool.run`, but each output is synchronized by its worker: this machine cannot do it for others.
        Errors: FastprofError if Dask fails, or if no worker sees the files."""
        distributed: Any = import_module("distributed")
        waiting = [{**job, "durable": True, "output": absolute(job["output"])} for job in jobs]
        n = max(1, len(waiting) // self._together)
        here: list[Job] = []  # jobs for this machine
        with proof_of(waiting, self._folder) as proof:
            done = distributed.as_completed([], loop=self._client.loop)
            tasks: dict[Any, list[Job]] = {}

            def submit(task: list[Job], workers: list[str] | None) -> None:
                # only a preference: Dask must not wait for these workers if all are lost
                on = {"workers": workers, "allow_other_workers": True} if workers else {}
                future = self._client.submit(work, task, self._how, proof, pure=False, **on)
                tasks[future] = task
                done.add(future)

            # the largest come first, so each task gets some of them
            for task in [waiting[i::n] for i in range(n)] if waiting else []:
                submit(task, None)
            for future in done:
                task = tasks.pop(future)
                try:
                    result = future.result()
                except distributed.KilledWorker:
                    for job in task:
                        yield crashed(job, "the Dask workers that read it were lost", 1)
                    continue
                except Exception as error:
                    raise FastprofError(f"Dask: {type(error).__name__}: {error}") from None
                records = self._accepted(result)
                yield from records.values()
                left = [job for job in task if job["output"] not in records]
                for workers, again in self._elsewhere(left):
                    if workers:
                        submit(again, workers)
                    else:
                        here += again
        with Pool(1, **self._how) as pool:
            yield from pool.run(here)

    def _accepted(self, result: dict[str, Any]) -> dict[str, Record]:
        """The records of a task that are valid for this machine, by output."""
        worker, found = result["worker"], {}
        if result["unproven"] and worker not in self._left_out:
            self._left_out[worker] = result["unproven"]
            self._warn(REPORTED["worker-left-out"], worker=worker, why=result["unproven"])
        for record in result["records"]:
            wrong = self._wrong(record, worker)
            if wrong is None:
                found[record["output"]] = record
                continue
            self._tried.setdefault(record["output"], set()).add(worker)
            if worker not in self._failing and worker not in self._left_out:
                self._warn(REPORTED["worker-rejected"], worker=worker, why=wrong)
            self._failing.add(worker)
        return found

    def _wrong(self, record: Record, worker: str) -> str | None:
        """Why a record is not valid for this machine; None if it is."""
        if record["status"] == ERROR:
            return None if is_of_the_file(record) else str(record["error"]["message"])
        for path, expected in record.pop("seen", ()):
            if not _is_here(path, expected, 0 if worker in self._failing else _SECONDS_TO_SEE):
                return f"{path} is not what the worker wrote"
        return None

    def _elsewhere(self, jobs: list[Job]) -> list[tuple[list[str], list[Job]]]:
        """The workers for jobs that others could not do; this machine if none are left.

        Errors: FastprofError if all workers are left out.
        """
        if not jobs:
            return []
        alive = [worker for worker in self._client.nthreads() if worker not in self._left_out]
        if not alive:
            worker, why = next(iter(self._left_out.items()))
            raise FastprofError(f"Dask: no worker sees the files of this machine; {worker}: {why}")
        groups: dict[tuple[str, ...], list[Job]] = {}
        for job in jobs:
            tried = self._tried.get(job["output"], set())
            others = [worker for worker in alive if worker not in tried] if len(tried) < _TRIES else []
            groups.setdefault(tuple(others), []).append(job)
        return [([*workers], again) for workers, again in groups.items()]

    def __enter__(self) -> Dask:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()  # cancels pending tasks
        if self._cluster is not None:
            self._cluster.close()


def _is_here(path: str, expected: list[Any], seconds: float) -> bool:
    """Whether a file matches what a worker saw.  A network file system may show it a few seconds later."""
    end = time.monotonic() + seconds
    while True:
        with suppress(OSError, FastprofError):
            if not is_url(path):
                os.listdir(os.path.dirname(path))  # refreshes the client's cache
            if seen(path) == expected:
                return True
        if time.monotonic() >= end:
            return False
        time.sleep(min(0.1, seconds))


_proven: set[str] = set()  # texts of proofs, in a worker of Dask


def work(jobs: list[Job], how: dict[str, Any], proof: Proof) -> dict[str, Any]:
    """A task, on a worker of Dask: its address, why it cannot do such tasks, and the records of its jobs."""
    distributed: Any = import_module("distributed")
    worker = distributed.get_worker().address
    unproven = None if proof["text"] in _proven else why_unproven(proof)
    if unproven:
        return {"worker": worker, "unproven": unproven, "records": []}
    _proven.add(proof["text"])
    others = [record for job in jobs if (record := _of_another_file(job))]
    outputs = {record["output"] for record in others}
    with Pool(1, **how) as pool:
        records = [*others, *pool.run([job for job in jobs if job["output"] not in outputs])]
    for record in records:
        if record["status"] not in (ERROR, CRASHED):
            record["seen"] = [[path, _seen_or_not(path)] for path in outputs_of(record)]
    if any(record["status"] == ERROR and not is_of_the_file(record) for record in records):
        unproven = why_unproven(proof)  # folders may have vanished since then
    return {"worker": worker, "unproven": unproven, "records": records}


def _of_another_file(job: Job) -> Record | None:
    """An error if the input exists, but differs from what the job's creator saw."""
    size, mtime_ns = state(job["input"]) if job["mtime_ns"] else (0, 0)
    if not mtime_ns or (size == job["size"] and abs(mtime_ns - job["mtime_ns"]) < _SAME_TIME_NS):
        return None  # reading it reports that it is missing
    record = failed(job, f"{job['input']} is a different file there")
    record["error"]["retry"] = True
    return record


def _seen_or_not(path: str) -> list[Any]:
    try:
        return seen(path)
    except (OSError, FastprofError) as error:
        return [-1, str(error)]
