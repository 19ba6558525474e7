"""Firefox Profiler's own importer (tests/viewers/firefox.mjs) on our output: totals of every function and thread."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

import fastprof
from fastprof.core.options import Options
from tests.differential.peers import viewer
from tests.reference import firefox
from tests.support.conversions import HERE, convert_bytes, format_of
from tests.support.paths import CORPUS
from tests.support.xraylog import FdrLog

FILES = [
    "callgrind/good/tab.callgrind",
    "cpuprofile/good/node20.cpuprofile",
    "gperftools/good/" + sorted(p.name for p in (CORPUS / "gperftools/good").iterdir())[0],
    "jfr/good/real-async.jfr.gz",
    "otlp/good/v1.10-timestamps.otlp",
    "perf/good/real-multi-freq.data",
    "pprof/good/" + sorted(p.name for p in (CORPUS / "pprof/good").iterdir())[0],
    "xray/good/basic3-interp-args-clang19.xray",
    "xray/good/fdr5-events-clang19.xray",
    "xray/good/fdr5-pool-clang19.xray",
    "xray/good/profiling-pool-clang19.xray",
]


def compare(data: bytes, path: Path) -> None:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    found = viewer("firefox", path)
    expected = firefox.read(data)
    assert sorted((t["process"], t["name"], t["weightType"]) for t in found) == sorted(
        (t.process, t.name, t.weight_type) for t in expected
    )
    theirs, ours = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    totals: dict[tuple[str, str], list[float]] = {}
    for thread in found:
        for name, self_, total in thread["functions"]:
            theirs[thread["name"], name] += self_
            totals.setdefault((thread["name"], name), []).append(total)
    for one in expected:
        for name, weight in one.total.items():
            ours[one.name, name] += float(one.self_[name])  # type: ignore[assignment]
            if len(totals[one.name, name]) == 1:  # else several functions share this name
                assert totals[one.name, name] == [pytest.approx(float(weight), rel=1e-9, abs=1e-9)]
    assert theirs == pytest.approx(ours, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("file", FILES)
def test_corpus(file: str, tmp_path: Path) -> None:
    done = convert_bytes((CORPUS / file).read_bytes(), format_of(file), "firefox", HERE)
    compare(done.data, tmp_path / "out.profile.json.gz")


@pytest.mark.parametrize("file", ["cpuprofile/good/node20.cpuprofile", "perf/good/real-dwarf.data"])
def test_the_time_axis_is_that_of_the_samples(file: str, tmp_path: Path) -> None:
    """It ends an interval after the last sample."""
    path = tmp_path / "out.profile.json"
    path.write_bytes(convert_bytes((CORPUS / file).read_bytes(), format_of(file), "firefox", HERE).data)
    last = max(thread.samples[-1][0] for thread in firefox.read(path.read_bytes()) if thread.samples)
    with fastprof.open(CORPUS / file) as profile:
        times = [time for batch in profile for time in batch["time"]]
    assert float(last) == pytest.approx((max(times) - min(times)) / 1e6)
    interval = json.loads(path.read_bytes())["meta"]["interval"]
    assert viewer("firefox", path, "range") == {"start": 0, "end": pytest.approx(float(last) + interval)}


def test_the_default_value_type_is_selected(tmp_path: Path) -> None:
    path = tmp_path / "out.profile.json"
    path.write_bytes(convert_bytes((CORPUS / "perf/good/real-cxx.data").read_bytes(), "perf", "firefox", HERE).data)
    assert viewer("firefox", path, "selected").startswith(json.loads(path.read_bytes())["meta"]["defaultValueType"])


def test_names_that_are_hostile(tmp_path: Path) -> None:
    """Hostile to JSON, to HTML, and to code that uses a name as a path."""
    text = b'</script><b>;"q\\;\xc3\xa9\xf0\x9f\x98\x80;__proto__;a\tb 5\n\xff\xfe;constructor 7\n'
    compare(convert_bytes(text, "folded", "firefox").data, tmp_path / "out.profile.json")


def test_deep_stacks(tmp_path: Path) -> None:
    log = FdrLog(5, frequency=10**9)
    buffer = log.buffer(tid=1, pid=1).cpu(0, 5)
    for i in range(1, 3001):
        buffer.enter(i, 1)
    for i in range(3000, 0, -1):
        buffer.exit(i, 1)
    compare(convert_bytes(log.bytes(), "xray", "firefox", Options()).data, tmp_path / "deep.profile.json")


def test_counters_are_drawn_with_their_values(tmp_path: Path) -> None:
    """Also the first one: of Firefox's own counters the viewer replaces it by 0."""
    values = [100, 103.5, 90, 90]
    events = [
        {"ph": "C", "pid": 7, "tid": 8, "name": "heap", "ts": 10 * i, "args": {"value": value}}
        for i, value in enumerate(values)
    ]
    calls = [{"ph": "X", "pid": 7, "tid": 8, "name": "f", "ts": 0, "dur": 50}]
    path = tmp_path / "out.profile.json"
    path.write_bytes(convert_bytes(json.dumps(events + calls).encode(), "trace-event", "firefox").data)
    (found,) = viewer("firefox", path, "counters")
    assert (found["name"], found["pid"], found["thread"]) == ("heap", "7", "thread 8")
    assert [value for value, _ in groupby(found["values"])] == [100, 103.5, 90]
