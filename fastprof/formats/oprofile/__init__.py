"""OProfile sessions and sample files.  See docs/formats/oprofile.md."""

import os

from fastprof.core.engine import MAYBE, NO, SURE, Format
from fastprof.core.options import Option, Text, WordList
from fastprof.symbols import DEBUG_DIRS, DEMANGLE, SYMBOLIZE, SYMBOLS, SYSROOT

SPEC: Option[tuple[str, ...]] = Option(
    "spec",
    Text("SPEC"),
    (),
    several=True,
    format="oprofile",
    flag="--spec",
    help="read only what a profile specification selects",
    details="As for opreport: 'event:LLC_MISSES tid:17,18', or the difference of two, '{ cpu:0 } { cpu:1 }'.  "
    "Repeatable.",
)
ADD_UP: Option[tuple[str, ...]] = Option(
    "add_up",
    WordList("cpu", "lib", "tid", "tgid", "unitmask", "all"),
    (),
    format="oprofile",
    help="add up samples of cpu,lib,tid,tgid,unitmask or all",
    details="Merges the samples of all CPUs, programs (lib), threads, processes, unit masks, or all of these.",
)

_NOT_OURS = (".dat", ".sym", ".map", ".opts", ".dbg", "task.txt", "info")  # ends of names in other recordings
ROOTS = ("{root}", "{kern}")
# Where a session may lie below a directory: in the session's directory, an archive by oparchive, samples/ or itself.
_PLACES = ("samples", "var/lib/oprofile/samples", "", ".")
LOGS = ("operf.log", "oprofiled.log")  # of a session, also one without samples


def sniff(head: bytes) -> int:
    from fastprof.core._c import lib

    if head[257:262] == b"ustar":
        from fastprof.core.tar import first_name

        return NO if first_name(head).endswith(_NOT_OURS) else SURE
    return (NO, MAYBE, SURE)[lib.fp_oprofile_sniff(head, len(head))]


def claims(path: str) -> bool:
    """Is there a session in this directory?  Looks only where sessions are written."""
    for place in _PLACES:
        samples = os.path.join(path, place)
        sessions = [samples] if place == "." else _directories(samples)
        if any(os.path.isdir(os.path.join(session, root)) for session in sessions for root in ROOTS):
            return True
        if any(os.path.isfile(os.path.join(samples, log)) for log in LOGS):
            return True
    return os.path.isfile(os.path.join(path, "abi")) and os.path.isdir(os.path.join(path, "samples"))


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        return []


FORMATS = (
    Format(
        name="oprofile",
        view="graph",
        title="OProfile session, sample file or oparchive, also in a tar: 0.7 to 1.4, 32/64 bit, both byte orders",
        suffixes=(),
        sniff=sniff,
        claims=claims,
        reader="read:OProfileReader",
        reads=(ADD_UP, SYMBOLS, SYMBOLIZE, SYSROOT, DEBUG_DIRS, DEMANGLE),
        selects=(SPEC,),
    ),
)
