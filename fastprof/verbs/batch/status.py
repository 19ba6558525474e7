"""The progress of a batch, read from its manifests."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable

from fastprof.core._typing import Any, NamedTuple
from fastprof.core.errors import faulty
from fastprof.core.urls import is_url
from fastprof.inputs import refuse_uncallable
from fastprof.inputs.stored import may_be_store
from fastprof.verbs.batch.hashes import Hashes
from fastprof.verbs.batch.jobs import CRASHED, ERROR, Record
from fastprof.verbs.batch.manifest import is_locked, lines_at, manifest_of, manifests, placed_lines, shard_of
from fastprof.verbs.batch.remote_folder import folder_of, readable

DONE, AT_WORK, STOPPED, MISSING, REPLACED = "done", "running", "stopped", "missing", "replaced"


class ShardStatus(NamedTuple):
    """The last run of one shard."""

    shard: str  # "1-of-8"
    files: int
    earlier: int  # files done by earlier runs
    left: int  # files not done yet
    state: str  # one of the words above; missing: never started; replaced: a later run has taken over its files


class BatchStatus(NamedTuple):
    """The progress of a batch, over all its shards."""

    shards: list[ShardStatus]
    statuses: Counter[str]  # of all files converted to this folder
    failed: list[Record]  # files without an output, and inputs that could not be listed
    bytes_written: int
    cpu_seconds: float

    @property
    def unfinished(self) -> list[ShardStatus]:
        """The shards that are running, were stopped or were never started."""
        return [shard for shard in self.shards if shard.state not in (DONE, REPLACED)]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        shards = [shard._asdict() for shard in self.shards]
        return self._asdict() | {"shards": shards, "unfinished": [shard.shard for shard in self.unfinished]}


def batch_status(outdir: str | os.PathLike[str], *, progress: Callable[..., object] | None = None) -> BatchStatus:
    """The progress of `batch_convert` to `outdir`, or of `batch_archive` to a store, which may be running.

    All shards are listed, also those never started.  `progress` is accepted, but never called: only manifests are read.
    Errors: FastprofError if there was no batch.

    >>> import fastprof
    >>> done = fastprof.batch_convert("tests/corpus/gperftools/good/small.prof", "out", to="folded", jobs=1)
    >>> dict(fastprof.batch_status("out").statuses)
    {'ok': 1}
    """
    refuse_uncallable(progress)
    outdir = os.fspath(outdir)
    folder, _, store = outdir.rpartition("/") if may_be_store(outdir) and is_url(outdir) else (outdir, "", "")
    with readable(folder_of(folder)) as there:
        there = os.path.join(there, store) if store else there
        found = manifests(there) if os.path.isdir(there) else manifest_of(there)
        if not found:
            raise faulty(outdir, "no `fastprof batch` has written to this folder or store")
        records = _LastRecords()
        shards, unread = _shards(found, records)
        statuses, nbytes, seconds, failed = records.sums(found)
    return BatchStatus(
        shards,
        Counter({ERROR: len(unread)} if unread else {}) + statuses,
        [*({"status": ERROR, "error": {"message": message}} for message in unread), *failed],
        nbytes,
        round(seconds, 3),
    )


class _LastRecords:
    """The last record of each output, from manifests that are read once: 41 bytes of each record are kept.

    Of an output that was made several times, perhaps by several shards, the latest record counts.
    """

    _ENTRY = struct.Struct("<qdqdBQ")  # hash of the output, time, bytes, seconds, status, place in its manifest
    _BUCKETS = 256  # by hash; only one at a time is sorted out
    _SHIFT = 44  # a place: number of the manifest, above the offset of the line

    def __init__(self) -> None:
        self._entries = [bytearray() for _ in range(self._BUCKETS)]
        self._statuses: dict[str, int] = {}

    def add(self, record: Record, manifest: int, offset: int) -> None:
        key = hash(record["output"])
        status = self._statuses.setdefault(record["status"], min(len(self._statuses), 255))
        self._entries[key % self._BUCKETS] += self._ENTRY.pack(
            key,
            record["time"],
            record.get("bytes", 0),
            record.get("cpu_seconds", 0),
            status,
            manifest << self._SHIFT | offset,
        )

    def sums(self, paths: list[str]) -> tuple[Counter[str], int, float, list[Record]]:
        """The counts by status, all bytes and seconds, and the records of files without an output."""
        names = [*self._statuses]
        counts: Counter[int] = Counter()
        nbytes, seconds, failed = 0, 0.0, list[int]()
        without = {self._statuses[name] for name in (ERROR, CRASHED) if name in self._statuses}
        for bucket in self._entries:
            last: dict[int, tuple[float, int, float, int, int]] = {}
            for key, *entry in self._ENTRY.iter_unpack(bucket):
                if key not in last or entry[0] >= last[key][0]:
                    last[key] = (*entry,)
            for _, size, time, status, place in last.values():
                counts[status] += 1
                nbytes += size
                seconds += time
                if status in without:
                    failed.append(place)
            bucket.clear()
        statuses = Counter({names[status]: n for status, n in counts.items()})
        places = ((paths[place >> self._SHIFT], place & (1 << self._SHIFT) - 1) for place in sorted(failed))
        return statuses, nbytes, seconds, [*lines_at(places)]


def _shards(found: list[str], records: _LastRecords) -> tuple[list[ShardStatus], list[str]]:
    """All shards, and the inputs that could not be listed.

    A run of all files may have continued shards, or vice versa: the latest run counts.
    """
    runs = {path: _shard(path, number, records) for number, path in enumerate(found)}
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


def _shard(path: str, number: int, records: _LastRecords) -> tuple[ShardStatus, dict[str, Any]]:
    """The status of a shard, and its last run.  Adds its records to `records`."""
    at_work = is_locked(path)  # before reading, in case the batch ends now
    run: dict[str, Any] = {}
    made = Hashes()  # of the last run
    for offset, line in placed_lines(path):
        if "run" in line:
            run, made = line["run"], Hashes()
        else:
            records.add(line, number, offset)
            made.add(hash(line["output"]))
    # two runs that know nothing of each other, behind a URL, may have made the same outputs
    left = max(0, run.get("todo", 0) - made.distinct())
    state = DONE if run and not left else AT_WORK if at_work else STOPPED
    name = os.path.basename(path).removesuffix(".jsonl")
    return ShardStatus(name, run.get("files", 0), run.get("earlier", 0), left, state), run
