"""stackcollapse-perf.pl on the same text of perf script: the same stacks and sums, if it reads all of the text.

It drops frames whose name begins with a parenthesis, the arguments of functions and quotes, and reads `V8 Worker 1/2 x`
as `V8 Worker`; names are compared without these.  Of several events it reads the first, like fastprof by default.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from tests.support.paths import needs_shared, shared_data

# In the others it reads nothing (one-line samples, no comm), too little (blanks before the comm), or other names
# (addresses where perf printed no symbols, -F +srcline's lines).
READ = [
    "F-all",
    "F-misc",
    "F-noevent",
    "F-noperiod",
    "F-notime",
    "F-old",
    "F-pidtid",
    "F-synth",
    "F-srcline-fp",
    "cgroup-events",
    "comms",
    "default-clock",
    "default-dwarf",
    "default-go",
    "default-group-S",
    "default-inherit-none",
    "default-inject-b",
    "default-multi-freq",
    "default-ns-cgroup",
    "default-pipe",
    "default-pipe-zstd",
    "default-regs",
    "default-rust_v0",
    "default-stripped",
    "default-user-only",
    "default-zstd",
    "deltatime",
    "header-I",
    "kernel-path",
    "max-stack",
    "no-demangle-rust",
    "no-inline",
    "ns",
    "task-events",
    "verbose-v",
]


def _comparable(stack: str) -> str:
    """Without the comm, unknown frames, and the parts of names that stackcollapse-perf.pl cuts off."""
    names = stack.split(";")[1:]
    names = [name for name in names if not re.fullmatch(r"\[.*\]( \(.*\))?", name) and not name.startswith("(")]
    cut = (name if re.search(r"\.\(.*\)\.", name) else name.partition("(")[0] for name in names)
    return ";".join(name.translate({ord("'"): None, ord('"'): None}).rstrip() for name in cut)


def _sums(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        found[_comparable(stack)] += int(count)
    return found


@needs_shared
@pytest.mark.parametrize("name", READ)
def test_stacks_are_those_of_stackcollapse(name: str, tmp_path: Path) -> None:
    own = shared_data("perf-script", "own")
    fastprof.convert(own / f"{name}.txt", tmp_path / "out.folded", comm_frames=True, nanoseconds=True)
    ours = _sums((tmp_path / "out.folded").read_text(errors="replace"))
    assert ours == _sums((own / f"{name}.folded").read_text(errors="replace"))
    assert ours
