"""How far a batch is, from its manifests alone."""

from __future__ import annotations

import fcntl
import os
from collections import Counter

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import FastprofError
from fastprof.verbs.batch.jobs import CRASHED, ERROR, Record
from fastprof.verbs.batch.manifest import lines, manifest_of, manifests, records_by_output


class ShardStatus(NamedTuple):
    """The last run of one shard."""

    shard: str  # "1-of-8"
    files: int
    earlier: int  # of them done by earlier runs
    left: int  # of them not done yet
    state: str  # "at work", "done", or "stopped" before its end


class BatchStatus(NamedTuple):
    shards: list[ShardStatus]
    statuses: Counter[str]  # of all files that were ever converted to this folder
    failed: list[Record]  # those of them without an output
    bytes_written: int
    cpu_seconds: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict() | {"shards": [shard._asdict() for shard in self.shards]}


def batch_status(outdir: str | os.PathLike[str]) -> BatchStatus:
    """How far `batch_convert` to `outdir`, or `batch_archive` to a store, is.  It may be at work.

    Errors: FastprofError if there was none.

    >>> import fastprof
    >>> done = fastprof.batch_convert("tests/corpus/gperftools/good/small.prof", "out", to="folded", jobs=1)
    >>> dict(fastprof.batch_status("out").statuses)
    {'ok': 1}
    """
    outdir = os.fspath(outdir)
    found = manifests(outdir) if os.path.isdir(outdir) else manifest_of(outdir)
    if not found:
        raise FastprofError(f"{outdir}: there was no `fastprof batch` to this folder or store")
    shards = [_shard(path) for path in found]
    records = [*records_by_output(found).values()]
    return BatchStatus(
        shards,
        Counter(record["status"] for record in records),
        [record for record in records if record["status"] in (ERROR, CRASHED)],
        sum(record.get("bytes", 0) for record in records),
        round(sum(record.get("cpu_seconds", 0) for record in records), 3),
    )


def _shard(path: str) -> ShardStatus:
    at_work = _is_locked(path)  # before it is read: a batch that ends now is done then
    run, n = {"files": 0, "earlier": 0, "todo": 0}, 0
    for line in lines(path):
        n += 1
        if "run" in line:
            run, n = line["run"], 0
    left = run["todo"] - n
    state = "done" if not left else "at work" if at_work else "stopped"
    name = os.path.basename(path).removesuffix(".jsonl")
    return ShardStatus(name, run["files"], run["earlier"], left, state)


def _is_locked(path: str) -> bool:
    """Whether a process adds to this manifest."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        raise FastprofError(f"{path}: {error.strerror}") from None
    return False
