"""Events of flight recordings against Perfetto's own trace processor: each is a slice of its thread."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from tests.differential.peers import viewer
from tests.reference import jfr
from tests.support.paths import SHARED, needs_shared
from tests.unit.test_jfr import spans

SLICES = (
    "select coalesce(t.name, ''), s.name, s.ts, s.dur from slice s join thread_track k on s.track_id = k.id "
    "join thread t using (utid) where s.dur > 0"  # not instants
)
Slice = tuple[str, str, int, int]  # thread, type of event, begin, nanoseconds


def expected(data: bytes) -> Counter[Slice]:
    """Slices of recordings whose ticks are nanoseconds."""
    found = Counter[Slice]()
    for event in jfr.events(data):
        thread: Any = event.values.get("eventThread") or {}
        nanoseconds = event.values.get("duration", 0)
        if nanoseconds > 0:
            found[thread.get("javaName") or thread.get("osName") or "", event.type, event.time, nanoseconds] += 1
    return found


def check(data: bytes, folder: Path) -> None:
    recording, trace = folder / "a.jfr", folder / "out.perfetto-trace"
    recording.write_bytes(data)
    log = fastprof.convert(recording, trace, to="perfetto")
    assert not log.losses and "shortened-events" not in log.repairs
    slices, errors = viewer(
        "trace_processor", trace, SLICES, "select name, value from stats where severity = 'error' and value > 0"
    )
    assert errors == []
    theirs = Counter[Slice]()
    for thread, name, begin, nanoseconds in slices:
        own = re.sub(r" \(\d+\)$", "", thread)  # of overlapping events: worker (7)
        theirs[own, name.partition(":")[0], int(begin), int(nanoseconds)] += 1
    assert theirs == expected(data) and theirs


def test_events_that_overlap(tmp_path: Path) -> None:
    check(spans().bytes(), tmp_path)


@needs_shared
@pytest.mark.parametrize("name", ["real-11-lock", "real-17-lock", "real-17-io"])
def test_recordings_of_the_jdk(name: str, tmp_path: Path) -> None:
    assert SHARED is not None
    check(gzip.decompress((SHARED / f"data/jfr/{name}.jfr.gz").read_bytes()), tmp_path)
