"""A task of Dask, as a worker runs it (engines.py).

Within a task, the process of a pool runs the jobs, because a file may crash its process, and Dask would give up the
whole task.  The pool outlives the task: starting a process takes 0.3 s, and its symbols serve the next task.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Lock

from fastprof.core._typing import Any
from fastprof.core.errors import FastprofError
from fastprof.core.workers import begin
from fastprof.verbs.batch.files import state
from fastprof.verbs.batch.jobs import CRASHED, ERROR, Job, Record, failed, is_of_the_file, outputs_of
from fastprof.verbs.batch.partial_key import Proof, seen, why_unproven
from fastprof.verbs.batch.pool import Pool

_SAME_TIME_NS = 10**9  # file systems round times
_SECONDS_IDLE = 60.0  # after which a pool ends if its client has not ended it, perhaps because it was killed

_lock = Lock()
_idle: dict[str, list[tuple[float, Pool]]] = {}  # by run: pools without a task, and since when
_ended: dict[str, float] = {}  # runs whose client is done, and since when
_proven: set[str] = set()  # texts of proofs
_is_ending = False  # whether a thread ends idle pools


def work(jobs: list[Job], run: str, how: dict[str, Any], proof: Proof) -> dict[str, Any]:
    """The address of this worker, why it cannot do such tasks, and the records of its jobs.  `how`: the keywords of
    the pool, which is that of the `run`."""
    distributed: Any = import_module("distributed")
    worker = distributed.get_worker().address
    unproven = None if proof["text"] in _proven else why_unproven(proof)
    if unproven:
        return {"worker": worker, "unproven": unproven, "records": []}
    _proven.add(proof["text"])
    others = [record for job in jobs if (record := _of_another_file(job))]
    outputs = {record["output"] for record in others}
    with _pool(run, how) as pool:
        records = [*others, *pool.run([job for job in jobs if job["output"] not in outputs])]
    for record in records:
        if record["status"] not in (ERROR, CRASHED):
            record["seen"] = [[path, _seen_or_not(path)] for path in outputs_of(record)]
    if any(record["status"] == ERROR and not is_of_the_file(record) for record in records):
        unproven = why_unproven(proof)  # folders may have vanished since then
    return {"worker": worker, "unproven": unproven, "records": records}


@contextmanager
def _pool(run: str, how: dict[str, Any]) -> Iterator[Pool]:
    """A pool of this run that no other thread uses."""
    global _is_ending
    with _lock:
        kept = _idle.get(run)
        pool = kept.pop()[1] if kept else Pool(1, **how)
    try:
        yield pool
    except BaseException:
        pool.__exit__(None, None, None)
        raise
    with _lock:
        _idle.setdefault(run, []).append((time.monotonic(), pool))
        begins, _is_ending = not _is_ending, True
    if begins:
        begin(_end_idle)
    if run in _ended:
        end(run)


def end(run: str) -> None:
    """End the pools of a run, those that have a task after it."""
    with _lock:
        _ended[run] = time.monotonic()
        for _, pool in _idle.pop(run, ()):
            pool.__exit__(None, None, None)


def _end_idle() -> None:
    """End pools that nobody has used for a while; returns when none is left."""
    global _is_ending
    while True:
        time.sleep(_SECONDS_IDLE / 4)
        before = time.monotonic() - _SECONDS_IDLE
        with _lock:
            for run, kept in [*_idle.items()]:
                for since, pool in kept:
                    if since < before:
                        pool.__exit__(None, None, None)
                _idle[run] = [one for one in kept if one[0] >= before]
                if not _idle[run]:
                    del _idle[run]
            for run in [run for run, since in _ended.items() if since < before]:
                del _ended[run]
            if not _idle and not _ended:
                _is_ending = False
                return


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
