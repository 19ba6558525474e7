"""A pool of processes that survives crashes of its jobs.

Each worker has one job at a time, so when a process dies its file is known: another worker starts, retries the
file, and all others continue.  (When a process dies, a concurrent.futures pool gives up every waiting job, and a
multiprocessing pool waits for its answer forever.)  Workers die with this process, even if it is killed.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

from fastprof.core.errors import FastprofError, errors_of
from fastprof.core.workers import blocked
from fastprof.verbs.batch.jobs import CONVERT, Job, Record, crashed

_BEGIN = """\
import sys
function, parent, *sys.path[:] = sys.argv[1:]
from fastprof.verbs.batch.worker import main
main(function, int(parent))
"""


_SECONDS_TO_DIE = 10
_BEGINNING = "cannot start a worker"  # with too many open files or processes


class _Worker:
    """One process, and its job."""

    def __init__(self, function: str, timeout: float | None) -> None:
        command = [sys.executable, "-c", _BEGIN, function, str(os.getpid()), *sys.path]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.process.stdin and self.process.stdout
        self._jobs, self.records = self.process.stdin, self.process.stdout
        self._timeout = timeout
        self._partial = b""
        self.began = False  # it has reported that it is ready
        self.job: Job | None = None
        self.tries = 0  # of its job, including this one
        self.deadline: float | None = None  # of its job; the start of the process is not included

    def give(self, job: Job, tries: int) -> None:
        self.job, self.tries = job, tries
        self._set_deadline()
        with suppress(BrokenPipeError):  # it died; the end of `records` reports that
            self._jobs.write(json.dumps(job).encode() + b"\n")

    def take(self) -> tuple[Record | None, bool]:
        """The record of its job, if done, and whether the process is alive.  Call it when data has arrived."""
        data = os.read(self.records.fileno(), 1 << 16)
        *lines, self._partial = (self._partial + data).split(b"\n")
        if lines and not self.began:
            del lines[0]
            self.began = True
            self._set_deadline()
        if not lines:
            return None, bool(data)
        record: Record = json.loads(lines[0])
        record["try"] = self.tries
        self.job = self.deadline = None
        return record, True

    def _set_deadline(self) -> None:
        if self._timeout and self.began and self.job is not None:
            self.deadline = time.monotonic() + self._timeout

    def end(self) -> int:
        """Kill the process if it is still running; returns its exit code."""
        self.process.kill()
        self._jobs.close()
        self.records.close()
        return self.process.wait()


class Pool:
    """`n` workers, each started when it gets its first job.

    with Pool(2, timeout=60) as pool:
        for record in pool.run(jobs): ...

    `retries`: how often a job is retried after its process died or took longer than `timeout` seconds.
    `function`: MODULE:NAME of a function that maps a job to its record and never raises, in a module on this process's
    sys.path.
    Use the pool in one thread: on Linux, workers die with the thread that started them.
    """

    def __init__(
        self,
        n: int,
        *,
        retries: int = 1,
        timeout: float | None = None,
        function: str = CONVERT,
    ) -> None:
        self._n, self._retries, self._timeout, self._function = n, retries, timeout, function
        with errors_of(_BEGINNING):
            self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._again: deque[tuple[Job, int]] = deque()  # jobs to retry, and the number of that try

    def run(self, jobs: Iterable[Job]) -> Iterator[Record]:
        """The record of each job as it is done.  Errors: FastprofError if a worker cannot be started."""
        waiting = iter(jobs)
        while self._fill(waiting):
            yield from self._wait()

    def _fill(self, waiting: Iterator[Job]) -> bool:
        """Give jobs to idle workers, and start workers while jobs are left.  Returns whether any job is running."""
        idle = [worker for worker in self._workers if worker.job is None]
        while idle or len(self._workers) < self._n:
            job, tries = self._again.popleft() if self._again else (next(waiting, None), 1)
            if job is None:
                break
            (idle.pop() if idle else self._begin()).give(job, tries)
        return any(worker.job is not None for worker in self._workers)

    def _begin(self) -> _Worker:
        # interrupts wait until this process has the worker's pid; the worker ignores them (worker.py)
        with blocked():
            with errors_of(_BEGINNING):
                worker = _Worker(self._function, self._timeout)
            self._workers.append(worker)
            self._selector.register(worker.records, selectors.EVENT_READ, worker)
        return worker

    def _wait(self) -> Iterator[Record]:
        """Wait for an event; returns the records of jobs that it completed."""
        deadlines = [worker.deadline for worker in self._workers if worker.deadline is not None]
        left = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        for key, _ in self._selector.select(left):
            worker: _Worker = key.data
            record, lives = worker.take()
            if record is not None:
                yield record
            if not lives:
                yield from self._died(worker)
        now = time.monotonic()
        for worker in [*self._workers]:
            if worker.deadline is not None and worker.deadline <= now:
                self._end(worker)
                yield from self._failed(worker, f"timed out after {self._timeout:g} s")

    def _died(self, worker: _Worker) -> Iterator[Record]:
        with suppress(subprocess.TimeoutExpired):  # its end of the pipe closes shortly before the process ends
            worker.process.wait(_SECONDS_TO_DIE)
        code = self._end(worker)
        if code >= 0 and not worker.began:
            raise FastprofError(f"cannot start a worker: {sys.executable} exited with code {code}")
        how = f"exited with code {code}"
        if code < 0:
            name = signal.Signals(-code).name if -code in {*signal.Signals} else str(-code)
            how = f"was killed by {name}{', perhaps for lack of memory' if name == 'SIGKILL' else ''}"
        yield from self._failed(worker, f"the process that read it {how}")

    def _end(self, worker: _Worker) -> int:
        self._selector.unregister(worker.records)
        self._workers.remove(worker)
        return worker.end()

    def _failed(self, worker: _Worker, why: str) -> Iterator[Record]:
        """Retry the job of a lost worker, or give it up."""
        if worker.job is not None and worker.tries <= self._retries:
            self._again.append((worker.job, worker.tries + 1))
        elif worker.job is not None:
            yield crashed(worker.job, why, worker.tries)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        while self._workers:
            self._workers.pop().end()
