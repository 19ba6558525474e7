"""JSON that needs a temporary file: more complete events than are sorted at once, more samples than are kept. And
weights that are not integers."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

import fastprof
from fastprof.core._c import lib
from fastprof.core.errors import FormatError


def test_complete_events_in_any_order(tmp_path: Path) -> None:
    n = 2 * lib.FP_TRACE_EVENT_RECORDS + 7
    events = [
        {"ph": "X", "name": f"f{i % 50}", "ts": 10 * i, "dur": 1 + i % 5, "pid": 1, "tid": i % 3} for i in range(n)
    ]
    expected = Counter({"main": 10_000 * n})
    for event in events:
        expected[event["name"]] += event["dur"] * 1000
        expected["main"] -= event["dur"] * 1000 * (event["tid"] == 0)
    events.append({"ph": "X", "name": "main", "ts": 0, "dur": 10 * n, "pid": 1, "tid": 0})
    random.Random(1).shuffle(events)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    assert {row.name: row.self for row in fastprof.top(path, n=0).rows} == expected


def test_runs_that_end_at_different_times(tmp_path: Path) -> None:
    """Each run belongs to one thread, so each but the last ends while the others still have all of their rows."""
    n = lib.FP_TRACE_EVENT_RECORDS
    events = [
        {"ph": "X", "name": f"f{tid}", "ts": 10 * i, "dur": 2, "pid": 1, "tid": tid}
        for tid in (2, 0, 1)
        for i in range(n)
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    assert {row.name: row.self for row in fastprof.top(path, n=0).rows} == {f"f{tid}": 2000 * n for tid in range(3)}


@pytest.mark.parametrize("first", ["samples", "weights"])
def test_samples_far_from_their_weights(first: str, tmp_path: Path) -> None:
    """Twice, so that data left in the file by one profile is not read by the next one."""
    dice = random.Random(1)
    weights = [dice.randrange(1, 9) for _ in range(3 * lib.FP_SPEEDSCOPE_KEPT + 5)]
    samples = [[0, dice.randrange(40)] for _ in weights]
    lists = {"samples": samples, "weights": weights}
    profile = {"type": "sampled", first: lists.pop(first), **lists, "name": "p", "unit": "none"}
    path = tmp_path / "p.json"
    path.write_text(
        json.dumps({"profiles": [profile] * 2, "shared": {"frames": [{"name": f"g{i}"} for i in range(40)]}})
    )
    expected: Counter[str] = Counter()
    for stack, weight in zip(samples, weights, strict=True):
        expected[f"g{stack[-1]}"] += 2 * weight
    rows = fastprof.top(path, n=0, from_="speedscope").rows
    assert {row.name: row.self for row in rows if row.self} == expected


@pytest.mark.parametrize("first", ["samples", "timeDeltas", "nodes"])
def test_samples_of_a_long_cpu_profile(first: str, tmp_path: Path) -> None:
    """Each column is longer than its buffer, and lines are fewer than samples."""
    dice = random.Random(1)
    n = 3 * lib.FP_CHROME_KEPT + 5
    call = {"url": "a.js", "lineNumber": 4}
    nodes = [{"id": i, "parent": 1, "callFrame": {"functionName": f"g{i}", **call}} for i in range(2, 40)]
    said = {
        "samples": [dice.randrange(2, 40) for _ in range(n)],
        "timeDeltas": [dice.randrange(9) for _ in range(n)],
        "lines": [dice.randrange(9) for _ in range(lib.FP_CHROME_KEPT + 7)],
        "nodes": [{"id": 1, "callFrame": {"functionName": "(root)"}}, *nodes],
    }
    path = tmp_path / "p.cpuprofile"
    path.write_text(json.dumps({first: said.pop(first), **said}))
    said = json.loads(path.read_text())
    expected: Counter[str] = Counter()
    for node, lasts in zip(said["samples"], said["timeDeltas"][1:], strict=False):
        expected[f"g{node}"] += 1000 * lasts
    rows = fastprof.top(path, n=0, value="time").rows
    assert {row.name: row.self for row in rows} == expected
    lines: Counter[int] = Counter()
    with fastprof.open(path) as profile:
        model = profile._model
        for batch in profile:
            for stack in batch["stack"]:
                line = model.row("frames", model.row("stacks", stack)[1])[lib.FP_FRAME_LINES]
                lines[model.row("lines", line)[lib.FP_LINE_LINE]] += 1
    assert lines == Counter(said["lines"]) + Counter({0: n - len(said["lines"])})


def test_weights_that_are_rounded_are_counted(tmp_path: Path) -> None:
    path, output = tmp_path / "p.json", tmp_path / "o.folded"
    frames = [{"name": "a"}, {"name": "b"}]
    whole = {"type": "sampled", "name": "p", "samples": [[0], [0, 1], [1], [1]], "weights": [1.5, 2.0, 0.25, "30e-1"]}
    text = json.dumps({"profiles": [whole | {"unit": "none"}], "shared": {"frames": frames}}).replace(
        '"30e-1"', "30e-1"
    )
    path.write_text(text)
    log = fastprof.convert(path, output, from_="speedscope")
    assert output.read_text() == "a 2\na;b 2\nb 3\n"
    assert log.repairs["rounded-weights"] == 2
    path.write_text(text.replace('"none"', '"milliseconds"'))
    log = fastprof.convert(path, output, from_="speedscope", nanoseconds=True)
    assert output.read_text() == "a 1500000\na;b 2000000\nb 3250000\n"
    assert log.not_representable == {"value-names": 1}


def test_each_name_of_a_profile_is_a_column_so_they_are_bounded() -> None:
    def text(n: int) -> bytes:
        profile = (
            '{"type":"sampled","name":"p","unit":"none","valueType":"%d","startValue":0,"endValue":1,'
            '"samples":[[0]],"weights":[1]}'
        )
        profiles = ",".join(profile.replace("%d", f"v{i}") for i in range(n))
        return f'{{"shared":{{"frames":[{{"name":"f"}}]}},"profiles":[{profiles}]}}'.encode()

    sampled = ",".join(f'{{"name":"v{i}","ts":1}}' for i in range(1025))
    with pytest.raises(FormatError, match="trace-event: samples have 1,025 names, expected up to 1,024"):
        fastprof.info(f'{{"traceEvents":[],"samples":[{sampled}]}}'.encode())
    assert len(fastprof.info(text(1024), from_="speedscope").facts["totals"]) == 1024
    with pytest.raises(FormatError, match="speedscope: profiles have 1,025 names and units, expected up to 1,024"):
        fastprof.info(text(1025), from_="speedscope")
