"""Runs the jobs of a batch: in processes of this machine, or by Dask on many.

An engine has `run(jobs)`, which yields the record of each job as it is done, and is a context manager.
"""

from __future__ import annotations

import heapq
import logging
import os
import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, usage_error
from fastprof.core.log import Warn
from fastprof.core.messages import Message, install
from fastprof.core.options import Text
from fastprof.core.urls import is_url
from fastprof.verbs.batch.jobs import CONVERT, ERROR, Job, Record, crashed, is_of_the_file
from fastprof.verbs.batch.kinds import BatchOption
from fastprof.verbs.batch.partial_key import Proof, absolute, proof_of, seen
from fastprof.verbs.batch.pool import Pool
from fastprof.verbs.batch.task import end, work
from fastprof.verbs.reported import REPORTED

LOCAL = "local"
_START = 1 << 18  # the time for a small file, in bytes of a large one
_LEAST, _MOST = 1 << 22, 1 << 28  # bytes of a task: for less, Dask costs more than the task; more cannot be balanced
_EACH = 4  # tasks for each thread, between these limits
_AT_LEAST = 64  # tasks, within them: workers may be started later
_TRIES = 2  # number of workers that try a file before this machine does
_SECONDS_TO_CONNECT = 10
_SECONDS_WITHOUT_WORKERS = 20.0
_SECONDS_TO_CLOSE = 2
_SECONDS_TO_SEE = 10.0  # timeout for an output of a worker to become visible


class Engine(Text):
    """local, dask or dask://HOST:PORT."""

    def check(self, value: Any) -> Any:
        value = super().check(value)
        if value not in (LOCAL, "dask") and not re.fullmatch(r"dask://.+:[0-9]+", value):
            raise ValueError(f"{value!r:.80} is not an engine, expected local, dask or dask://HOST:PORT")
        return value


ENGINE = BatchOption(
    "engine",
    Engine("ENGINE"),
    LOCAL,
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
    """Runs jobs as tasks of Dask (task.py).  A task whose Dask worker is lost goes to another one.

    A worker first proves that it sees the same files (proof.py), for which this process writes a token into `folder`;
    without proof it is not used, and its tasks go to others.  Each output is checked from here.  A job whose output is
    not visible here, or that failed for a reason other than the bytes of its file, goes to another worker, and finally
    to a process of this machine, whose result stands.  `warn` gets one message for each worker with such a fault.
    """

    def __init__(self, engine: str, n: int, folder: str, warn: Warn, **how: Any) -> None:
        try:
            distributed: Any = import_module("distributed")
        except ImportError:
            raise usage_error(
                "{--engine:=}{engine} needs Dask: {install}", engine=engine, install=install("dask")
            ) from None
        self._folder, self._warn = folder, warn
        self._how = how  # the keywords of Pool
        self._run = os.urandom(8).hex()
        self._left_out: dict[str, str] = {}  # workers, and why
        self._failing = set[str]()  # workers with a rejected output or error
        self._tried: dict[str, set[str]] = {}  # by output: the workers that tried it
        self._done: SimpleQueue[Any] = SimpleQueue()  # futures
        self._tasks: dict[Any, list[Job]] = {}  # the jobs of each future
        self._cluster: Any = None
        address = (
            engine.replace("dask://", "tcp://") if "://" in engine else distributed.config.get("scheduler-address")
        )
        if address is None:
            quiet = {"dashboard_address": "127.0.0.1:0", "silence_logs": "CRITICAL"}
            self._cluster = distributed.LocalCluster(n_workers=n, host="127.0.0.1", threads_per_worker=1, **quiet)
        self._logger = logging.getLogger("distributed.client")
        self._level = self._logger.level
        self._logger.setLevel(logging.CRITICAL)  # a lost scheduler is reported here, without a traceback
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
        more = iter(jobs)
        here: list[Job] = []  # jobs for this machine
        waiting = [*map(_for_others, more)]
        threads = sum(self._client.nthreads().values())
        with proof_of(waiting, self._folder) as proof:
            for task in tasks_of(waiting, threads) if self._how["function"] == CONVERT else [[job] for job in waiting]:
                self._submit(task, proof)
            while self._tasks:
                future = self._next()
                task = self._tasks.pop(future)
                try:
                    result = future.result()
                except distributed.KilledWorker:
                    for job in task:
                        yield crashed(job, "the Dask workers that read it were lost", 1)
                    continue
                except (Exception, CancelledError) as error:
                    self._check()
                    raise FastprofError(f"Dask: {type(error).__name__}: {error}") from None
                records = self._accepted(result)
                yield from records.values()
                left = [job for job in task if job["output"] not in records]
                for workers, again in self._elsewhere(left):
                    if workers:
                        self._submit(again, proof, workers)
                    else:
                        here += again
                for job in more:  # those that waited for these records
                    self._submit([_for_others(job)], proof)
        with Pool(1, **self._how) as pool:
            yield from pool.run(here)
            yield from pool.run(more)

    def _submit(self, task: list[Job], proof: Proof, workers: list[str] | None = None) -> None:
        # only a preference: Dask must not wait for these workers if all are lost
        on = {"workers": workers, "allow_other_workers": True} if workers else {}
        future = self._client.submit(work, task, self._run, self._how, proof, pure=False, **on)
        self._tasks[future] = task
        future.add_done_callback(self._done.put)

    def _next(self) -> Any:
        """The next future that is done.  Errors: FastprofError if none can be any more."""
        alone_since: float | None = None
        while True:
            try:
                return self._done.get(timeout=1.0)
            except Empty:
                self._check()
                try:
                    workers = self._client.nthreads()
                except Exception:  # the connection was lost meanwhile
                    continue
                now = time.monotonic()
                alone_since = None if workers else alone_since or now
                if alone_since and now - alone_since >= _SECONDS_WITHOUT_WORKERS:
                    raise FastprofError(
                        f"Dask: {self._client.scheduler.address} has had no workers for "
                        f"{_SECONDS_WITHOUT_WORKERS:g} s; start some with `dask worker`"
                    ) from None

    def _check(self) -> None:
        """Errors: FastprofError if the scheduler is lost."""
        if self._client.status != "running":
            raise FastprofError("Dask: the scheduler is lost; run the same command again to continue")

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

    def __exit__(self, *_: object) -> None:
        if self._client.status == "running":
            with suppress(Exception):  # a worker that is lost meanwhile has no pools
                self._client.run(end, self._run, on_error="ignore")
        self._client.close(timeout=_SECONDS_TO_CLOSE)  # cancels pending tasks
        if self._cluster is not None:
            self._cluster.close()
        self._logger.setLevel(self._level)


def tasks_of(jobs: list[Job], threads: int) -> list[list[Job]]:
    """Jobs divided into tasks that take about as long as each other; each begins with its largest file.

    10,000 files of 1 KB on 32 threads: 128 tasks of 78 files.  20 files of 1 GB: 20 tasks.  9 files of 1 KB: one.
    """
    costs = [job["size"] + _START for job in jobs]
    total = sum(costs)
    n = max(total // _MOST, min(max(_EACH * threads, _AT_LEAST), total // _LEAST), 1)
    loads = [(0, i) for i in range(min(n, len(jobs)))]
    tasks: list[list[Job]] = [[] for _ in loads]
    for cost, job in sorted(zip(costs, jobs, strict=True), key=lambda one: -one[0]):
        load, i = loads[0]
        tasks[i].append(job)
        heapq.heapreplace(loads, (load + cost, i))
    return tasks


def _for_others(job: Job) -> Job:
    return {**job, "durable": True, "output": absolute(job["output"])}


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
