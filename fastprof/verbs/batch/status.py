"""The progress of a batch, from its manifests alone."""

from __future__ import annotations

import os
from collections import Counter

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import FastprofError
from fastprof.verbs.batch.jobs import CRASHED, ERROR, Record
from fastprof.verbs.batch.manifest import is_locked, lines, manifest_of, manifests, records_by_output, shard_of

DONE, AT_WORK, STOPPED, MISSING, REPLACED = "done", "running", "stopped", "missing", "replaced"


class ShardStatus(NamedTuple):
    """The last run of one shard."""

    shard: str  # "1-of-8"
    files: int
    earlier: int  # files done by earlier runs
    left: int  # files not done yet
    state: str  # one of the words above; missing: never begun; replaced: a later run has taken over its files


class BatchStatus(NamedTuple):
    """The progress of a batch, over all its shards."""

    shards: list[ShardStatus]
    statuses: Counter[str]  # of all files ever converted to this folder
    failed: list[Record]  # files without an output, and inputs that could not be listed
    bytes_written: int
    cpu_seconds: float

    @property
    def unfinished(self) -> list[ShardStatus]:
        """The shards that are at work, were stopped, or were never begun."""
        return [shard for shard in self.shards if shard.state not in (DONE, REPLACED)]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        shards = [shard._asdict() for shard in self.shards]
        return self._asdict() | {"shards": shards, "unfinished": [shard.shard for shard in self.unfinished]}


def batch_status(outdir: str | os.PathLike[str]) -> BatchStatus:
    """The progress of `batch_convert` to `outdir`, or of `batch_archive` to a store, which may be running.

    All shards are listed, also those never begun.  Errors: FastprofError if there was no batch.

    >>> import fastprof
    >>> done = fastprof.batch_convert("tests/corpus/gperftools/good/small.prof", "out", to="folded", jobs=1)
    >>> dict(fastprof.batch_status("out").statuses)
    {'ok': 1}
    """
    outdir = os.fspath(outdir)
    found = manifests(outdir) if os.path.isdir(outdir) else manifest_of(outdir)
    if not found:
        raise FastprofError(f"{outdir}: no `fastprof batch` has written to this folder or store")
    shards, unread = _shards(found)
    records = [*records_by_output(found).values()]
    failed = [{"status": ERROR, "error": {"message": message}} for message in unread]
    failed += [record for record in records if record["status"] in (ERROR, CRASHED)]
    return BatchStatus(
        shards,
        Counter({ERROR: len(unread)} if unread else {}) + Counter(record["status"] for record in records),
        failed,
        sum(record.get("bytes", 0) for record in records),
        round(sum(record.get("cpu_seconds", 0) for record in records), 3),
    )


def _shards(found: list[str]) -> tuple[list[ShardStatus], list[str]]:
    """All shards, and the inputs that could not be listed.

    A run of all files may have continued shards, or vice versa: the run begun last counts.
    """
    runs = {path: _shard(path) for path in found}
    _, last = max((run.get("began", 0), (shard_of(path) or (1, 1))[1]) for path, (_, run) in runs.items())
    shards, unread = [], dict[str, None]()
    for path, (status, run) in runs.items():
        if (shard_of(path) or (1, last))[1] == last:
            unread |= dict.fromkeys(run.get("unread", ()))
        elif status.state != DONE:
            status = status._replace(state=REPLACED)
        shards.append(status)
    names = {status.shard for status in shards}
    missing = [name for name in (f"{number}-of-{last}" for number in range(1, last + 1)) if name not in names]
    shards += [ShardStatus(name, 0, 0, 0, MISSING) for name in missing if shard_of(found[0])]
    return sorted(shards, key=lambda status: (len(status.shard), status.shard)), [*unread]


def _shard(path: str) -> tuple[ShardStatus, dict[str, Any]]:
    """The status of a shard, and its last run."""
    at_work = is_locked(path)  # before reading, in case the batch ends now
    run: dict[str, Any] = {}
    n = 0
    for line in lines(path):
        n += 1
        if "run" in line:
            run, n = line["run"], 0
    left = run.get("todo", 0) - n
    state = DONE if run and not left else AT_WORK if at_work else STOPPED
    name = os.path.basename(path).removesuffix(".jsonl")
    return ShardStatus(name, run.get("files", 0), run.get("earlier", 0), max(0, left), state), run
