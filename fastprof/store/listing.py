"""Lists the contents of a store."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import islice

from fastprof.core._typing import TYPE_CHECKING, Any
from fastprof.core.errors import UsageError
from fastprof.core.source import Source
from fastprof.core.urls import shown
from fastprof.formats.archive.index import Archive, Listed, codec_of, read_summary
from fastprof.formats.archive.read import ArchiveReader
from fastprof.formats.archive.sections import Codec, SectionError
from fastprof.inputs.state import by_name, chosen, located, open_store

if TYPE_CHECKING:
    from mmap import mmap


def names(path: str, patterns: Iterable[str] = (), *, lenient: bool = False) -> list[str]:
    """The names of the profiles in a store that `patterns` choose.  Errors: FastprofError and its subclasses.

    >>> from fastprof.store.adding import add
    >>> log = add("two.fpa", ["tests/corpus/callgrind/good/tab.callgrind", "tests/corpus/pprof/good/reversed.pb"])
    >>> names("two.fpa"), names("two.fpa", ["*.pb"])
    (['tab.callgrind', 'reversed.pb'], ['reversed.pb'])
    """
    with open_store(path, lenient=lenient) as (source, archive):
        # without an index, replaced profiles are found as well
        return [*dict.fromkeys(one.name for one in chosen(path, source, archive, patterns))]


# by what `each` sorts; equal ones are in the order in which they were added
SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda entry: entry["name"],
    "added": lambda _: 0,
    "format": lambda entry: (entry.get("format", ""), entry["name"]),
    "date": lambda entry: entry.get("mtime", 0),
    "rows": lambda entry: -entry["rows"],
    "size": lambda entry: -entry["stored_bytes"],
}
_RUN = 4000  # entries that are sorted in memory


def members(path: str, patterns: Iterable[str] = (), *, sort: str = "added") -> list[dict[str, Any]]:
    """The contents of a store, without reading rows: for each profile that `patterns` choose its name, view, rows,
    stored bytes, and, if known, format, file, totals and times.

    `sort` is one of SORTS.  Errors: FastprofError and its subclasses.

    >>> from fastprof.store.adding import add
    >>> log = add("all.fpa", ["tests/corpus/callgrind/good/cfi.callgrind"])
    >>> [(entry["name"], entry["rows"], entry["totals"]) for entry in members("all.fpa")]
    [('cfi.callgrind', 3, {'Ir': 14, 'Dr': 6})]
    """
    return [*each(path, patterns, sort=sort)]


def each(path: str, patterns: Iterable[str] = (), *, sort: str = "name") -> Iterator[dict[str, Any]]:
    """`members` in constant memory.  By name, the index is read while they are pulled."""
    if sort not in SORTS:
        raise UsageError(f"a store cannot be sorted by {sort!r:.80}, only by {', '.join(SORTS)}")
    with open_store(path) as (source, archive), located(path):
        codec = codec_of(source)
        found = by_name(path, source, archive, patterns)
        if sort == "name":
            for listed in found:
                yield _entry(source, codec, archive, listed)
            return
        key = SORTS[sort]
        entries = ((listed.number, _entry(source, codec, archive, listed)) for listed in found)
        for _, entry in _sorted(entries, lambda pair: (key(pair[1]), pair[0])):
            yield entry


def _sorted(entries: Iterable[Any], key: Callable[[Any], Any]) -> Iterator[Any]:
    """Entries in the order of their keys.  Of many, sorted runs go to a temporary file."""
    left = iter(entries)
    run = sorted(islice(left, _RUN), key=key)
    if len(run) < _RUN:
        yield from run
        return
    import pickle
    from mmap import ACCESS_READ, mmap
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        runs = []
        while run:
            first = file.tell()
            for entry in run:
                data = pickle.dumps(entry)
                file.write(struct.pack("<I", len(data)) + data)
            runs.append((first, file.tell()))
            run = sorted(islice(left, _RUN), key=key)
        file.flush()
        with mmap(file.fileno(), 0, access=ACCESS_READ) as sorted_runs:
            yield from merge(*(_of_run(sorted_runs, *run) for run in runs), key=key)


def _of_run(data: mmap, at: int, end: int) -> Iterator[Any]:
    import pickle

    while at < end:
        (n,) = struct.unpack_from("<I", data, at)
        yield pickle.loads(data[at + 4 : at + 4 + n])
        at += 4 + n


def _entry(source: Source, codec: Codec, archive: Archive, listed: Listed) -> dict[str, Any]:
    member = archive.member(listed)
    read_summary(source, codec, member)
    entry: dict[str, Any] = {
        "name": member.name,
        "view": member.view,
        **member.about,
        "rows": member.rows,
        "chunks": len(member.chunks),
        "stored_bytes": sum(nbytes for _, _, nbytes in member.sections),
    }
    times = [chunk.times for chunk in member.chunks.values() if chunk.times]
    if times:
        entry["first_time"], entry["last_time"] = min(t[0] for t in times), max(t[1] for t in times)
    known = member.summary
    entry.update((key, known[key]) for key in ("totals", "facts", "repairs", "losses") if key in known)
    values = known.get("values", [])
    if "totals" in known and len(values) >= len(known["totals"]):
        entry["totals"] = dict(zip(values, known["totals"], strict=False))
    return entry


def facts(path: str) -> dict[str, Any] | None:
    """The facts of `info` about a store; None for an archive of one profile.

    Errors: FastprofError and its subclasses.
    """
    with open_store(path) as (source, archive), located(path):
        if archive.count == 1:
            return None
        views, formats, mtimes = Counter[str](), Counter[str](), list[int]()  # mtimes: the first and the last
        rows = used = 0
        numbers = set[int]()
        for member in map(archive.member, archive.listed(source)):
            if member.number in numbers:
                raise SectionError(archive.at, f"index: {member.name!r:.80} has the number {member.number} of another")
            numbers.add(member.number)
            views[member.view] += 1
            formats[member.about.get("format", "unknown")] += 1
            rows += member.rows
            used += sum(nbytes for _, _, nbytes in member.sections)
            if (mtime := member.about.get("mtime")) is not None:
                mtimes = [min([mtime, *mtimes]), max([mtime, *mtimes])]
        facts = {
            "file": shown(path),
            "format": ArchiveReader.format,
            "profiles": sum(views.values()),
            "profiles_by_view": dict(sorted(views.items())),
            "profiles_by_format": dict(sorted(formats.items())),
            "records": rows,
            "bytes": source.size,
            "bytes_of_profiles": used,
        }
        if mtimes:
            facts["first_file_of"], facts["last_file_of"] = map(date, mtimes)
        return facts


def date(mtime: int) -> str:
    """ "2026-11-22 09:35:00", in local time."""
    from datetime import datetime

    try:
        return datetime.fromtimestamp(mtime // 10**9).isoformat(sep=" ")
    except (ValueError, OverflowError, OSError):
        return str(mtime)
