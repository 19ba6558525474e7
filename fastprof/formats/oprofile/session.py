"""A session's other files: statistics, and the data layout of the machine that wrote it."""

from collections import Counter
from collections.abc import Iterable

from fastprof.core._typing import Any
from fastprof.core.folder import File
from fastprof.core.log import Log
from fastprof.core.messages import counted
from fastprof.core.source import Source
from fastprof.formats.oprofile.reported import REPORTED

_LONGEST = 1 << 16  # bytes of such a file
_TOO_MANY = 0.0001  # of all samples lost: OProfile's own limit for its warning
_ABI = {
    "sizeof_struct_opd_header": "nbytes",
    "offsetof_header_cpu_speed": "cpu_speed",
    "offsetof_header_mtime": "mtime",
    "offsetof_header_cg_to_is_kernel": "callee_is_kernel",
    "offsetof_header_anon_start": "anon_start",
    "offsetof_header_cg_to_anon_start": "callee_anon_start",
}


def text_of(source: Source, file: File) -> str:
    return source.read_at(file.start, min(file.size, _LONGEST)).decode("latin-1")


def read_abi(source: Source, files: Iterable[File], reader: Any) -> None:
    """Take the layout of headers from an `abi` file, if there is one: lines `NAME NUMBER`.

    All 64-bit numbers have 8 bytes in any machine that writes such a file.
    """
    file = next((file for file in files if file.name.split("/")[-1] == "abi" and "{" not in file.name), None)
    if file is None:
        return
    words = (line.split() for line in text_of(source, file).splitlines())
    numbers = {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdecimal() and len(w[1]) < 9}
    if all(name in numbers for name in _ABI):
        for name, field in _ABI.items():
            setattr(reader.abi, field, numbers[name])
        reader.abi.mtime_nbytes = 8
        reader.has_abi = 1


def log_lost_samples(source: Source, files: Iterable[File], sessions: set[str], log: Log) -> None:
    """Facts and warnings from stats/ of the sessions read: samples lost by the profiler."""
    lost: Counter[str] = Counter()
    throttled: set[str] = set()
    total = 0
    for file in files:
        session, at, name = file.name.rpartition("/stats/")
        if not at or session.split("/")[-1] not in sessions:
            continue
        if name.startswith("throttled/"):
            throttled.add(name.removeprefix("throttled/"))
            continue
        text = text_of(source, file).strip()
        number = int(text) if text.isdecimal() and len(text) < 20 else 0
        if name == "total_samples":
            total += number
        elif name.startswith("lost_"):
            lost[name] += number
    if total or lost:
        log.facts["samples_taken"] = total
        log.facts["samples_lost"] = {name: lost[name] for name in sorted(lost)}
    if sum(lost.values()) > _TOO_MANY * total:
        log.warn(
            REPORTED["lost-samples"],
            file=source.name,
            samples=counted(sum(lost.values()), "sample was lost", "samples were lost"),
            total=total,
        )
    for event in sorted(throttled):
        log.warn(REPORTED["throttled-events"], file=source.name, event=event)
