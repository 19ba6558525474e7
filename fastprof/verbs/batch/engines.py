"""Where the jobs of a batch are done: in processes of this machine, or by Dask on many.

An engine has `run(jobs)`, which yields the record of each job as it is done, and is a context manager.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import TracebackType

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError, UsageError
from fastprof.core.options import Option, Text
from fastprof.core.words import install, speaks_of_flags
from fastprof.verbs.batch.jobs import CONVERT, Job, Record, crashed
from fastprof.verbs.batch.pool import Pool

LOCAL = "local"
_TOGETHER = 50  # jobs of a task at least, so that what a process knows of symbols serves many
_SECONDS_TO_CONNECT = 30


class Engine(Text):
    """local, dask or dask://HOST:PORT."""

    def check(self, value: Any) -> Any:
        value = super().check(value)
        if value not in (LOCAL, "dask") and not re.fullmatch(r"dask://.+:[0-9]+", value):
            raise ValueError(f"{value!r:.80} is no engine, expected local, dask or dask://HOST:PORT")
        return value


ENGINE = Option(
    "engine",
    Engine("ENGINE"),
    LOCAL,
    group="batch",
    help="where files are read: local, in processes of this machine (default); dask, by the scheduler that Dask is "
    "configured for, or else by one of its own; dask://HOST:PORT, by that scheduler",
)


def begun(engine: str, n: int, *, retries: int, timeout: float, function: str = CONVERT) -> Pool | Dask:
    """The engine; `n` processes if they are begun here.  The others are what `Pool` explains."""
    how: dict[str, Any] = {"retries": retries, "timeout": timeout, "function": function, "flags": speaks_of_flags()}
    return Pool(n, **how) if engine == LOCAL else Dask(engine, n, **how)


class Dask:
    """Jobs as tasks of Dask.  In a task they are done by a worker of the pool, which a file may kill: Dask would give
    up all of the task.  A task whose own worker is lost is given to another one.  Files are seen by all machines.
    """

    def __init__(self, engine: str, n: int, **how: Any) -> None:
        try:
            distributed: Any = import_module("distributed")
        except ImportError:
            raise UsageError(f"--engine={engine} needs Dask: {install('dask')}") from None
        self._how = how  # the keywords of Pool
        self._together = _TOGETHER if how["function"] == CONVERT else 1
        self._cluster: Any = None
        address = (
            engine.replace("dask://", "tcp://") if "://" in engine else distributed.config.get("scheduler-address")
        )
        if address is None:
            quiet = {"dashboard_address": None, "silence_logs": "CRITICAL"}
            self._cluster = distributed.LocalCluster(n, host="127.0.0.1", threads_per_worker=1, **quiet)
        try:
            self._client = distributed.Client(
                address or self._cluster, timeout=_SECONDS_TO_CONNECT, set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise FastprofError(f"--engine={engine}: no scheduler of Dask answers: {error}") from None

    def run(self, jobs: Iterable[Job]) -> Iterator[Record]:
        """As `Pool.run`, and each output is on disk by itself: nobody here could get those of other machines there.
        Errors: FastprofError if Dask fails."""
        distributed: Any = import_module("distributed")
        waiting = [{**job, "durable": True, "output": os.path.abspath(job["output"])} for job in jobs]
        n = max(1, len(waiting) // self._together)
        # the largest come first, so each task gets some of them
        tasks = [waiting[i::n] for i in range(n)] if waiting else []
        futures = {self._client.submit(work, task, self._how, pure=False): task for task in tasks}
        for future in distributed.as_completed([*futures], loop=self._client.loop):
            task = futures.pop(future)
            try:
                yield from future.result()
            except distributed.KilledWorker:
                for job in task:
                    yield crashed(job, "the workers of Dask that read it were lost", 1)
            except Exception as error:
                raise FastprofError(f"Dask: {type(error).__name__}: {error}") from None

    def __enter__(self) -> Dask:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()  # which cancels what is not done
        if self._cluster is not None:
            self._cluster.close()


def work(jobs: list[Job], how: dict[str, Any]) -> list[Record]:
    """A task, on a worker of Dask."""
    with Pool(1, **how) as pool:
        return [*pool.run(jobs)]
