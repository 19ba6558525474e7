"""JSON of Scalene, GHC and Safari: docs/formats/scalene.md, ghc-json.md and safari.md."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.core.errors import FormatError
from fastprof.core.options import Options
from tests.support.paths import CORPUS
from tests.support.stackdump import dump

SCALENE, GHC = CORPUS / "scalene" / "good", CORPUS / "ghc-json" / "good" / "lab.ghc.json"


@pytest.mark.parametrize("path", sorted(SCALENE.iterdir()), ids=lambda path: path.name)
def test_lines_of_scalene(path: Path) -> None:
    found = json.loads(path.read_text())
    seconds = found["elapsed_time_sec"]
    for value, keys in {
        "cpu": ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent"),
        "python": ("n_cpu_percent_python",),
        "native": ("n_cpu_percent_c",),
        "system": ("n_sys_percent",),
        "alloc": ("n_malloc_mb",),
    }.items():
        scale = 1 << 20 if value == "alloc" else seconds * 1e7
        expected = {
            (name, line["lineno"]): sum(line[key] for key in keys) * scale
            for name, file in found["files"].items()
            for line in file["lines"]
        }
        rows = {(row.file, row.line): row.self for row in fastprof.top(path, by="line", n=0, value=value).rows}
        assert rows == {key: pytest.approx(cost, abs=2) for key, cost in expected.items() if key in rows}
        assert sum(rows.values()) == pytest.approx(sum(expected.values()), abs=9)
    names = {row.name for row in fastprof.top(path, n=0).rows}
    assert names == {"fib", "table", "main"}


def test_a_line_outside_of_functions() -> None:
    lines = '{"lineno": 2, "n_cpu_percent_python": 50, "start_function_line": 0}, {"lineno": 3, "n_malloc_mb": 0.5}'
    data = f'{{"alloc_samples": 1, "elapsed_time_sec": 2, "files": {{"a.py": {{"lines": [{lines}]}}}}}}'.encode()
    (row,) = fastprof.top(data, n=0).rows
    assert (row.name, row.self) == ("<module>", 10**9)
    (row,) = fastprof.top(data, n=0, value="alloc").rows
    assert row.self == 1 << 19


def test_the_tree_is_that_of_the_text() -> None:
    """But the text leaves out the profiler's own cost centres, and the runs differ in ticks."""
    costs: list[Counter[Any]] = []
    for data, format_ in (
        (GHC.read_bytes(), "ghc-json"),
        ((CORPUS / "ghc-prof" / "good" / "labels.ghc.prof").read_bytes(), "ghc-prof"),
    ):
        costs.append(Counter())
        for stack, _, (_, alloc, entries) in dump(data, format_).rows:
            key = tuple(line[0] + b" " + line[2] + b":%d" % line[4] for (line,) in (frame[3] for frame in stack))
            costs[-1][key] += alloc * 10**9 + entries
    found, text = costs
    own = {key for key in found if key[0].split()[0] in (b"OVERHEAD_of", b"SYSTEM", b"GC", b"IDLE", b"PINNED")}
    assert text and {key: n for key, n in found.items() if key not in own and n} == {k: n for k, n in text.items() if n}


HEAD = b'{"program": "a", "tick_interval": 10, "cost_centres": [{"id": 1, "label": "f"}], "profile": '


@pytest.mark.parametrize(
    ("node", "stacks"),
    [
        (b'{"id": 2, "entries": 1, "alloc": 2, "ticks": 3, "children": [%s]}', 1),
        (b'{"id": 1, "alloc": 2, "ticks": 3, "children": [%s]}', 1),
        (b'{"id": 1, "entries": 1, "alloc": 2, "ticks": 9223372036854775807, "children": [%s]}', 1),
        (b'{"id": 1, "entries": 1, "alloc": 2, "ticks": -3, "children": [%s]}', 1),
    ],
)
def test_damaged_nodes(node: bytes, stacks: int) -> None:
    data = HEAD + node % b'{"id": 1, "entries": 1, "alloc": 2, "ticks": 3, "children": []}' + b"}"
    with pytest.raises(FormatError, match="a record is incomplete"):
        dump(data, "ghc-json")
    found = dump(data, "ghc-json", options=Options(lenient=True))
    assert [values for _, _, values in found.rows] == [(30_000, 2, 1)] * stacks
    assert found.log.losses == {"broken-records": 1}


def test_shares_need_a_total() -> None:
    path = CORPUS / "scalene" / "bad" / "no-time.scalene.json"
    with pytest.raises(FormatError, match="elapsed_time_sec"):
        fastprof.info(path)


# ---- Safari ----

SAFARI = CORPUS / "safari" / "good" / "fib-recording.json"


def test_samples_cost_their_durations() -> None:
    """Against the file, read by Python's json."""
    recording = json.loads(SAFARI.read_text())["recording"]
    found = dump(SAFARI.read_bytes(), "safari")
    assert len(found.rows) == len(recording["sampleDurations"]) == 5
    pairs = zip(recording["sampleStackTraces"], recording["sampleDurations"], strict=True)
    for (stack, _, values), (sample, duration) in zip(found.rows, pairs, strict=True):
        assert values == (round(duration * 10**9), 1)
        lines = [frame[3][0] for frame in stack]
        expected = [frame["name"].encode() or b"(anonymous)" for frame in sample["stackFrames"]]
        assert [line[0] for line in lines] == expected
        places = [frame.get("expressionLocation", {"line": 0})["line"] for frame in sample["stackFrames"]]
        assert [line[4] for line in lines] == places
    assert found.log.not_representable == {"timeline-records": 2}


def test_samples_have_times() -> None:
    with fastprof.open(SAFARI) as profile:
        times = [time for batch in profile for time in batch["time"]]
    samples = json.loads(SAFARI.read_text())["recording"]["sampleStackTraces"]
    assert times == [pytest.approx(sample["timestamp"] * 1e9, abs=1) for sample in samples]


@pytest.mark.parametrize(
    ("samples", "durations", "times"),
    [
        ('[{"timestamp": 1, "stackFrames": []}]', "[1, 2]", [1]),
        ('[{"timestamp": 1, "stackFrames": []}]', "[]", []),
        ('[{"timestamp": 1}, {"timestamp": 2}]', "[-1, 3]", [3]),
        ('[{"timestamp": 1}, {"timestamp": 2}]', '["a", 3]', [3]),
        ('[{"stackFrames": []}, {"timestamp": 1}]', "[1, 2]", [1, 2]),
    ],
)
def test_samples_and_durations_belong_together(samples: str, durations: str, times: list[int]) -> None:
    data = f'{{"version":1,"recording":{{"sampleStackTraces":{samples},"sampleDurations":{durations}}}}}'.encode()
    with pytest.raises(FormatError, match="a record is incomplete"):
        dump(data, "safari")
    found = dump(data, "safari", options=Options(lenient=True))
    assert [values[0] // 10**9 for _, _, values in found.rows] == times
    assert found.log.losses == {"broken-records": 1}
